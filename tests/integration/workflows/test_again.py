"""What happens again: retries from a node, and workers that stop meanwhile."""

import asyncio
from collections.abc import Callable
from typing import Any

from horsies import Horsies, SubWorkflowNode, TaskError, TaskResult, WorkflowDefinition, from_node
from support.apps import good, working
from support.database import Database
from support.eventually import eventually_async

NewApp = Callable[..., Horsies]


def one_task(app: Horsies) -> Any:
    @app.task("echo_number")
    async def echo(value: TaskResult[int, TaskError] | None = None) -> TaskResult[int, TaskError]:
        return TaskResult(ok=1 if value is None else value.unwrap() + 1)

    return echo


async def test_retried_nodes_are_announced_and_do_not_wait_for_a_poll(new_app: NewApp) -> None:
    app = new_app(resilience={"notify_poll_interval_ms": 60_000})
    echo = one_task(app)
    a = echo.node(node_id="a")()
    b = echo.node(node_id="b")(value=from_node(a))
    c = echo.node(node_id="c")(value=from_node(b))
    spec = app.workflow("again", [a, b, c], output=c, definition_key="again.v1")

    async with working(app):
        handle = good(await spec.start_async())
        assert (await handle.get_async(timeout_ms=10_000)).unwrap() == 3
        assert good(await handle.retry_async(from_node=a)) is True
        result = await handle.get_async(timeout_ms=10_000)

    assert result.unwrap() == 3


async def test_stopping_worker_leaves_children_to_those_that_stay(
    new_app: NewApp, db: Database
) -> None:
    app = new_app()
    echo = one_task(app)

    class Child(WorkflowDefinition[int]):
        name = "child"
        definition_key = "test_again.child.v1"
        only = echo.node(node_id="only")()

    node: SubWorkflowNode[int] = SubWorkflowNode(workflow_def=Child, node_id="sub")
    spec = app.workflow("parent", [node], definition_key="parent_again.v1")
    gate = asyncio.Event()

    @app.task("holds")
    async def holds() -> TaskResult[int, TaskError]:
        await gate.wait()
        return TaskResult(ok=1)

    held = good(await holds.send_async())

    async def is_running() -> bool:
        return bool(db.status(held.task_id) == "RUNNING")

    async with working(app) as worker:
        await eventually_async(is_running)
        worker.stop()  # it drains as long as the task runs
        handle = good(await spec.start_async())
        await worker._workflows.run_once()
        states = db.execute("select status from horsies_workflow_tasks")
        gate.set()
        assert [row["status"] for row in states] == ["READY"]

    async with working(app):

        async def is_ended() -> bool:
            return (await handle.status_async()).unwrap().is_terminal

        await eventually_async(is_ended)
