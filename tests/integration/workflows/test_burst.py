"""`horsies worker --burst` and workflows: what can be done now is done, what waits is left."""

import asyncio
import time
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from horsies import (
    Horsies,
    RetryPolicy,
    SleepNode,
    SubWorkflowNode,
    TaskError,
    TaskResult,
    WorkflowDefinition,
)
from horsies.worker.settings import WorkerConfig
from horsies.worker.worker import Worker
from support.apps import good
from support.database import Database

NewApp = Callable[..., Horsies]


@pytest.fixture
def app(new_app: NewApp) -> Horsies:
    app = new_app()

    @app.task("number")
    async def number(value: int) -> TaskResult[int, TaskError]:
        return TaskResult(ok=value)

    app.event("paid", int)
    return app


class SlowToBuild(WorkflowDefinition[int]):
    """A child whose worker is otherwise idle while it builds it."""

    name = "slow to build"
    definition_key = "tests.burst.slow"

    @classmethod
    def build_with(cls, app: Any) -> Any:
        time.sleep(0.5)
        node = app.tasks["number"].node(node_id="n")(value=7)
        return app.workflow("slow to build", [node], output=node, definition_key="x")


async def run_burst(app: Horsies) -> None:
    worker = Worker(app, WorkerConfig(processes=1, threads=1, is_burst=True))
    async with asyncio.timeout(20):
        await worker.run()


async def test_burst_stays_while_it_builds_a_child(app: Horsies) -> None:
    one = app.tasks["number"].node(node_id="one")(value=1)
    child: Any = SubWorkflowNode(workflow_def=SlowToBuild, waits_for=[one], node_id="child")
    spec = app.workflow("parent", [one, child], output=child, definition_key="burst.parent")
    handle = good(await spec.start_async())

    await run_burst(app)

    assert (await handle.get_async(0)).unwrap() == 7


async def test_burst_runs_a_chain_to_its_end(app: Horsies) -> None:
    chain: list[Any] = []
    for index in range(20):
        node = app.tasks["number"].node(node_id=f"n{index}", waits_for=chain[-1:])(value=index)
        chain.append(node)
    spec = app.workflow("chain", chain, output=chain[-1], definition_key="burst.chain")
    handle = good(await spec.start_async())

    await run_burst(app)

    assert (await handle.get_async(0)).unwrap() == 19


async def test_burst_leaves_a_retry_that_is_not_due(app: Horsies, db: Database) -> None:
    policy = RetryPolicy.fixed([3_600], auto_retry_for=["LATER"])

    @app.task("later", retry_policy=policy)
    async def later() -> TaskResult[int, TaskError]:
        return TaskResult(err=TaskError(error_code="LATER"))

    node = later.node(node_id="later")()
    spec = app.workflow("later", [node], definition_key="burst.later")
    handle = good(await spec.start_async())

    await run_burst(app)

    assert good(await handle.status_async()).value == "RUNNING"
    assert db.statuses() == {"PENDING": 1}


@pytest.mark.parametrize("wait", ["sleep", "event"])
async def test_burst_leaves_what_waits_and_the_next_one_goes_on(
    app: Horsies, db: Database, wait: str
) -> None:
    number = app.tasks["number"]
    one = number.node(node_id="one")(value=1)
    waiting: Any = (
        SleepNode(duration=timedelta(hours=1), waits_for=[one], node_id="wait")
        if wait == "sleep"
        else app.events.by_name["paid"].node(key="42", waits_for=[one], node_id="wait")
    )
    last = number.node(node_id="last", waits_for=[waiting])(value=2)
    spec = app.workflow("w", [one, waiting, last], output=last, definition_key="burst.waiting")
    handle = good(await spec.start_async())

    await run_burst(app)
    states = [task.status.value for task in good(await handle.tasks_async())]
    if wait == "sleep":
        db.execute("update horsies_workflow_tasks set wait_until = now() where node_id = 'wait'")
    else:
        good(await app.send_event_async("paid", "42", 5))
    await run_burst(app)

    assert states == ["COMPLETED", "RUNNING", "PENDING"]
    assert (await handle.get_async(0)).unwrap() == 2
