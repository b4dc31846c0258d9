"""Ids and names of any kind: pages link to them, and buttons reach them and nothing else."""

import html
import re
from collections.abc import Iterator
from typing import Any, NamedTuple
from urllib.parse import quote

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st
from markupsafe import escape

from horsies import Horsies, IntervalSchedule, TaskSchedule
from horsies.drawing.path_parts import quoted, unquoted
from horsies.web.places import place
from support import cluster
from support.apps import good
from support.database import Database, connect
from support.web import make_shop
from support.web_server import serving

IDS = (
    "2026/11/16",
    "..\\queues\\default\\pause?",
    "../queues/default/pause",
    "../../queues/default/pause#",
    ".",
    "..",
    "...",
    "%2e%2e",
    "%2F",
    "a%2Fb%00",
    "a//b/",
    "/",
    "\\",
    "//evil.example.com",
    "javascript:alert(1)",
    "a b+c",
    "?token=x",
    "#nodes",
    "a&b=c;d,e",
    "ä/ü 馬",
    "<b>'\"",
    "~2F",
    "~",
    "-rf",
    "new\nline",
    "suggestions",
    "review",
)
# Nothing that a browser or a proxy reads as more than letters.
PLAIN = re.compile(r"(/(?!\.+(/|$))[A-Za-z0-9._~-]+)+")


class House(NamedTuple):
    app: Horsies
    db: Database
    client: httpx.Client

    def open(self, path: str) -> str:
        answer = self.client.get(path)
        assert answer.status_code == 200, (
            path,
            re.findall(r"class=.message.>([^<]*)", answer.text),
        )
        return answer.text

    def act(self, path: str, **fields: str) -> None:
        """Send a form and go where it leads."""
        csrf = self.client.cookies["horsies_csrf"]
        answer = self.client.post(path, data={"csrf": csrf, **fields})
        assert answer.status_code == 303, (
            path,
            re.findall(r"class=.message.>([^<]*)", answer.text),
        )
        self.open(answer.headers["location"])

    def paused(self) -> list[Any]:
        return self.db.execute(
            "select queue_name from horsies_queue_controls"
            " where paused_at is not null and queue_name in ('default', 'paused')"
        )


def fill(app: Horsies, db: Database, name: str) -> None:
    """Things of all kinds with this name."""
    db.insert(id=name, task_name="rest", queue_name="paused", args="[1]")
    db.insert(task_name="elsewhere", queue_name=name)
    node = app.tasks["add"].node(node_id="n")(a=1)
    spec = app.workflow("odd", [node], definition_key="odd")
    good(spec.start(name))
    db.execute(
        "insert into horsies_worker_states (worker_id, hostname, pid, processes, queues,"
        " max_claim_batch, max_claim_per_worker, worker_started_at)"
        " values (%s, 'host', 1, 1, '{default}', 0, 0, now())",
        name,
    )
    pattern = IntervalSchedule(hours=1)
    schedule = TaskSchedule(name=name, task_name="add", kwargs={"a": 1}, pattern=pattern)
    good(app.schedules.add(schedule))


@pytest.fixture(scope="module")
def house(server: cluster.Server, migrated_template: str) -> Iterator[House]:
    with server.temporary_database(template=migrated_template) as url:
        app, db = make_shop(url), connect(url)
        app.event("arrived", object)
        for name in IDS:
            fill(app, db, name)
        with (
            serving(app, has_worker=False, tick_rate=20) as address,
            httpx.Client(base_url=address, timeout=60) as client,
        ):
            yield House(app, db, client)
        db.connection.close()
        app.close()


def links(page: str, above: str, *, within: str) -> list[str]:
    """Where links or forms below this path lead; each is plain, so that it leads nowhere else."""
    found = re.findall(rf'{within}="({re.escape(above)}/[^"?#]*)["?#]', page)
    paths = [html.unescape(one) for one in found]
    assert [path for path in paths if PLAIN.fullmatch(path) is None] == []
    return paths


