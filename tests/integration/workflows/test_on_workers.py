"""Workflows on real workers: executors, retries, children, handles, polling, burst, size, costs."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from horsies import (
    Horsies,
    NodeKey,
    Ok,
    RetryPolicy,
    SubWorkflowError,
    SubWorkflowNode,
    TaskError,
    TaskNode,
    TaskResult,
    WorkflowContext,
    WorkflowDefinition,
    WorkflowHandle,
    WorkflowMeta,
    from_node,
)
from horsies.config import PostgresConfig, WorkerResilienceConfig
from horsies.workflows.control import (
    pause_workflow,
    pause_workflow_sync,
    resume_workflow,
    resume_workflow_sync,
)
from support.apps import bad, good, make_app, working
from support.database import Database
from support.proxy import proxied
from support.traffic import counted
from support.workers import LEDGER, WorkerProcess, load_app_module

NewApp = Callable[..., Horsies]


class Nested(WorkflowDefinition[int]):
    """A chain of children, one in another, as deep as asked for."""

    name = "nested"
    definition_key = "tests.on_workers.nested"

    @classmethod
    def build_with(cls, app: Any, levels: int) -> Any:
        node: Any
        if levels == 0:
            node = app.tasks["number"].node(node_id="n")(value=7)
        else:
            node = SubWorkflowNode(workflow_def=cls, kwargs={"levels": levels - 1}, node_id="n")
        return app.workflow("nested", [node], output=node, definition_key="x")


class Unbuildable(WorkflowDefinition[int]):
    """A child whose `build_with` fails."""

    name = "unbuildable"
    definition_key = "tests.on_workers.unbuildable"

    @classmethod
    def build_with(cls, app: Any) -> Any:
        raise RuntimeError("cannot build")


class Failing(WorkflowDefinition[int]):
    """A child with a failing node."""

    name = "failing"
    definition_key = "tests.on_workers.failing"

    @classmethod
    def build_with(cls, app: Any) -> Any:
        node = app.tasks["number"].node(node_id="n")(value=-1)
        return app.workflow("failing", [node], output=node, definition_key="x")


@pytest.fixture
def app(new_app: NewApp) -> Horsies:
    return with_tasks(new_app())


def with_tasks(app: Horsies) -> Horsies:
    @app.task("number")
    async def number(value: int) -> TaskResult[int, TaskError]:
        if value < 0:
            return TaskResult(err=TaskError(error_code="NEGATIVE"))
        return TaskResult(ok=value)

    return app


async def finished(app: Horsies, spec: Any, within_ms: int = 20_000) -> tuple[Any, Any]:
    async with working(app):
        handle = good(await spec.start_async())
        return handle, await handle.get_async(within_ms)


def told(
    value: TaskResult[int, TaskError], ctx: WorkflowContext | None, meta: WorkflowMeta | None
) -> TaskResult[list[Any], TaskError]:
    assert ctx is not None
    assert meta is not None
    return TaskResult(
        ok=[value.unwrap(), ctx.result_for(NodeKey[int]("one")).unwrap(), meta.task_index]
    )


@pytest.mark.parametrize("kind", ["in_loop", "in_thread"])
async def test_context_metadata_and_results_reach_every_executor(
    new_app: NewApp, kind: str
) -> None:
    app = with_tasks(new_app())

    @app.task("in_loop")
    async def in_loop(
        value: TaskResult[int, TaskError],
        workflow_ctx: WorkflowContext | None = None,
        workflow_meta: WorkflowMeta | None = None,
    ) -> TaskResult[list[Any], TaskError]:
        return told(value, workflow_ctx, workflow_meta)

    @app.task("in_thread", execution="blocking")
    def in_thread(
        value: TaskResult[int, TaskError],
        workflow_ctx: WorkflowContext | None = None,
        workflow_meta: WorkflowMeta | None = None,
    ) -> TaskResult[list[Any], TaskError]:
        return told(value, workflow_ctx, workflow_meta)

    one = app.tasks["number"].node(node_id="one")(value=4)
    last = app.tasks[kind].node(node_id="last", workflow_ctx_from=[one])(value=from_node(one))
    spec = app.workflow("telling", [one, last], output=last, definition_key="telling.1")

    _, result = await finished(app, spec)

    assert result.unwrap() == [4, 4, 1]


async def test_node_fails_only_after_its_last_attempt(new_app: NewApp, db: Database) -> None:
    app = new_app()
    policy = RetryPolicy.fixed([1, 1], auto_retry_for=["BROKEN"], jitter=False)

    @app.task("broken", retry_policy=policy)
    async def broken() -> TaskResult[int, TaskError]:
        return TaskResult(err=TaskError(error_code="BROKEN"))

    spec = app.workflow("retried", [broken.node(node_id="n")()], definition_key="retried.1")

    _, result = await finished(app, spec)

    assert result.err_value.error_code == "BROKEN"
    assert db.value("select count(*) from horsies_task_attempts") == 3


async def test_children_nest_fifty_deep(app: Horsies, db: Database) -> None:
    node: Any = SubWorkflowNode(workflow_def=Nested, kwargs={"levels": 49}, node_id="top")
    spec = app.workflow("top", [node], output=node, definition_key="top.1")

    _, result = await finished(app, spec)

    assert result.unwrap() == 7
    assert db.value("select max(depth) from horsies_workflows") == 50


async def test_child_that_cannot_be_built_fails_its_node(app: Horsies) -> None:
    node: Any = SubWorkflowNode(workflow_def=Unbuildable, node_id="n")
    spec = app.workflow("unbuilt", [node], definition_key="unbuilt.1")

    _, result = await finished(app, spec)

    assert result.err_value.error_code == "WORKFLOW_ENQUEUE_FAILED"
    assert "cannot build" in result.err_value.message


async def test_child_unknown_to_the_worker_fails_its_node(app: Horsies, db: Database) -> None:
    node: Any = SubWorkflowNode(workflow_def=Failing, node_id="n")
    spec = app.workflow("unknown", [node], definition_key="unknown.1")
    handle = good(await spec.start_async())
    db.execute("update horsies_workflow_tasks set sub_definition_key = 'nowhere'")

    async with working(app):
        result = await handle.get_async(20_000)

    assert result.err_value.error_code == "SUBWORKFLOW_LOAD_FAILED"


async def test_failed_child_fails_its_node_with_its_summary(app: Horsies) -> None:
    node: Any = SubWorkflowNode(workflow_def=Failing, node_id="n")
    spec = app.workflow("parent", [node], definition_key="parent.1")

    handle, result = await finished(app, spec)

    error = result.err_value
    assert isinstance(error, SubWorkflowError)
    assert error.error_code == "SUBWORKFLOW_FAILED"
    assert error.sub_workflow_summary.failed_tasks == 1
    (info,) = (await handle.tasks_async()).unwrap()
    assert info.sub_workflow_id == error.sub_workflow_id


async def test_every_answer_of_get(app: Horsies, db: Database) -> None:
    def spec(value: int) -> Any:
        node = app.tasks["number"].node(node_id="n")(value=value)
        return app.workflow("one", [node], output=node, definition_key="one.1")

    waiting = good(await spec(1).start_async())
    timed_out = await waiting.get_async(20)
    good(await waiting.pause_async())
    paused = await waiting.get_async(20)
    good(await waiting.cancel_async())
    cancelled = await waiting.get_async(20)
    unknown = await WorkflowHandle[int]("nowhere", app.get_broker()).get_async(20)
    _, failed = await finished(app, spec(-1))
    handle, completed = await finished(app, spec(5))
    db.execute("update horsies_workflows set result = 'x' where id = %s", handle.workflow_id)
    unreadable = await handle.get_async(20)
    db.execute("update horsies_workflows set result = null where id = %s", handle.workflow_id)
    missing = await handle.get_async(20)
    db.execute(
        "update horsies_workflows set status = 'FAILED', error = null where id = %s",
        handle.workflow_id,
    )
    no_error = await handle.get_async(20)

    assert completed.unwrap() == 5
    answers = [timed_out, paused, cancelled, unknown, failed, unreadable, missing, no_error]
    assert [answer.err_value.error_code for answer in answers] == [
        "WAIT_TIMEOUT", "WORKFLOW_PAUSED", "WORKFLOW_CANCELLED", "WORKFLOW_NOT_FOUND", "NEGATIVE",
        "RESULT_DESERIALIZATION_ERROR", "RESULT_NOT_AVAILABLE", "WORKFLOW_FAILED",
    ]  # fmt: skip


async def test_database_that_is_away_is_a_value_of_every_method(database_url: str) -> None:
    with proxied(database_url) as (proxy, url):
        app = with_tasks(make_app(url, broker=PostgresConfig(database_url=url, pool_timeout=1.0)))
        node = app.tasks["number"].node(node_id="n")(value=1)
        spec = app.workflow("one", [node], output=node, definition_key="one.1")
        handle = good(spec.start())
        proxy.refuses = True
        proxy.hang_up()

        got = [handle.get(0), handle.get(500), await handle.get_async(0)]
        got += [await handle.get_async(500), handle.result_for(node)]
        refused = [handle.status(), handle.tasks(), handle.results(), handle.pause()]
        refused += [handle.resume(), handle.cancel(), await handle.status_async()]
        proxy.refuses = False
        back = await handle.status_async()
        app.get_broker().close()

    assert {result.err_value.error_code for result in got} == {"BROKER_ERROR"}
    assert {(bad(one).code.value, bad(one).retryable) for one in refused} == {
        ("DB_OPERATION_FAILED", True)
    }
    assert good(back).value == "RUNNING"


def test_unknown_workflow_is_told_by_every_method(app: Horsies) -> None:
    handle = WorkflowHandle[int]("nowhere", app.get_broker())

    calls = [handle.status, handle.tasks, handle.results, handle.pause, handle.resume]
    calls += [handle.cancel, handle.retry]  # type: ignore[list-item]

    assert {bad(call()).code.value for call in calls} == {"WORKFLOW_NOT_FOUND"}
    assert handle.result_for(NodeKey[int]("n")).err_value.error_code == "RESULT_NOT_READY"
    unnamed: Any = TaskNode(fn=app.tasks["number"], kwargs={"value": 1})
    assert handle.result_for(unnamed).err_value.error_code == "WORKFLOW_CTX_MISSING_ID"


async def test_anything_unexpected_is_a_value_of_every_method() -> None:
    no_broker: Any = object()
    handle = WorkflowHandle[int]("an-id", no_broker)

    answers: list[Any] = [handle.status(), handle.tasks(), handle.results(), handle.pause()]
    answers += [handle.resume(), handle.cancel(), handle.retry(), await handle.status_async()]
    answers += [await handle.cancel_async(), await pause_workflow(no_broker, "an-id")]

    assert {(bad(one).code.value, bad(one).retryable, bad(one).workflow_id) for one in answers} == {
        ("INTERNAL_FAILED", False, "an-id")
    }
    assert all(isinstance(bad(one).exception, AttributeError) for one in answers)


async def test_results_of_finished_nodes_by_their_ids(app: Horsies) -> None:
    number = app.tasks["number"]
    nodes = [number.node()(value=1), number.node(node_id="two")(value=2)]
    spec = app.workflow("my flow", nodes, definition_key="ids.1")

    handle, _ = await finished(app, spec)

    results = (await handle.results_async()).unwrap()
    assert {key: value.unwrap() for key, value in results.items()} == {"my_flow:0": 1, "two": 2}
    assert (await handle.result_for_async(nodes[0])).unwrap() == 1


async def test_cancel_of_an_ended_workflow_changes_nothing(app: Horsies, db: Database) -> None:
    spec = app.workflow(
        "one", [app.tasks["number"].node(node_id="n")(value=1)], definition_key="one.1"
    )
    completed, _ = await finished(app, spec)
    cancelled = good(spec.start())
    first = cancelled.cancel()
    before = db.execute("select * from horsies_workflows order by id")

    answers = [completed.cancel(), cancelled.cancel(), await completed.cancel_async()]

    assert [first, *answers] == [Ok(None)] * 4
    assert db.execute("select * from horsies_workflows order by id") == before


async def test_pause_and_resume_by_id(app: Horsies) -> None:
    spec = app.workflow(
        "one", [app.tasks["number"].node(node_id="n")(value=1)], definition_key="one.1"
    )
    broker = app.get_broker()
    first, second = good(await spec.start_async()), good(await spec.start_async())

    answers = [
        await pause_workflow(broker, first.workflow_id),
        await resume_workflow(broker, first.workflow_id),
        await asyncio.to_thread(pause_workflow_sync, broker, second.workflow_id),
        await asyncio.to_thread(resume_workflow_sync, broker, second.workflow_id),
        await resume_workflow(broker, second.workflow_id),
    ]

    assert [good(answer) for answer in answers] == [True, True, True, True, False]


async def test_steering_reaches_a_running_child(new_app: NewApp, db: Database) -> None:
    app = new_app()
    began, gate = asyncio.Event(), asyncio.Event()

    @app.task("number")
    async def number(value: int) -> TaskResult[int, TaskError]:
        began.set()
        await gate.wait()
        return TaskResult(ok=value)

    node: Any = SubWorkflowNode(workflow_def=Nested, kwargs={"levels": 2}, node_id="top")
    spec = app.workflow("top", [node], output=node, definition_key="top.1")
    statuses = "select array_agg(distinct status) from horsies_workflows"

    async with working(app):
        handle = good(await spec.start_async())
        await began.wait()
        good(await handle.pause_async())
        paused = db.value(statuses)
        good(await handle.resume_async())
        resumed = db.value(statuses)
        gate.set()
        result = await handle.get_async(20_000)

    assert db.value("select count(*) from horsies_workflows") == 4
    assert (paused, resumed) == (["PAUSED"], ["RUNNING"])
    assert result.unwrap() == 7


async def test_worker_that_cannot_listen_runs_workflows_by_polling(
    new_app: NewApp, database_url: str
) -> None:
    broker = PostgresConfig(database_url=database_url, pgbouncer_transaction_mode=True)
    app = with_tasks(
        new_app(broker=broker, resilience=WorkerResilienceConfig(notify_poll_interval_ms=1_000))
    )
    number = app.tasks["number"]
    one = number.node(node_id="one")(value=1)
    two = number.node(node_id="two", waits_for=[one])(value=2)
    spec = app.workflow("polled", [one, two], output=two, definition_key="polled.1")

    _, result = await finished(app, spec)

    assert result.unwrap() == 2


@pytest.mark.slow
async def test_ten_thousand_nodes_wide_start_and_end(app: Horsies) -> None:
    number = app.tasks["number"]
    wide = [number.node(node_id=f"n{i}")(value=i) for i in range(10_000)]
    last = number.node(node_id="last", waits_for=wide)(value=1)
    spec = app.workflow("wide", [*wide, last], output=last, definition_key="wide.1")

    async with working(app, concurrency=1_000):
        handle = good(await spec.start_async())
        result = await handle.get_async(60_000)

    assert result.unwrap() == 1


@pytest.mark.slow
async def test_thousand_levels_deep_start_and_end(app: Horsies) -> None:
    number = app.tasks["number"]
    chain = [number.node(node_id="n0")(value=0)]
    for level in range(1, 1_000):
        chain.append(number.node(node_id=f"n{level}", waits_for=[chain[-1]])(value=level))
    spec = app.workflow("deep", chain, output=chain[-1], definition_key="deep.1")

    _, result = await finished(app, spec, 180_000)  # a thousand hops, beside five other tests

    assert result.unwrap() == 999


async def test_start_is_a_bounded_number_of_statements(database_url: str) -> None:
    with counted(database_url) as (traffic, url):
        app = with_tasks(make_app(url))
        number = app.tasks["number"]

        def spec(count: int) -> Any:
            nodes = [number.node(node_id=f"n{i}")(value=i) for i in range(count)]
            return app.workflow("wide", nodes, definition_key="wide.1")

        good(spec(1).start())
        traffic.clear()
        good(spec(1_000).start())

        assert traffic.statements.total() <= 3
        app.get_broker().close()


async def test_fan_in_of_a_thousand_advances_in_few_statements(
    database_url: str, db: Database
) -> None:
    with counted(database_url) as (traffic, url):
        app = with_tasks(make_app(url))
        number = app.tasks["number"]
        wide = [number.node(node_id=f"n{i}")(value=i) for i in range(1_000)]
        last = number.node(node_id="last", waits_for=wide)(value=1)
        spec = app.workflow("wide", [*wide, last], output=last, definition_key="wide.1")
        handle = good(spec.start())
        traffic.clear()

        async with working(app, concurrency=1_000):
            result = await handle.get_async(60_000)
        await app.get_broker().close_async()

    assert result.unwrap() == 1
    assert traffic.statements["horsies_advance_tasks"] <= 20
    assert traffic.statements.total() <= 150


def test_burst_worker_ends_the_workflow_in_its_children_and_leaves(
    database_url: str, db: Database
) -> None:
    db.execute(LEDGER)
    module = load_app_module(database_url, {})
    one = module.record.node(node_id="one")(number=1)
    two = module.tell.node(node_id="two", workflow_ctx_from=[one])(value=from_node(one))
    spec = module.app.workflow("burst", [one, two], output=two, definition_key="burst.1")
    handle = good(spec.start())

    worker = WorkerProcess(database_url, "--burst")
    try:
        code = worker.wait()
        log = worker.log()
    finally:
        worker.close()

    assert code == 0, log
    pid = db.value("select pid from ledger")
    assert handle.get(0).unwrap() == [pid, pid, 1]
    assert pid != worker.pid
    module.app.get_broker().close()
