"""Workflows on a real worker: joins, wiring, children, waits, fan-out, control."""

import asyncio
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from horsies import (
    Horsies,
    OnError,
    SleepNode,
    SubWorkflowNode,
    TaskError,
    TaskNode,
    TaskResult,
    WorkflowContext,
    WorkflowDefinition,
    WorkflowHandle,
    WorkflowMeta,
    WorkflowSpec,
    WorkflowStatus,
    from_node,
)
from support.apps import good, working
from support.database import Database

NewApp = Callable[..., Horsies]
Numbers = TaskResult[int, TaskError]


class Tasks:
    """The tasks of these tests on one app."""

    def __init__(self, app: Horsies) -> None:
        self.app = app

        @app.task("number")
        async def number(value: int) -> TaskResult[int, TaskError]:
            if value < 0:
                return TaskResult(err=TaskError(error_code="NEGATIVE", message=str(value)))
            return TaskResult(ok=value)

        @app.task("double")
        async def double(value: TaskResult[int, TaskError]) -> TaskResult[int, TaskError]:
            return TaskResult(ok=2 * value.unwrap())

        @app.task("add")
        async def add(
            left: TaskResult[int, TaskError], right: TaskResult[int, TaskError]
        ) -> TaskResult[int, TaskError]:
            return TaskResult(ok=left.unwrap() + right.unwrap())

        @app.task("count_to")
        async def count_to(limit: int) -> TaskResult[list[int], TaskError]:
            return TaskResult(ok=list(range(limit)))

        self.number, self.double, self.add, self.count_to = number, double, add, count_to


@pytest.fixture
def tasks(new_app: NewApp) -> Tasks:
    return Tasks(new_app())


async def run(spec: WorkflowSpec[Any], **settings: Any) -> tuple[WorkflowHandle[Any], Any]:
    """Start a workflow and wait for its end on a worker of its own."""
    async with working(spec.broker.app, **settings):  # type: ignore[union-attr]
        handle = good(await spec.start_async())
        return handle, await handle.get_async(timeout_ms=10_000)


async def test_diamond_hands_results_on(tasks: Tasks) -> None:
    start = tasks.number.node(node_id="start")(value=3)
    left = tasks.double.node(node_id="left")(value=from_node(start))
    right = tasks.double.node(node_id="right")(value=from_node(start))
    end = tasks.add.node(node_id="end")(left=from_node(left), right=from_node(right))
    spec = tasks.app.workflow(
        "diamond", [start, left, right, end], output=end, definition_key="diamond.v1"
    )

    handle, result = await run(spec)

    assert result.unwrap() == 12
    assert (await handle.status_async()).unwrap() is WorkflowStatus.COMPLETED
    infos = (await handle.tasks_async()).unwrap()
    assert [info.status.value for info in infos] == ["COMPLETED"] * 4
    assert infos[3].started_at > max(infos[1].completed_at, infos[2].completed_at)  # type: ignore[operator,type-var]


async def test_failure_skips_what_waits_for_it(tasks: Tasks) -> None:
    bad = tasks.number.node(node_id="bad")(value=-1)
    after = tasks.double.node(node_id="after")(value=from_node(bad))
    good_one = tasks.number.node(node_id="good")(value=1)
    spec = tasks.app.workflow("broken", [bad, after, good_one], definition_key="broken.v1")

    handle, result = await run(spec)

    assert result.err_value.error_code == "NEGATIVE"
    infos = {info.node_id: info for info in (await handle.tasks_async()).unwrap()}
    assert {key: info.status.value for key, info in infos.items()} == {
        "bad": "FAILED",
        "after": "SKIPPED",
        "good": "COMPLETED",
    }
    assert infos["after"].started_at is None
    assert (await handle.result_for_async(good_one)).unwrap() == 1


