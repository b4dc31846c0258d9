"""Workflows, schedules, failures and maintenance in a real browser: seen, zoomed and steered."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.actions.wheel_input import ScrollOrigin
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

from horsies import (
    Horsies,
    IntervalSchedule,
    ScheduleConfig,
    SubWorkflowNode,
    TaskError,
    TaskNode,
    TaskResult,
    TaskSchedule,
    WorkflowDefinition,
)
from support import cluster
from support.apps import good, make_app
from support.browser import NO_BROWSER, find_browser, open_browser
from support.eventually import eventually
from support.web_server import serving

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(300),  # beside a whole test run a browser takes ten times as long
    pytest.mark.skipif(find_browser() is None, reason=NO_BROWSER),
]
ACCESSIBILITY = (Path(__file__).parents[1] / "support" / "accessibility.js").read_text()


class Scene:
    """A browser on a dashboard whose worker is alive."""

    def __init__(self, app: Horsies, url: str, driver: Any) -> None:
        self.app = app
        self._url = url
        self._driver = driver

    def open(self, path: str) -> None:
        self._driver.get(self._url + path)
        self.until(lambda: self.all("main h1"))

    def all(self, selector: str) -> list[Any]:
        return list(self._driver.find_elements(By.CSS_SELECTOR, selector))

    def until(self, predicate: Any) -> Any:
        return eventually(predicate, within=60)

    def until_shown(self, text: str) -> None:
        self.until(lambda: text in self.all("body")[0].text)

    def ask(self, title: str, **fields: str) -> None:
        """Open the small form behind a button, fill it in and send it."""
        form = self.until(lambda: self.opened(title))
        for name, value in fields.items():
            form.find_element(By.NAME, name).send_keys(value)
        form.find_element(By.TAG_NAME, "button").click()

    def opened(self, title: str) -> Any:
        """The small form behind a button."""
        button = next(one for one in self.all("summary.button") if one.text == f"{title} …")
        menu = button.find_element(By.XPATH, "..")
        if menu.get_attribute("open") is None:
            self._driver.execute_script("arguments[0].scrollIntoView({block: 'center'})", button)
            button.click()
        return menu.find_element(By.TAG_NAME, "form")

    @property
    def url(self) -> str:
        return str(self._driver.current_url)

    def scrolled(self, selector: str) -> int:
        """How far to the right it is scrolled."""
        return round(self.all(selector)[0].get_property("scrollLeft"))

    def drag(self, selector: str, *, right: int) -> None:
        """Drag a thing by its middle to the right."""
        hand = ActionChains(self._driver).move_to_element(self.all(selector)[0]).click_and_hold()
        hand.move_by_offset(right, 0).release().perform()

    def click(self, selector: str) -> None:
        self.until(lambda: self.all(selector))[0].click()

    def follow(self, text: str, path: str) -> None:
        """Click on a link by what it says, and wait for the page it leads to."""
        self.until(lambda: self._driver.find_element(By.LINK_TEXT, text)).click()
        self.until(lambda: path in self._driver.current_url and self.all("main h1"))

    def back(self) -> None:
        self._driver.back()
        self.until(lambda: self.all("main h1"))

    def turn_wheel(self, selector: str, *, down: int) -> None:
        """Turn the wheel above a thing while Ctrl is held."""
        origin = ScrollOrigin.from_element(self.all(selector)[0])
        hand = ActionChains(self._driver).key_down(Keys.CONTROL)
        hand.scroll_from_origin(origin, 0, down).key_up(Keys.CONTROL).perform()

    def set(self, selector: str, value: str) -> None:
        """Fill in a field whose keys depend on the language of the browser."""
        script = "arguments[0].value = arguments[1]"
        self._driver.execute_script(script, self.all(selector)[0], value)

    def width(self) -> float:
        """How wide the graph is drawn."""
        return float(self.all("svg.graph")[0].get_attribute("width"))

    def mistakes(self) -> Any:
        return self._driver.execute_script(ACCESSIBILITY)


@pytest.fixture(scope="module")
def scene(server: cluster.Server, migrated_template: str) -> Iterator[Scene]:
    with server.temporary_database(template=migrated_template) as url:
        app = make(url)
        with serving(app) as address, open_browser() as driver:
            yield Scene(app, address, driver)
        app.close()


def make(database_url: str) -> Horsies:
    hourly = TaskSchedule(
        name="hourly", task_name="double", args=(1,), pattern=IntervalSchedule(hours=1)
    )
    app = make_app(database_url, schedule=ScheduleConfig(schedules=[hourly]))

    @app.task("double")
    async def double(n: int) -> TaskResult[int, TaskError]:
        if n < 0:
            raise ValueError(n)
        return TaskResult(ok=2 * n)

    class Inner(WorkflowDefinition[int]):
        name = "inner"
        definition_key = "browser.inner"
        only = TaskNode(fn=double, kwargs={"n": 4})

    app.inner = Inner  # type: ignore[attr-defined]  # for the tests below
    return app


def start(scene: Scene, key: str) -> str:
    """A workflow that fails in one branch, has a child, and waits for an event in the end."""
    double, app = scene.app.tasks["double"], scene.app
    first = double.node(node_id="first")(n=1)
    bad = double.node(node_id="bad", waits_for=[first])(n=-1)
    behind = double.node(node_id="behind", waits_for=[bad])(n=2)
    wide = [double.node(node_id=f"w{i}", waits_for=[first])(n=i) for i in range(30)]
    child = SubWorkflowNode(workflow_def=app.inner, waits_for=[first], node_id="child")  # type: ignore[attr-defined]
    wait = app.event("go", int).node(key=key, node_id="wait", waits_for=[first])
    spec = app.workflow(
        "shown", [first, bad, behind, *wide, child, wait], definition_key="browser.shown"
    )
    workflow_id: str = good(spec.start()).workflow_id
    return workflow_id


def test_a_workflow_is_drawn_zoomed_unfolded_and_steered(scene: Scene) -> None:
    workflow_id = start(scene, "1")
    scene.open("/workflows")
    scene.until(lambda: scene.all(f'a[href$="{workflow_id}"]'))[0].click()
    scene.until(lambda: len(scene.all(".graph .node")) == 6)
    scene.until(lambda: len(scene.all(".node-completed")) == 3)
    assert scene.mistakes() == []

    width = scene.all("svg.graph")[0].get_attribute("width")
    scene.all('[data-step="1"]')[0].click()
    scene.until(lambda: float(scene.all("svg.graph")[0].get_attribute("width")) > float(width))
    zoomed = scene.all("svg.graph")[0].get_attribute("width")
    scene.ask("Pause", reason="lunch")
    scene.until_shown("The workflow is paused.")
    scene.ask("Resume")
    scene.until_shown("The workflow is running again.")
    assert scene.all("svg.graph")[0].get_attribute("width") != zoomed, "a new page fits anew"

    boxes = {one.get_attribute("aria-label").partition(",")[0]: one for one in scene.all(".node a")}
    boxes["child"].click()
    scene.until(lambda: len(scene.all("svg.graph")) == 2)
    scene.ask("Send event", payload="5")
    scene.until_shown("Event go with key 1 is sent.")
    scene.until(lambda: scene.all("h1 + .state-failed"))
    scene.ask("Retry")
    scene.until_shown("running again")
    assert scene.mistakes() == []


def test_a_workflow_is_found_walked_through_retried_from_a_node_and_cancelled(
    scene: Scene,
) -> None:
    workflow_id = start(scene, "4")
    scene.open("/workflows")
    scene.all("main [name=name]")[0].send_keys("shown")
    scene.click("main form button")
    scene.until(lambda: "name=shown" in scene.url and scene.all(f'a[href$="{workflow_id}"]'))
    scene.follow("completed", "status=completed&name=shown")
    scene.until_shown("No workflow matches.")
    scene.follow("running", "status=running&name=shown")
    scene.click(f'a[href$="{workflow_id}"]')
    scene.until(lambda: len(scene.all(".node-completed")) == 3)

    fitting = scene.width()
    scene.turn_wheel("[data-canvas]", down=-100)
    scene.until(lambda: scene.width() > fitting)
    scene.click('[data-step="0"]')
    scene.until(lambda: scene.width() <= fitting)
    scene.click('.node a[aria-label*="30"]')
    scene.until(lambda: "group=" in scene.url and len(scene.all("#nodes tbody tr")) == 30)
    scene.follow("failed 1", "only=failed")
    assert [one.text for one in scene.all("#nodes tbody th")] == ["bad"]
    scene.click('.node a[aria-label^="child"]')
    scene.follow("Open", "/workflows/")
    scene.until(lambda: scene.all("h1 + .state-completed"))
    scene.follow(workflow_id, workflow_id)

    scene.ask("Send event", payload="{")
    scene.until_shown("The payload is not JSON")
    scene.back()
    scene.ask("Cancel", reason="too late")
    scene.until_shown("The workflow is cancelled.")
    scene.until(lambda: scene.all("h1 + .state-cancelled"))
    assert good(scene.app.operations.workflow(workflow_id)).workflow.status == "CANCELLED"

    only = scene.app.tasks["double"].node(node_id="only")(n=4)
    spec = scene.app.workflow("redone", [only], definition_key="browser.redone")
    scene.open(f"/workflows/{good(spec.start()).workflow_id}")
    scene.until(lambda: scene.all("h1 + .state-completed"))
    scene.ask("Retry", from_node="nowhere")
    scene.until_shown("has no such node")
    scene.back()
    scene.ask("Retry", from_node="only", reason="again")
    scene.until_shown("The workflow is running again.")
    scene.until(lambda: scene.all("h1 + .state-completed"))
    reasons = [entry.reason for entry in good(scene.app.operations.audit(limit=2))]
    assert reasons == ["again", "too late"]


def test_a_graph_is_moved_by_dragging(scene: Scene) -> None:
    scene.open(f"/workflows/{start(scene, '3')}")
    scene.until(lambda: scene.all("svg.graph"))
    for _ in range(6):
        scene.all('[data-step="1"]')[0].click()
    before = scene.scrolled("[data-canvas]")

    scene.drag("[data-canvas]", right=80)

    assert scene.scrolled("[data-canvas]") == before - 80


def test_a_zoom_survives_updates(scene: Scene) -> None:
    workflow_id = start(scene, "2")
    scene.open(f"/workflows/{workflow_id}")
    scene.until(lambda: len(scene.all(".node-completed")) == 3)
    scene.all('[data-step="-1"]')[0].click()
    width = scene.all("svg.graph")[0].get_attribute("width")

    good(scene.app.send_event("go", "2", 7))
    scene.until(lambda: scene.all("h1 + .state-failed"))

    assert scene.all("svg.graph")[0].get_attribute("width") == width


def test_a_schedule_is_run_paused_and_backfilled(scene: Scene) -> None:
    scene.open("/schedules")
    assert scene.mistakes() == []
    scene.all('a[href$="/schedules/hourly"]')[0].click()
    scene.ask("Run now")
    scene.until_shown("is sent once")
    scene.until(lambda: scene.all("tbody .state-completed"))
    scene.ask("Pause", reason="holidays")
    scene.until_shown("holidays")
    scene.ask("Resume")
    scene.until_shown("goes on.")
    assert scene.mistakes() == []
    scene.until(lambda: scene.opened("Backfill"))
    scene.set("[name=start]", "2025-01-01T00:00")
    scene.set("[name=end]", "2025-01-01T03:00")
    scene.ask("Backfill")
    scene.until_shown("3 slot(s) to send")
    good(scene.app.tasks["double"].send(1))  # a change must not take the preview away
    scene.follow("Back", "/schedules/hourly")
    scene.until(lambda: scene.opened("Backfill"))
    scene.set("[name=start]", "2025-01-01T00:00")
    scene.set("[name=end]", "2025-01-01T03:00")
    scene.ask("Backfill")
    scene.click("form.row button.primary")
    scene.until_shown("3 run(s) of hourly are sent.")
    scene.until(lambda: len(scene.all("tbody .state-completed")) == 4)
    runs = good(scene.app.schedules.history("hourly"))
    assert [run.status for run in runs] == ["COMPLETED"] * 4


def test_failures_go_back_and_maintenance_says_who(scene: Scene) -> None:
    failed = good(scene.app.tasks["double"].send(-5))
    assert failed.get(timeout_ms=20_000).is_err()
    scene.open("/failures")
    scene.until_shown("UNHANDLED_EXCEPTION")
    assert scene.mistakes() == []
    scene.follow("1h", "span=1h")
    scene.click("details:not(.menu) summary")
    scene.until_shown("raise ValueError(n)")
    scene.follow("Latest", "/tasks/")
    scene.back()
    scene.follow("double", "/tasks?q=status")
    scene.back()
    scene.ask("Requeue", reason="try again")
    scene.until_shown("went back to their queues.")

    scene.open("/maintenance")
    scene.until_shown("try again")
    assert "local user" in scene.all("main")[0].text
    assert scene.mistakes() == []
