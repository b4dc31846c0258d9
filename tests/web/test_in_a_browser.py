"""The dashboard in a real browser, with a live worker: every page and action is clicked through."""

from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.select import Select

from horsies import Horsies
from support.apps import good
from support.browser import NO_BROWSER, Browser, find_browser, open_browser
from support.eventually import eventually
from support.web_server import serving

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(300),  # beside a whole test run a browser takes ten times as long
    pytest.mark.skipif(find_browser() is None, reason=NO_BROWSER),
    pytest.mark.xdist_group("web browser"),
]
ACCESSIBILITY = (Path(__file__).parents[1] / "support" / "accessibility.js").read_text()
PATHS = (
    "/",
    "/tasks",
    "/tasks?q=statu:x",
    "/tasks/{failed}",
    "/tasks/{waiting}",
    "/queues",
    "/workers",
    "/workflows",
    "/schedules",
    "/failures",
    "/maintenance",
    "/task?task_id={completed}",
    "/nowhere",
)


@pytest.fixture(scope="module")
def browser(shop: Any) -> Iterator[Browser]:
    with serving(shop.app) as url, open_browser() as driver:
        yield Browser(driver, url)


def test_the_keyboard_leads_everywhere(browser: Browser) -> None:
    browser.open("/")
    for key, path in (("t", "/tasks"), ("q", "/queues"), ("w", "/workers"), ("o", "/")):
        # Both at once: a busy machine may take longer between two calls than `g` waits for its key.
        browser.press("g", key)
        browser.until_at(path)
        browser.until_loaded()
    browser.press("?")
    assert browser.one("#keys").get_attribute("open") is not None
    browser.press(Keys.ESCAPE)
    eventually(lambda: browser.one("#keys").get_attribute("open") is None)


def test_a_filter_is_completed_and_a_row_opened(browser: Browser, shop: Any) -> None:
    browser.open("/tasks")
    browser.one("tbody tr")
    browser.press("/")
    browser.press("tag:v")
    browser.one("#suggestions li")
    browser.press(Keys.ARROW_DOWN)
    browser.press(Keys.ENTER)
    assert browser.one("[data-search]").get_attribute("value") == "tag:vip "
    browser.press(Keys.ESCAPE, Keys.ENTER)
    browser.until_at("q=tag%3Avip")
    browser.one("tbody tr")
    browser.one("main").click()
    browser.press("j")
    browser.one("tbody tr.at")
    browser.press(Keys.ENTER)
    browser.until_at(f"/tasks/{shop.ids['waiting']}")
    browser.until_shown("Queue paused was paused by ann")


def test_what_changes_appears_without_a_reload(browser: Browser, app: Horsies) -> None:
    browser.open("/tasks?q=task:add")
    first = browser.one("tbody tr")
    browser.run("window.isSamePage = true")
    first.find_element(By.CSS_SELECTOR, "[data-one]").click()
    ticked = first.get_attribute("data-key")

    new_id = good(app.tasks["add"].send(40, 2)).task_id
    browser.one(f'tr[data-key="{new_id}"] .state-completed')

    assert browser.run("return window.isSamePage")
    assert browser.run(ACCESSIBILITY) == []
    assert browser.one(f'tr[data-key="{ticked}"] [data-one]').is_selected()
    assert browser.one("[data-chosen]").text == "1 selected"


def test_updates_can_be_paused(browser: Browser, app: Horsies) -> None:
    browser.open("/tasks?q=task:add")
    browser.one("tbody tr")
    browser.one("#live").click()
    browser.until_shown("Paused")

    new_id = good(app.tasks["add"].send(1, 1)).task_id
    good(app.handle(new_id).info())
    assert app.handle(new_id).get(timeout_ms=10_000).is_ok()
    assert browser.all(f'tr[data-key="{new_id}"]') == []

    browser.one("#live").click()
    browser.one(f'tr[data-key="{new_id}"]')


def test_a_failed_task_is_requeued_and_fails_again(browser: Browser, app: Horsies) -> None:
    task_id = good(app.tasks["explode"].send("no hay")).task_id
    browser.open(f"/tasks/{task_id}")
    browser.until_shown("ValueError: no hay")

    browser.menu("Requeue …", "try again")

    browser.until_shown("It is back in its queue.")
    eventually(lambda: len(browser.all(".timeline li")) >= 3)
    (entry, *_) = good(app.operations.audit(limit=1))
    assert (entry.action, entry.done_by, entry.reason) == ("requeue", "local user", "try again")


def test_a_running_task_is_cancelled(browser: Browser, app: Horsies) -> None:
    handle = good(app.tasks["wait_long"].send())
    browser.open(f"/tasks/{handle.task_id}")
    browser.one(".head .state-running")

    browser.menu("Cancel …")

    browser.until_shown("The worker was asked to end it.")
    assert handle.get(timeout_ms=10_000).is_err()
    browser.one(".head .state-failed, .head .state-cancelled")


