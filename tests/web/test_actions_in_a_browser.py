"""What operators do to tasks, one or many, clicked in a real browser beside a live worker."""

from collections.abc import Iterator
from typing import Any

import pytest
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.select import Select

from horsies import Horsies
from support.apps import good
from support.browser import NO_BROWSER, Browser, find_browser, open_browser
from support.database import Database
from support.eventually import eventually
from support.web import make_shop
from support.web_server import serving

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(300),  # beside a whole test run a browser takes ten times as long
    pytest.mark.skipif(find_browser() is None, reason=NO_BROWSER),
    pytest.mark.xdist_group("web actions"),
]


@pytest.fixture(scope="module")
def browser(shop: Any) -> Iterator[Browser]:
    with serving(shop.app) as url, open_browser() as driver:
        yield Browser(driver, url)


def review(browser: Browser, do: str, *ticked: str, **fields: str) -> str:
    """Ask for a review of an action on ticked tasks, or on all that match; how many it counts."""
    for task_id in ticked:
        browser.one(f'[data-one][value="{task_id}"]').click()
    Select(browser.one("select[name=scope]")).select_by_value("ticked" if ticked else "filter")
    Select(browser.one("select[name=do]")).select_by_value(do)
    for name, value in fields.items():
        field = browser.one(f".toolbar [name={name}]")
        field.clear()
        field.send_keys(value)
    browser.one(".toolbar button").click()
    return str(browser.one("[data-count]").text)


def confirm(browser: Browser, reason: str, said: str) -> None:
    browser.one("form.stack [name=reason]").send_keys(reason)
    browser.one("form.stack button").click()
    browser.until_shown(said)


@pytest.mark.parametrize(
    "task_id", ["..\\queues\\default\\pause?", "../queues/default/pause", ".."]
)
def test_a_button_changes_the_task_of_its_page(
    browser: Browser, db: Database, task_id: str
) -> None:
    """Browsers read a backslash as a slash, and %2e as a dot."""
    db.insert(id=task_id, task_name="odd_one", queue_name="paused")
    browser.open("/tasks?q=task:odd_one status:pending")
    browser.follow("odd_one", "/tasks/")
    browser.menu("Cancel …", "odd")
    browser.until_shown("It is cancelled.")

    controls = "select count(*) from horsies_queue_controls where queue_name = 'default'"
    assert db.status(task_id) == "CANCELLED"
    assert db.value(f"{controls} and paused_at is not null") == 0


def test_every_bulk_action_is_counted_and_done(
    browser: Browser, app: Horsies, db: Database
) -> None:
    late = app.tasks["rest"].with_options(tags=["walk"], delay=3600)
    first, second = (good(late.send(number)).task_id for number in range(2))
    browser.open("/tasks?q=tag:walk")
    browser.one(".toolbar button").click()
    browser.until_shown("Tick tasks first, or choose all that match the filter.")
    browser.driver.back()

    assert review(browser, "priority", priority="7") == "2"
    browser.until_shown("all that match tag:walk")
    browser.follow("Back", "q=tag%3Awalk")
    assert {db.task(one)["priority"] for one in (first, second)} == {1}
    assert review(browser, "priority", priority="7") == "2"
    confirm(browser, "urgent", "Reprioritised: 2.")
    assert {db.task(one)["priority"] for one in (first, second)} == {7}

    assert review(browser, "run-now", first) == "1"
    confirm(browser, "at once", "Due now: 1.")
    is_due = "select enqueued_at <= now() from horsies_tasks where id = %s"
    assert [db.value(is_due, one) for one in (first, second)] == [True, False]

    running = good(app.tasks["wait_long"].with_options(tags=["walk"]).send()).task_id
    browser.one(f'tr[data-key="{running}"] .state-running')
    assert review(browser, "cancel-running") == "3"
    confirm(browser, "stop all", "Cancelled or asked to end: 3.")
    assert {db.status(one) for one in (first, second)} == {"CANCELLED"}
    browser.one(f'tr[data-key="{running}"] .state-cancelled')
    assert db.status(running) == "CANCELLED"

    assert review(browser, "requeue", first, second) == "2"
    confirm(browser, "after all", "Requeued: 2.")
    assert {db.status(one) for one in (first, second)} == {"PENDING"}

    assert review(browser, "delete", first) == "0"
    browser.until_shown("None of them is in a state in which this does anything.")
    browser.follow("Back", "q=tag%3Awalk")
    assert review(browser, "delete", running) == "1"
    confirm(browser, "tidy", "Deleted: 1.")
    assert db.execute("select 1 from horsies_tasks where id = %s", running) == []
    reasons = [entry.reason for entry in good(app.operations.audit(limit=5))]
    assert reasons == ["tidy", "after all", "stop all", "at once", "urgent"]


