"""Starts from Python (docs/contract/workflows.md §8): failures are values."""

import asyncio
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from sqlalchemy import text

from horsies import (
    Horsies,
    PostgresConfig,
    SubWorkflowNode,
    TaskError,
    TaskNode,
    TaskResult,
    WorkflowDefinition,
    WorkflowSpec,
    WorkflowStartErrorCode,
    WorkflowValidationError,
    from_node,
)
from horsies.broker.postgres import PostgresBroker
from horsies.workflows.start import (
    start_many,
    start_many_async,
    start_workflow,
    start_workflow_async,
)
from support.apps import bad, good, make_app, working
from support.database import Database
from support.flows import codes
from support.proxy import proxied
from support.transactions import AWAITABLE, BLOCKING

NewApp = Callable[..., Horsies]


def number_app(app: Horsies) -> Horsies:
    @app.task("number")
    async def number(value: int) -> TaskResult[int, TaskError]:
        return TaskResult(ok=value)

    @app.task("double")
    async def double(value: TaskResult[int, TaskError]) -> TaskResult[int, TaskError]:
        return TaskResult(ok=2 * value.unwrap())

    return app


@pytest.fixture
def app(new_app: NewApp) -> Horsies:
    return number_app(new_app())


def doubling(app: Horsies, name: str = "doubling") -> WorkflowSpec[int]:
    one = app.tasks["number"].node(node_id="one")(value=3)
    two = app.tasks["double"].node(node_id="two")(value=from_node(one))
    spec: WorkflowSpec[int] = app.workflow(name, [one, two], output=two, definition_key=f"{name}.1")
    return spec


def stored(db: Database) -> tuple[int, int, int]:
    """How many workflows, nodes and tasks there are."""
    return (
        db.value("select count(*) from horsies_workflows"),
        db.value("select count(*) from horsies_workflow_tasks"),
        db.value("select count(*) from horsies_tasks"),
    )


def test_blocking_start_and_get(app: Horsies, db: Database) -> None:
    handle = doubling(app).start().unwrap()

    assert stored(db) == (1, 2, 1)
    assert handle.get(timeout_ms=50).err_value.error_code == "WAIT_TIMEOUT"
    assert handle.status().unwrap().value == "RUNNING"


def test_same_id_and_name_is_the_same_workflow(app: Horsies, db: Database) -> None:
    first = good(doubling(app).start("an-id"))
    again = good(doubling(app).start("an-id"))

    assert first.workflow_id == again.workflow_id == "an-id"
    assert stored(db) == (1, 2, 1)


def test_rows_tell_when_it_was_sent_and_what_runs(app: Horsies, db: Database) -> None:
    sent_at = datetime(2030, 1, 1, tzinfo=UTC)

    handle = good(start_workflow(doubling(app), app.get_broker(), "an-id", sent_at))

    assert handle.workflow_id == "an-id"
    (row,) = db.execute("select sent_at, definition_key, started_at from horsies_workflows")
    assert (row["sent_at"], row["definition_key"]) == (sent_at, "doubling.1")
    assert row["started_at"] is not None
    nodes = db.execute("select task_index, node_id, task_name from horsies_workflow_tasks")
    assert sorted(tuple(node.values()) for node in nodes) == [
        (0, "one", "number"),
        (1, "two", "double"),
    ]


def test_id_of_a_workflow_of_another_name_is_refused(app: Horsies, db: Database) -> None:
    good(doubling(app).start("an-id"))

    error = bad(doubling(app, "other").start("an-id"))

    assert (error.code, error.retryable) == (WorkflowStartErrorCode.VALIDATION_FAILED, False)
    assert (error.workflow_id, error.workflow_name) == ("an-id", "other")
    assert stored(db) == (1, 2, 1)


async def test_many_starts_of_one_id_at_once_give_one_workflow(app: Horsies, db: Database) -> None:
    async with asyncio.TaskGroup() as group:
        starts = [group.create_task(doubling(app).start_async("one")) for _ in range(20)]

    assert {good(start.result()).workflow_id for start in starts} == {"one"}
    assert stored(db) == (1, 2, 1)


def test_start_without_broker_is_a_value(app: Horsies) -> None:
    spec = WorkflowSpec(name="free", tasks=[app.tasks["number"].node(node_id="n")(value=1)])

    error = bad(spec.start())

    assert error.code is WorkflowStartErrorCode.BROKER_NOT_CONFIGURED
    assert error.workflow_id


def test_unresolved_queue_and_key_are_refused_at_start(app: Horsies, db: Database) -> None:
    spec = WorkflowSpec(name="free", tasks=[app.tasks["number"].node(node_id="n")(value=1)])

    error = bad(start_workflow(spec, app.get_broker()))

    assert error.code is WorkflowStartErrorCode.VALIDATION_FAILED
    assert "definition_key" in error.message
    assert "has no queue" in error.message
    assert stored(db) == (0, 0, 0)


class Texts(WorkflowDefinition[str]):
    """A definition that promises a text."""

    name = "texts"
    definition_key = "tests.starting.texts"