async def test_context_and_metadata_reach_the_task(new_app: NewApp) -> None:
    app = new_app()
    tasks = Tasks(app)

    @app.task("report")
    async def report(
        workflow_ctx: WorkflowContext | None = None, workflow_meta: WorkflowMeta | None = None
    ) -> TaskResult[list[Any], TaskError]:
        assert workflow_ctx is not None
        assert workflow_meta is not None
        first = workflow_ctx.result_for(one).unwrap()
        return TaskResult(ok=[first, workflow_meta.workflow_id, workflow_meta.task_index])

    one = tasks.number.node(node_id="one")(value=7)
    last = report.node(node_id="report", waits_for=[one], workflow_ctx_from=[one])()
    spec = app.workflow("context", [one, last], output=last, definition_key="context.v1")

    handle, result = await run(spec)

    assert result.unwrap() == [7, handle.workflow_id, 1]


async def test_result_without_output_holds_the_last_nodes(tasks: Tasks) -> None:
    one = tasks.number.node(node_id="one")(value=1)
    two = tasks.double.node(node_id="two")(value=from_node(one))
    three = tasks.number.node(node_id="three")(value=3)
    spec = tasks.app.workflow("ends", [one, two, three], definition_key="ends.v1")

    _, result = await run(spec)

    assert {key: value.unwrap() for key, value in result.unwrap().items()} == {"two": 2, "three": 3}


async def test_pause_on_error_resumes_and_fails(tasks: Tasks) -> None:
    bad = tasks.number.node(node_id="bad")(value=-1)
    after = tasks.double.node(node_id="after")(value=from_node(bad))
    spec = tasks.app.workflow(
        "pausing", [bad, after], on_error=OnError.PAUSE, definition_key="pausing.v1"
    )

    async with working(tasks.app):
        handle = good(await spec.start_async())
        paused = await handle.get_async(timeout_ms=10_000)
        assert paused.err_value.error_code == "WORKFLOW_PAUSED"
        assert (await handle.resume_async()).unwrap() is True
        failed = await handle.get_async(timeout_ms=10_000)

    assert failed.err_value.error_code == "NEGATIVE"
    assert [i.status.value for i in (await handle.tasks_async()).unwrap()] == ["FAILED", "SKIPPED"]


async def test_child_workflow_gives_its_output(tasks: Tasks) -> None:
    app = tasks.app

    class Doubling(WorkflowDefinition[int]):
        name = "doubling"
        definition_key = "test_running.doubling.v1"

        @classmethod
        def build_with(cls, app: Any, value: TaskResult[int, TaskError], plus: int) -> Any:
            one = tasks.number.node(node_id="one")(value=value.unwrap() + plus)
            two = tasks.double.node(node_id="two")(value=from_node(one))
            return app.workflow("doubling", [one, two], output=two, definition_key="x")

    first = tasks.number.node(node_id="first")(value=4)
    child: SubWorkflowNode[int] = SubWorkflowNode(
        workflow_def=Doubling,
        kwargs={"plus": 1},
        waits_for=[first],
        args_from={"value": first},
        node_id="child",
    )
    last = tasks.double.node(node_id="last")(value=from_node(child))
    spec = app.workflow("parent", [first, child, last], output=last, definition_key="parent.v1")

    handle, result = await run(spec)

    assert result.unwrap() == 20
    info = (await handle.tasks_async()).unwrap()[1]
    assert info.sub_workflow_summary is not None
    assert (info.sub_workflow_summary.total_tasks, info.sub_workflow_summary.output) == (2, 10)


async def test_fan_out_runs_once_per_element_in_order(tasks: Tasks) -> None:
    many = tasks.count_to.node(node_id="many")(limit=25)
    squared = tasks.number.node(node_id="each", each=from_node(many), max_in_flight=4)()
    spec = tasks.app.workflow("fan", [many, squared], output=squared, definition_key="fan.v1")

    _, result = await run(spec)

    assert result.unwrap() == list(range(25))


async def test_fan_out_over_nothing_gives_an_empty_list(tasks: Tasks) -> None:
    many = tasks.count_to.node(node_id="many")(limit=0)
    squared = tasks.number.node(node_id="each", each=from_node(many))()
    spec = tasks.app.workflow("fan", [many, squared], output=squared, definition_key="fan.v1")

    _, result = await run(spec)

    assert result.unwrap() == []


