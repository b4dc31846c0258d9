"""Any row that the schema admits costs at most its own task or workflow, whatever a worker does.

The table of places and values comes from the database: a new column is in it by itself.
"""

import asyncio
import logging
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from horsies import Horsies, SleepNode, SubWorkflowNode, TaskError, TaskResult, WorkflowDefinition
from horsies.config import RecoveryConfig
from support.apps import good, working
from support.database import Database
from support.eventually import eventually_async
from support.odd_rows import columns_of, insert_copies, our_tables, plant

pytestmark = [pytest.mark.faults, pytest.mark.slow, pytest.mark.timeout(300)]

NewApp = Callable[..., Horsies]
# They say what the schema is, and no task reads them.
LEFT_OUT = {"horsies_schema_version"}


# Some of those that come last in a round.
DUTIES = ["recover workflows", "record queue history", "prune COMPLETED tasks", "prune workflows"]


def are_done(db: Database) -> bool:
    done = "select count(*) from horsies_duties where name = any (%s) and done_at is not null"
    return bool(db.value(done, DUTIES) == len(DUTIES))


class Child(WorkflowDefinition[int]):
    """What a sound workflow among the odd ones builds."""

    name = "child"
    definition_key = "tests.any_row.child"

    @classmethod
    def build_with(cls, app: Any) -> Any:
        node = app.tasks["add"].node(node_id="n")(n=1)
        return app.workflow("child", [node], output=node, definition_key="x")


@pytest.fixture
def app(new_app: NewApp) -> Horsies:
    recovery = RecoveryConfig(
        check_interval_ms=1_000,
        claimed_stale_threshold_ms=2_000,
        running_stale_threshold_ms=2_000,
        runner_heartbeat_interval_ms=1_000,
        claimer_heartbeat_interval_ms=1_000,
    )
    app = new_app(recovery=recovery)

    @app.task("add")
    async def add(n: int) -> TaskResult[int, TaskError]:
        return TaskResult(ok=n + 1)

    app.event("e", int)
    return app


def spec_of(app: Horsies) -> Any:
    """A workflow with a wait and a child, so that every service of the worker has to do with it."""
    nap: Any = SleepNode(timedelta(milliseconds=10), node_id="nap")
    child: Any = SubWorkflowNode(workflow_def=Child, node_id="child", waits_for=[nap])
    return app.workflow("sound", [nap, child], output=child, definition_key="sound.1")


@pytest.mark.parametrize("start", range(3), ids=["first", "second", "third"])
async def test_odd_rows_stop_no_service_and_no_other_task(
    app: Horsies, db: Database, caplog: pytest.LogCaptureFixture, start: int
) -> None:
    plant(db)
    tables = [name for name in our_tables(db) if name not in LEFT_OUT][start::3]
    odd_count = sum(1 for name in tables for _ in insert_copies(db, name, columns_of(db, name)))
    assert odd_count > 100

    async with working(app) as worker:
        for _ in range(3):
            task = good(await app.tasks["add"].send_async(1))
            workflow = good(await spec_of(app).start_async())
            await asyncio.to_thread(good, app.send_event("e", "k", 1))
            results = [await task.get_async(60_000), await workflow.get_async(60_000)]
            assert [result.unwrap() for result in results] == [2, 2]
        await eventually_async(lambda: asyncio.to_thread(are_done, db), within=60)
        assert not worker.stopping.is_set()

    failing = (
        "select name, failure from horsies_duties where failure is not null and name = any (%s)"
    )
    assert db.execute(failing, DUTIES) == []
    broken = [
        record.getMessage()
        for record in caplog.records
        if record.levelno >= logging.ERROR and "failed, trying again" in record.getMessage()
    ]
    assert broken == []