def test_a_task_is_run_copied_rerun_requeued_and_deleted(
    browser: Browser, app: Horsies, db: Database
) -> None:
    task_id = good(app.tasks["add"].with_options(delay=3600).send(20, b=1)).task_id
    browser.open(f"/tasks/{task_id}")
    browser.menu("Run now …", "no time")
    browser.until_shown("It is due now.")
    browser.one("h1 + .state-completed")
    assert db.status(task_id) == "COMPLETED"

    copied = {
        "Show in a terminal": f"horsies task {task_id}",
        "Send again in Python": "app.tasks['add'].send(a=20, b=1)",
    }
    next(one for one in browser.all("summary.button") if one.text == "Copy").click()
    for name, text in copied.items():
        entry = browser.one("ul.copies").find_element(By.XPATH, f"li[span='{name}']/button")
        entry.click()
        entry.click()
        eventually(lambda entry=entry: entry.text == "Copied")
        assert browser.clipboard() == text
    eventually(lambda: {one.text for one in browser.all("ul.copies button")} == {"Copy"})
    browser.press(Keys.ESCAPE)
    assert browser.all("details.menu[open]") == []

    browser.menu("Requeue …")
    browser.until_shown("It is back in its queue.")
    eventually(lambda: db.task(task_id)["status"] == "COMPLETED")
    browser.one("h1 + .state-completed")
    browser.menu("Run again …", "once more")
    browser.until_shown("This is the new task, with the same arguments.")
    browser.one("h1 + .state-completed")
    new_id = browser.driver.current_url.rpartition("/")[2]
    assert (db.task(new_id)["rerun_of"], db.status(new_id)) == (task_id, "COMPLETED")
    browser.follow(task_id, f"/tasks/{task_id}")
    browser.menu("Delete …", "tidy")
    browser.until_shown(f"Task {task_id} is deleted.")
    assert db.execute("select 1 from horsies_tasks where id = %s", task_id) == []


def test_a_waiting_task_is_cancelled_after_second_thoughts(
    browser: Browser, app: Horsies, db: Database
) -> None:
    task_id = good(app.tasks["rest"].send(9)).task_id
    browser.open(f"/task?task_id={task_id}")
    browser.follow("All about it", f"/tasks/{task_id}")
    opener = browser.one("summary.button")
    for leave in (lambda: browser.press(Keys.ESCAPE), browser.one("h1").click):
        opener.click()
        assert browser.one("details.menu[open] form").is_displayed()
        leave()
        assert browser.all("details.menu[open]") == []
    assert db.status(task_id) == "PENDING"

    browser.menu("Cancel …", "not needed")

    browser.until_shown("It is cancelled.")
    browser.one("h1 + .state-cancelled")
    assert db.status(task_id) == "CANCELLED"


def test_lists_are_filtered_and_turned_by_mouse_and_keys(
    browser: Browser, app: Horsies, db: Database
) -> None:
    many = app.tasks["rest"].with_options(tags=["many"])
    ids = [good(many.send(number)).task_id for number in range(52)]
    browser.open("/tasks")
    browser.follow("Cancelled", "q=status%3Acancelled")
    browser.follow("All", "/tasks")
    field = browser.one("[data-search]")
    field.send_keys("tag:man")
    eventually(lambda: [one.text for one in browser.all("#suggestions li")] == ["tag:many"])
    browser.one("#suggestions li").click()
    field.send_keys("stat")
    eventually(
        lambda: [one.text.split()[0] for one in browser.all("#suggestions li")] == ["status:"]
    )
    field.send_keys(Keys.TAB, "pend")
    eventually(lambda: [one.text for one in browser.all("#suggestions li")] == ["status:pending"])
    field.send_keys(Keys.TAB)
    assert field.get_attribute("value") == "tag:many status:pending "
    browser.one("form[role=search] button").click()
    browser.until_shown("52 match")
    browser.follow("Older", "before=")
    assert len(browser.all("tbody tr")) == 2
    browser.follow("Newest", "q=tag%3Amany+status%3Apending")
    browser.press("j", "j", "k", "x")
    assert browser.one("tbody tr.at").get_attribute("data-key") == ids[-1]
    assert browser.one("[data-chosen]").text == "1 selected"
    browser.press("x", "p")
    browser.until_shown("Tick tasks to change them")
    browser.until_shown("Paused")

    # A review cannot be fetched again: its key has nothing to resume.
    assert review(browser, "cancel") == "52"
    browser.press("p")
    confirm(browser, "enough", "Cancelled: 52.")
    browser.until_shown("No task matches")
    browser.press("p")
    browser.until_shown("Live")
    browser.follow("Show all tasks", "/tasks")
    browser.one(f'tr[data-key="{ids[-1]}"] a.tag').click()
    browser.until_at("q=tag%3Amany")
    assert {db.status(one) for one in ids} == {"CANCELLED"}


