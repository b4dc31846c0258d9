"""The grants of the page on security are enough for each role, and no more than it says."""

import re
from collections.abc import Callable, Iterator
from urllib.parse import urlsplit

import psycopg
import pytest

from horsies import Horsies, TaskError, TaskFunction, TaskResult
from support.cluster import Server
from support.pages import DOCS
from support.urls import changed

NAMES = ("shop_producer", "shop_worker", "shop_viewer")
Feed = TaskFunction[[], str]
Connect = Callable[[str], tuple[Horsies, Feed]]


@pytest.fixture
def connect(server: Server, database_url: str) -> Iterator[Connect]:
    """An app that logs in as a role of the page, after all of its SQL has run."""
    database = urlsplit(database_url).path[1:]
    page = (DOCS / "how-to" / "secure-the-database.md").read_text()
    for name in NAMES:  # roles belong to the server, which other tests use meanwhile
        page = page.replace(name, f"{name}_{database[-12:]}")
    roles, *grants = re.findall(r"^```sql\n(.*?)^```$", page, re.DOTALL | re.MULTILINE)
    with psycopg.connect(changed(server.url, database=database)) as connection:
        connection.execute(roles.encode())
    with psycopg.connect(database_url) as connection:  # the owner of the tables
        for block in grants:
            connection.execute(block.encode())
    apps: list[Horsies] = []

    def connected(name: str) -> tuple[Horsies, Feed]:
        app = Horsies(changed(database_url, user=f"{name}_{database[-12:]}"))
        apps.append(app)

        @app.task("feed")
        async def feed() -> TaskResult[str, TaskError]:
            return TaskResult(ok="fed")

        return app, feed

    yield connected
    for app in apps:
        app.close()
    with psycopg.connect(changed(server.url, database=database)) as connection:
        for name in NAMES:
            connection.execute(f"drop owned by {name}_{database[-12:]}".encode())
            connection.execute(f"drop role {name}_{database[-12:]}".encode())


def test_a_producer_sends_and_steers_what_it_has_sent(connect: Connect) -> None:
    app, feed = connect("shop_producer")
    app.event("hungry", str)
    spec = app.workflow("meal", [feed.node(node_id="feed")()], definition_key="meal.v1")

    sent = feed.schedule(3600).unwrap()

    assert sent.cancel().unwrap()
    assert sent.requeue().unwrap()
    assert len(feed.send_many([(), ()]).unwrap()) == 2
    workflow = spec.start().unwrap()
    assert workflow.pause().unwrap()
    assert workflow.cancel().is_ok()
    assert app.send_event("hungry", "Bella", "now").is_ok()
    assert app.operations.tasks().is_ok()


def test_a_producer_cannot_operate(connect: Connect) -> None:
    app, feed = connect("shop_producer")
    sent = feed.send().unwrap()

    assert app.operations.pause_queue("default").is_err()
    assert app.operations.delete(sent.task_id).is_err()


def test_the_rights_of_a_worker_are_enough_to_operate(connect: Connect) -> None:
    app, feed = connect("shop_worker")
    sent = feed.send().unwrap()

    assert app.operations.pause_queue("default").unwrap()
    assert app.operations.cancel(sent.task_id).unwrap().number == 1
    assert app.operations.delete(sent.task_id).unwrap().number == 1


def test_a_viewer_only_looks(connect: Connect) -> None:
    app, feed = connect("shop_viewer")

    assert app.operations.tasks().is_ok()
    assert app.operations.queues().is_ok()
    assert feed.send().is_err()
