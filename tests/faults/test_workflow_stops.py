"""Once pause or cancel has answered, no node begins: seen in the tasks' own code."""

import random
import time
from collections.abc import Iterator
from functools import partial
from typing import Any

import pytest

from support.apps import good
from support.database import Database, connect
from support.eventually import eventually
from support.faults import ROUNDS
from support.workers import WorkerProcess, load_app_module

pytestmark = [pytest.mark.faults, pytest.mark.slow, pytest.mark.timeout(300)]

BEGUN = """
select (t.result::json ->> 'ok')::float as begun_at
from horsies_workflow_tasks n join horsies_tasks t on t.id = n.task_id
where n.workflow_id = %s and t.status = 'COMPLETED'
"""
RUNNING = """
select count(*) from horsies_workflow_tasks n join horsies_tasks t on t.id = n.task_id
where n.workflow_id = %s and t.status = 'RUNNING'
"""


def has_begun(db: Database, workflow_id: str, count: int) -> bool:
    return len(db.execute(BEGUN, workflow_id)) >= count


def has_no_runs(db: Database, workflow_id: str) -> bool:
    return bool(db.value(RUNNING, workflow_id) == 0)


@pytest.fixture
def db(database_url: str) -> Iterator[Database]:
    database = connect(database_url)
    yield database
    database.connection.close()


@pytest.fixture
def module(database_url: str) -> Iterator[Any]:
    module = load_app_module(database_url, {})
    worker = WorkerProcess(database_url, "--processes=1", "--threads=2", "--concurrency=2")
    try:
        worker.wait_ready()
        yield module
        assert worker.stop() == 0, worker.log()
    finally:
        worker.close()
        module.app.get_broker().close()


@pytest.mark.parametrize("kind", ["child", "thread", "loop"])
def test_no_code_begins_after_the_answer(
    module: Any, db: Database, kind: str, seeded: random.Random
) -> None:
    task = getattr(module, f"begin_in_{kind}")
    nodes = [task.node(node_id=f"n{i}")(number=i) for i in range(200)]
    spec = module.app.workflow("wide", nodes, definition_key=f"wide.{kind}")
    good(spec.start()).get(20_000)  # the worker knows now that these are short: it takes them ahead

    for act in ["pause", "cancel"] * ROUNDS:
        handle = good(spec.start())
        somewhere = seeded.randrange(100)
        eventually(partial(has_begun, db, handle.workflow_id, somewhere), within=10)
        good(getattr(handle, act)())
        answered_at = time.monotonic()
        eventually(partial(has_no_runs, db, handle.workflow_id), within=10)
        begun = [row["begun_at"] for row in db.execute(BEGUN, handle.workflow_id)]

        assert [at - answered_at for at in begun if at > answered_at] == []
        if act == "pause":
            good(handle.resume())
            assert handle.get(20_000).is_ok()
            assert len(db.execute(BEGUN, handle.workflow_id)) == len(nodes)