def unready(app: Horsies, **options: Any) -> WorkflowSpec[Any]:
    """A spec that was not made by `app.workflow`, complete but for `options`."""
    node: Any = TaskNode(fn=app.tasks["number"], kwargs={"value": 1}, queue="default", priority=1)
    for name in ("queue", "priority"):
        if name in options:
            setattr(node, name, options.pop(name))
    child: Any = SubWorkflowNode(workflow_def=Texts) if options.pop("has_child", None) else None
    nodes = [node] if child is None else [node, child]
    promised = options.pop("promised", None)
    fields = {"name": "free", "tasks": nodes, "output": node, "definition_key": "k", **options}
    spec = WorkflowSpec[Any](**fields)
    vars(spec)["workflow_def_cls"] = promised  # construction would refuse it
    return spec


@pytest.mark.parametrize(
    ("code", "options"),
    [
        ("HRS-014", {"queue": None}),
        ("HRS-015", {"priority": None}),
        ("HRS-016", {"definition_key": None}),
        ("HRS-016", {"definition_key": " "}),
        ("HRS-018", {"has_child": True}),
        ("HRS-025", {"promised": Texts}),
    ],
)
async def test_start_checks_without_horsies_check(
    app: Horsies, db: Database, code: str, options: dict[str, Any]
) -> None:
    spec = unready(app, **options)
    broker = PostgresBroker(app.config.broker) if code == "HRS-018" else app.get_broker()

    errors = [
        bad(start_workflow(spec, broker)),
        bad(await start_workflow_async(spec, broker)),
        bad(start_many([spec], broker)),
    ]
    broker.close()

    assert {error.code for error in errors} == {WorkflowStartErrorCode.VALIDATION_FAILED}
    assert {codes(error.exception)[0] for error in errors} == {code}
    assert all(error.workflow_id and not error.retryable for error in errors)
    assert stored(db) == (0, 0, 0)


def test_output_that_breaks_the_promise_of_a_definition_is_refused(app: Horsies) -> None:
    node: Any = TaskNode(fn=app.tasks["number"], kwargs={"value": 1}, queue="default", priority=1)

    with pytest.raises(WorkflowValidationError) as caught:
        WorkflowSpec(
            name="texts", tasks=[node], output=node, definition_key="k", workflow_def_cls=Texts
        )

    assert codes(caught.value) == ["HRS-025"]


def test_arguments_over_the_limit_are_refused(new_app: NewApp, db: Database) -> None:
    app = new_app(payload_max_bytes=1024)

    @app.task("text")
    async def text(value: str) -> TaskResult[None, TaskError]:
        return TaskResult(ok=None)

    spec = app.workflow("big", [text.node(node_id="n")(value="x" * 2000)], definition_key="big.1")

    error = bad(spec.start())

    assert error.code is WorkflowStartErrorCode.VALIDATION_FAILED
    assert "payload_max_bytes" in error.message
    assert stored(db) == (0, 0, 0)