def test_a_task_is_sent_with_other_arguments(browser: Browser, shop: Any) -> None:
    browser.open(f"/tasks/{shop.ids['completed']}")
    browser.one(".fold summary").click()
    field = browser.one("textarea[name=args]")
    for text, shown in (('["x"]', "valid integer"), ("[41]", "the edited arguments")):
        field = browser.one("textarea[name=args]")
        field.clear()
        field.send_keys(text)
        browser.one(".fold button.primary").click()
        browser.until_shown(shown)

    assert eventually(
        lambda: "44" in browser.one("#result-title ~ pre, .card:has(#result-title)").text
    )


def test_many_tasks_are_changed_after_a_review(browser: Browser, app: Horsies) -> None:
    task = app.tasks["rest"].with_options(tags=["crowd"])
    ids = [good(task.send(number)).task_id for number in range(3)]
    browser.open("/tasks?q=tag:crowd")
    eventually(lambda: len(browser.all("[data-one]")) == 3)
    browser.one("[data-all]").click()
    Select(browser.one("select[name=do]")).select_by_value("cancel")
    browser.one(".toolbar button").click()
    assert browser.one("[data-count]").text == "3"
    browser.one("form button.primary").click()
    browser.until_shown("Cancelled: 3.")
    assert {good(app.handle(one).info()).status.value for one in ids} == {"CANCELLED"}


def test_a_queue_is_limited_paused_and_resumed(browser: Browser, app: Horsies) -> None:
    browser.open("/queues")
    browser.menu("Limit …", limit="7")
    browser.until_shown("Queue default is limited to 7.")
    browser.menu("Pause …", "deploy")
    browser.until_shown("Queue default is paused.")
    browser.menu("Resume …")
    browser.until_shown("Queue default goes on.")
    good(app.operations.limit_queue("default", None))

    done = [entry.action for entry in good(app.operations.audit(limit=4))]
    assert done == ["limit", "resume", "pause", "limit"]


def test_colours_are_chosen_and_kept(browser: Browser) -> None:
    browser.open("/workers")
    before = browser.run("return getComputedStyle(document.body).backgroundColor")
    for theme in ("light", "dark"):
        browser.one("#theme").click()
        assert browser.run("return document.documentElement.dataset.theme") == theme
    browser.open("/workers")

    assert browser.run("return document.documentElement.dataset.theme") == "dark"
    assert browser.run("return getComputedStyle(document.body).backgroundColor") != before
    browser.driver.delete_cookie("horsies_theme")


def test_times_are_those_of_the_readers_zone(browser: Browser, shop: Any) -> None:
    shown = {}
    for zone in ("UTC", "Asia/Kolkata"):
        browser.driver.execute_cdp_cmd("Emulation.setTimezoneOverride", {"timezoneId": zone})
        browser.open(f"/tasks/{shop.ids['completed']}")
        sent = eventually(lambda: browser.one(".timeline time[title]"))
        shown[zone] = sent.text
        at = datetime.fromisoformat(sent.get_attribute("datetime")).astimezone(ZoneInfo(zone))
        assert at.strftime(":%M:%S") in sent.text

    assert shown["UTC"] != shown["Asia/Kolkata"]


OUT_OF_ITS_CARD = """
return [...document.querySelectorAll(".card table")].some((table) => !table.closest(".scroll")
  && table.getBoundingClientRect().right > table.closest(".card").getBoundingClientRect().right + 1)
"""


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 390], ids=["wide", "phone"])
def test_everyone_can_use_every_page(browser: Browser, shop: Any, theme: str, width: int) -> None:
    browser.driver.set_window_size(width, 900)
    browser.open("/workers")
    browser.driver.add_cookie({"name": "horsies_theme", "value": theme})
    found: dict[str, Any] = {}
    for path in PATHS:
        browser.open(path.format(**shop.ids))
        browser.one("main h1")
        found[path] = browser.run(ACCESSIBILITY)
        if browser.run("return document.documentElement.scrollWidth > innerWidth"):
            found[path] += ["wider than the window"]
        if browser.run(OUT_OF_ITS_CARD):
            found[path] += ["a table runs out of its card"]
    browser.driver.delete_cookie("horsies_theme")
    browser.driver.set_window_size(1400, 900)

    assert {path: problems for path, problems in found.items() if problems} == {}


def test_no_page_breaks_the_content_security_policy(browser: Browser, shop: Any) -> None:
    browser.driver.get_log("browser")
    for path in PATHS[:-1]:
        browser.open(path.format(**shop.ids))
        browser.one("main h1")

    logged = [entry["message"] for entry in browser.driver.get_log("browser")]
    assert [line for line in logged if "Security Policy" in line or "TypeError" in line] == []


def test_a_worker_is_looked_at_and_drained(browser: Browser) -> None:
    browser.open("/workers")
    alive = browser.one("tr:has(.state-alive) a")
    alive.click()
    browser.until_shown("What it holds")
    browser.one(".chart svg")
    problems = browser.run(ACCESSIBILITY)
    browser.menu("Drain …", "deploy")
    browser.until_shown("The worker finishes what it runs and ends.")

    assert browser.one("tr .state-gone").text == "gone"
    assert problems == []