async def test_sleep_and_event_hold_no_slot(new_app: NewApp) -> None:
    app = new_app()
    tasks = Tasks(app)
    paid = app.event("paid", int)
    nap = SleepNode(duration=timedelta(milliseconds=200), node_id="nap")
    wait = paid.node(key="order-1", node_id="wait", waits_for=[nap])
    last = tasks.double.node(node_id="last")(value=from_node(wait))
    spec = app.workflow("waiting", [nap, wait, last], output=last, definition_key="waiting.v1")

    async with working(app):
        handle = good(await spec.start_async())
        assert (await handle.get_async(timeout_ms=600)).err_value.error_code == "WAIT_TIMEOUT"
        assert (await app.send_event_async("paid", "order-1", 21)).is_ok()
        result = await handle.get_async(timeout_ms=10_000)

    assert result.unwrap() == 42


async def test_event_that_comes_early_is_kept(new_app: NewApp) -> None:
    app = new_app()
    paid = app.event("paid", int)
    wait = paid.node(key="early", node_id="wait")
    spec = app.workflow("early", [wait], output=wait, definition_key="early.v1")
    good(await app.send_event_async("paid", "early", 5))

    _, result = await run(spec)

    assert result.unwrap() == 5


async def test_event_that_does_not_come_fails_the_node(new_app: NewApp) -> None:
    app = new_app()
    paid = app.event("paid", int)
    wait = paid.node(key="never", node_id="wait", timeout=timedelta(milliseconds=100))
    spec = app.workflow("never", [wait], output=wait, definition_key="never.v1")

    _, result = await run(spec)

    assert result.err_value.error_code == "TASK_EXPIRED"


async def test_retry_runs_only_what_failed(new_app: NewApp, db: Database) -> None:
    app = new_app()
    tasks = Tasks(app)
    is_broken = [True]

    @app.task("flaky")
    async def flaky(value: TaskResult[int, TaskError]) -> TaskResult[int, TaskError]:
        if is_broken[0]:
            return TaskResult(err=TaskError(error_code="BROKEN"))
        return TaskResult(ok=value.unwrap())

    one = tasks.number.node(node_id="one")(value=2)
    two = flaky.node(node_id="two")(value=from_node(one))
    three = tasks.double.node(node_id="three")(value=from_node(two))
    spec = app.workflow("flaky", [one, two, three], output=three, definition_key="flaky.v1")

    async with working(app):
        handle = good(await spec.start_async())
        assert (await handle.get_async(timeout_ms=10_000)).err_value.error_code == "BROKEN"
        is_broken[0] = False
        assert (await handle.retry_async()).unwrap() is True
        assert (await handle.get_async(timeout_ms=10_000)).unwrap() == 4

    runs = db.execute("select task_id, count(*) as n from horsies_task_attempts group by task_id")
    assert sorted(row["n"] for row in runs) == [1, 1, 2]


async def test_cancel_skips_what_has_not_started(new_app: NewApp) -> None:
    app = new_app()
    tasks = Tasks(app)
    gate = asyncio.Event()
    began = asyncio.Event()

    @app.task("slow")
    async def slow() -> TaskResult[int, TaskError]:
        began.set()
        await gate.wait()
        return TaskResult(ok=1)

    one = TaskNode(fn=slow, node_id="one")
    two = tasks.double.node(node_id="two")(value=from_node(one))
    spec = app.workflow("cancelled", [one, two], definition_key="cancelled.v1")

    async with working(app):
        handle = good(await spec.start_async())
        await began.wait()
        assert (await handle.cancel_async()).is_ok()
        result = await handle.get_async(timeout_ms=10_000)
        gate.set()

    assert result.err_value.error_code == "WORKFLOW_CANCELLED"
    states = [info.status.value for info in (await handle.tasks_async()).unwrap()]
    assert states == ["COMPLETED", "SKIPPED"]
    assert (await handle.status_async()).unwrap() is WorkflowStatus.CANCELLED