def test_every_page_is_reached_from_the_menu(browser: Browser) -> None:
    browser.open("/")
    titles = [one.text for one in browser.all(".top nav a")]
    for title in titles[1:4]:
        browser.one(".top nav").find_element(By.LINK_TEXT, title).click()
        eventually(lambda title=title: browser.one("main h1").text == title)
    browser.until_loaded()
    for key, title in zip("fsem", titles[4:], strict=True):
        browser.press("g", key)
        eventually(lambda title=title: browser.one("main h1").text == title)
        browser.until_loaded()
    browser.press("t")
    assert browser.run("return document.documentElement.dataset.theme") == "light"
    browser.press("t", "t")
    browser.one("#help").click()
    browser.one("#keys[open] button").click()
    assert browser.all("#keys[open]") == []


def test_charts_and_queues_are_looked_at_closely(browser: Browser, db: Database) -> None:
    browser.open("/queues")
    browser.menu("Limit …", "slow partner", limit="5")
    browser.until_shown("Queue default is limited to 5.")
    caps = "select max_concurrency from horsies_queue_controls where queue_name = 'default'"
    assert [row["max_concurrency"] for row in db.execute(caps)] == [5]
    browser.menu("Limit …", limit="")
    browser.until_shown("Queue default is limited as configured.")
    assert db.execute(caps) == []
    for window in ("5m", "24h"):
        browser.follow(window, f"window={window}")
    browser.follow("default", "/?queue=default")
    browser.follow("5m", "span=5m&queue=default")
    assert browser.one("main h2").text == "Queue default"
    browser.follow("All", "/?span=5m")
    browser.until_shown("All queues")
    part = browser.one(".chart [data-tip]")
    browser.run("arguments[0].scrollIntoView({block: 'center'})", part)
    browser.hover(part)
    assert eventually(lambda: browser.one(".tip").text)


def worker_ids(db: Database) -> set[str]:
    rows = db.execute("select distinct worker_id from horsies_worker_states")
    return {row["worker_id"] for row in rows}


def reloaded(browser: Browser) -> Browser:
    browser.driver.refresh()
    return browser


def test_a_worker_is_drained_from_the_list(browser: Browser, app: Horsies, db: Database) -> None:
    other = make_shop(app.config.broker.database_url)
    known = worker_ids(db)
    with serving(other):
        (worker_id,) = eventually(lambda: worker_ids(db) - known)
        browser.open("/workers")
        found = browser.one(f'tr[data-key="{worker_id}"]:has(.state-alive)')
        found.find_element(By.TAG_NAME, "summary").click()
        found.find_element(By.NAME, "reason").send_keys("deploy")
        found.find_element(By.TAG_NAME, "button").click()
        browser.until_shown("The worker finishes what it runs and ends.")
        eventually(lambda: reloaded(browser).all(f'tr[data-key="{worker_id}"] .state-gone'))
    other.close()

    drains = db.execute("select worker_id from horsies_worker_drains")
    assert worker_id in {row["worker_id"] for row in drains}
    assert good(app.operations.audit(limit=1))[0].reason == "deploy"


def test_a_lost_dashboard_is_said_and_found_again(browser: Browser, app: Horsies) -> None:
    with serving(app, has_worker=False) as url:
        browser.driver.get(f"{url}/tasks?q=tag:found-again")
        browser.until_shown("No task matches")
    browser.until_shown("The connection to the dashboard is lost.")

    task_id = good(app.tasks["rest"].with_options(tags=["found-again"]).send(1)).task_id
    with serving(app, has_worker=False, port=int(url.rpartition(":")[2])):
        browser.one(f'tr[data-key="{task_id}"]')
        eventually(lambda: not browser.one("#lost").is_displayed())
        browser.driver.get("about:blank")  # lets the server end at once