def test_suppressed_sends_start_nothing(
    app: Horsies, db: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    spec = doubling(app)
    monkeypatch.setenv("HORSIES_SUPPRESS_SENDS", "1")

    error = bad(spec.start())

    assert error.code is WorkflowStartErrorCode.VALIDATION_FAILED
    assert stored(db) == (0, 0, 0)


def test_failed_start_is_tried_again_under_its_id(database_url: str, db: Database) -> None:
    with proxied(database_url) as (proxy, url):
        app = number_app(make_app(url))
        spec = doubling(app)
        good(spec.start("warm"))
        proxy.refuses = True
        proxy.hang_up()
        error = bad(spec.start("wanted"))
        proxy.refuses = False
        handle = good(spec.retry_start(error))
        app.get_broker().close()

    assert (error.code, error.retryable) == (WorkflowStartErrorCode.ENQUEUE_FAILED, True)
    assert handle.workflow_id == error.workflow_id == "wanted"
    assert stored(db) == (2, 4, 2)


async def test_failed_start_is_tried_again_awaitably(database_url: str, db: Database) -> None:
    with proxied(database_url) as (proxy, url):
        app = number_app(make_app(url))
        spec = doubling(app)
        good(await spec.start_async("warm"))
        proxy.refuses = True
        proxy.hang_up()
        error = bad(await spec.start_async("wanted"))
        proxy.refuses = False
        handle = good(await spec.retry_start_async(error))
        other = bad(await doubling(app, "other").retry_start_async(error))
        await app.get_broker().close_async()

    assert handle.workflow_id == "wanted"
    assert other.code is WorkflowStartErrorCode.VALIDATION_FAILED
    assert stored(db) == (2, 4, 2)


async def test_anything_unexpected_is_internal(app: Horsies, db: Database) -> None:
    spec = doubling(app)
    no_broker: Any = object()

    errors = [
        bad(start_workflow(spec, no_broker, "an-id")),
        bad(await start_workflow_async(spec, no_broker, "an-id")),
    ]

    assert {(e.code.value, e.retryable, e.workflow_id) for e in errors} == {
        ("INTERNAL_FAILED", False, "an-id")
    }
    assert all(isinstance(error.exception, AttributeError) for error in errors)
    assert stored(db) == (0, 0, 0)


def test_resend_waits_longer_each_time_and_gives_up(
    database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    pauses: list[float] = []
    with proxied(database_url) as (proxy, url):
        app = number_app(make_app(url, resend_on_transient_err=True))
        spec = doubling(app)
        good(spec.start())
        proxy.refuses = True
        proxy.hang_up()
        monkeypatch.setattr("horsies.workflows.start.time.sleep", pauses.append)

        error = bad(spec.start())
        app.get_broker().close()

    assert [pause for pause in pauses if pause >= 0.2] == [0.2, 0.4, 0.8]
    assert (error.code, error.retryable) == (WorkflowStartErrorCode.ENQUEUE_FAILED, True)


def test_retry_of_another_failure_or_workflow_is_refused(app: Horsies) -> None:
    good(doubling(app).start("an-id"))
    mismatch = bad(doubling(app, "other").start("an-id"))

    assert bad(doubling(app, "other").retry_start(mismatch)).code is (
        WorkflowStartErrorCode.VALIDATION_FAILED
    )


def test_start_resends_by_itself_after_a_cut(database_url: str, db: Database) -> None:
    with proxied(database_url) as (proxy, url):
        app = number_app(make_app(url, resend_on_transient_err=True))
        spec = doubling(app)
        good(spec.start())
        proxy.hang_up()

        handle = good(spec.start("again"))
        app.get_broker().close()

    assert handle.workflow_id == "again"
    assert stored(db) == (2, 4, 2)


def test_unreachable_database_is_a_retryable_value() -> None:
    broker = PostgresConfig(database_url="postgresql://127.0.0.1:1/nowhere", pool_timeout=1.0)
    app = number_app(make_app("", broker=broker))

    error = bad(doubling(app).start())
    app.get_broker().close()

    assert (error.code, error.retryable) == (WorkflowStartErrorCode.ENQUEUE_FAILED, True)


def test_many_start_together_or_not_at_all(app: Horsies, db: Database) -> None:
    broker = app.get_broker()

    handles = good(start_many([doubling(app) for _ in range(50)], broker))
    unready = WorkflowSpec(name="x", tasks=[app.tasks["number"].node(node_id="n")(value=1)])
    error = bad(start_many([doubling(app), unready], broker))

    assert len({handle.workflow_id for handle in handles}) == 50
    assert error.workflow_name == "x"
    assert stored(db) == (50, 100, 50)


async def test_many_started_awaitably_end(app: Horsies) -> None:
    handles = good(await start_many_async([doubling(app) for _ in range(20)], app.get_broker()))

    async with working(app):
        results = [await handle.get_async(10_000) for handle in handles]

    assert [result.unwrap() for result in results] == [6] * 20


@pytest.mark.parametrize("end", ["commit", "rollback"])
@pytest.mark.parametrize("driver", ["psycopg", "SQLAlchemy connection", "SQLAlchemy session"])
def test_workflow_appears_with_the_users_rows_or_not_at_all(
    app: Horsies, db: Database, database_url: str, driver: str, end: str
) -> None:
    db.execute("create table orders (id integer)")
    insert = "insert into orders values (1)"

    with BLOCKING[driver](database_url) as begun:
        begun.connection.execute(insert if driver == "psycopg" else text(insert))
        handle = good(doubling(app).start(connection=begun.connection))
        before = stored(db)
        getattr(begun, end)()

    assert before == (0, 0, 0)
    found = (db.value("select count(*) from orders"), *stored(db))
    assert found == ((1, 1, 2, 1) if end == "commit" else (0, 0, 0, 0))
    assert handle.status().is_ok() == (end == "commit")


@pytest.mark.parametrize("end", ["commit", "rollback"])
@pytest.mark.parametrize("driver", ["psycopg", "asyncpg", "SQLAlchemy session, asyncpg"])
async def test_workflow_started_awaitably_joins_the_users_transaction(
    app: Horsies, db: Database, database_url: str, driver: str, end: str
) -> None:
    async with AWAITABLE[driver](database_url) as begun:
        good(await doubling(app).start_async(connection=begun.connection))
        before = stored(db)
        await getattr(begun, end)()

    assert before == (0, 0, 0)
    assert stored(db) == ((1, 2, 1) if end == "commit" else (0, 0, 0))


@pytest.mark.seed("S58")
async def test_deadline_of_a_node_is_that_of_its_task(app: Horsies, db: Database) -> None:
    overdue = datetime.now(UTC) - timedelta(seconds=1)
    late = app.tasks["number"].node(node_id="late", good_until=overdue)(value=1)
    after = app.tasks["double"].node(node_id="after")(value=from_node(late))
    spec = app.workflow("late", [late, after], definition_key="late.1")
    handle = good(await spec.start_async())

    async with working(app):
        result = await handle.get_async(10_000)

    assert result.err_value.error_code == "TASK_EXPIRED"
    assert db.value("select good_until from horsies_tasks") == overdue
    assert [i.status.value for i in (await handle.tasks_async()).unwrap()] == ["FAILED", "SKIPPED"]