def row_link(page: str, key: str, above: str) -> str:
    """The link of a list's row; rows are known by their keys."""
    row = page.partition(f'<tr data-key="{escape(key)}"')[2]
    return links(row.partition("</tr>")[0], above, within="href")[0]


def is_reached(house: House, path: str, shown: str) -> str:
    page = house.open(path)
    assert shown in html.unescape(page), path
    return page


@pytest.mark.parametrize("task_id", IDS)
def test_tasks(house: House, task_id: str) -> None:
    path = row_link(house.open("/tasks?q=task:rest"), task_id, "/tasks")
    page = is_reached(house, path, task_id)
    assert set(links(page, "/tasks", within="action")) == {
        f"{path}/{word}" for word in ("cancel", "run-now", "send")
    }
    house.act(f"{path}/run-now")
    house.act(f"{path}/cancel")
    assert house.db.status(task_id) == "CANCELLED"
    page = house.open(path)
    for word in ("requeue", "cancel", "rerun", "delete"):
        house.act(f"{path}/{word}")
    assert house.db.value("select count(*) from horsies_tasks where id = %s", task_id) == 0
    assert house.paused() == []


@pytest.mark.parametrize("workflow_id", IDS)
def test_workflows(house: House, workflow_id: str) -> None:
    path = row_link(house.open("/workflows"), workflow_id, "/workflows")
    page = is_reached(house, path, workflow_id)
    assert links(page, "/workflows", within="action")
    house.act(f"{path}/pause")
    house.act(f"{path}/resume")
    house.act(f"{path}/event", name="arrived", key="k")
    house.act(f"{path}/cancel")

    status = "select status from horsies_workflows where id = %s"
    assert house.db.value(status, workflow_id) == "CANCELLED"
    assert house.paused() == []


@pytest.mark.parametrize("name", IDS)
def test_queues(house: House, name: str) -> None:
    actions = links(house.open("/queues"), "/queues", within="action")
    assert f"{place('queues', name)}/pause" in actions
    house.act(f"{place('queues', name)}/pause")
    paused = "select paused_at is not null from horsies_queue_controls where queue_name = %s"
    assert house.db.value(paused, name) is True
    house.act(f"{place('queues', name)}/limit", limit="3")
    house.act(f"{place('queues', name)}/resume")

    assert house.db.value(paused, name) is not True
    assert house.paused() == []


@pytest.mark.parametrize("worker_id", IDS)
def test_workers(house: House, worker_id: str) -> None:
    seen = "update horsies_worker_states set snapshot_at = now() where worker_id = %s"
    house.db.execute(seen, worker_id)

    path = row_link(house.open("/workers"), worker_id, "/workers")
    is_reached(house, path, worker_id)
    house.act(f"{path}/drain")

    drained = house.db.value(
        "select count(*) from horsies_worker_drains where worker_id = %s", worker_id
    )
    assert drained == 1


@pytest.mark.parametrize("name", IDS)
def test_schedules(house: House, name: str) -> None:
    path = row_link(house.open("/schedules"), name, "/schedules")
    is_reached(house, path, name)
    house.act(f"{path}/pause")
    house.act(f"{path}/resume")
    house.act(f"{path}/run")

    assert house.paused() == []


@pytest.mark.parametrize("task_id", ["2026/11/16", "a b", "ä/ü 馬", "a?b"])
def test_addresses_that_others_write_with_percent_signs_are_read(
    house: House, task_id: str
) -> None:
    made = f"by hand: {task_id}"
    house.db.insert(id=made, task_name="rest", queue_name="paused")

    page = house.open(f"/tasks/{quote(made, safe='')}")

    assert made in html.unescape(page)


@given(st.text())
def test_what_is_quoted_is_read_again(name: str) -> None:
    part = quoted(name)

    assert unquoted(part) == name
    assert PLAIN.fullmatch(f"/{part}")
