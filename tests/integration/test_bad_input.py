"""Input and surroundings that are wrong: a clear answer, nothing left behind, the rest goes on."""

import asyncio
import logging
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit, urlunsplit

import psycopg
import pytest
from psycopg import sql

from horsies import (
    BrokerErrorCode,
    Horsies,
    PostgresBroker,
    PostgresConfig,
    TaskError,
    TaskResult,
    TaskSendErrorCode,
)
from horsies.database.migrate import migrate
from horsies.result import OperationalErrorCode
from support.apps import bad, good, make_app, working
from support.cluster import DurableCluster, Server
from support.database import Database
from support.urls import changed

NewApp = Callable[..., Horsies]
Result = TaskResult[Any, TaskError]
NOWHERE = "postgresql://nobody@127.0.0.1:1/nowhere"


async def outcome(app: Horsies, task: Any, *args: Any) -> Result:
    """Send, let a worker run it, and give what the sender reads."""
    async with working(app):
        handle = good(await task.send_async(*args))
        result: Result = await handle.get_async(timeout_ms=20_000)
        return result


async def test_a_result_that_cannot_be_serialized_fails_its_task_only(new_app: NewApp) -> None:
    app = new_app()

    @app.task("thing")
    async def thing() -> TaskResult[Any, TaskError]:
        return TaskResult(ok=object())

    result = await outcome(app, thing)

    assert result.err_value.error_code is OperationalErrorCode.WORKER_SERIALIZATION_ERROR
    assert "object" in (result.err_value.message or "")


async def test_a_result_of_50_mb_arrives_whole(new_app: NewApp) -> None:
    app = new_app(payload_warn_bytes=None)
    size = 50_000_000

    @app.task("large", execution="blocking")
    def large() -> TaskResult[str, TaskError]:
        return TaskResult(ok="x" * size)

    result = await outcome(app, large)

    assert len(result.ok_value) == size


async def test_a_result_over_the_limit_fails_and_names_the_limit(new_app: NewApp) -> None:
    app = new_app(payload_max_bytes=1_000)

    @app.task("large")
    async def large() -> TaskResult[str, TaskError]:
        return TaskResult(ok="x" * 2_000)

    result = await outcome(app, large)

    assert result.err_value.error_code is OperationalErrorCode.WORKER_SERIALIZATION_ERROR
    assert "too large" in (result.err_value.message or "")


async def test_nul_characters_survive_in_arguments_and_results(new_app: NewApp) -> None:
    app = new_app()

    @app.task("echo")
    async def echo(text: str) -> TaskResult[str, TaskError]:
        return TaskResult(ok=text)

    result = await outcome(app, echo, "a\x00b")

    assert result.ok_value == "a\x00b"


async def test_nul_characters_in_messages_and_logs_are_replaced(
    new_app: NewApp, db: Database
) -> None:
    app = new_app()

    @app.task("break")
    async def break_it() -> TaskResult[str, TaskError]:
        logging.getLogger("job").warning("logged\x00text")
        raise ValueError("a\x00b")

    async with working(app):
        handle = good(await break_it.send_async())
        result = await handle.get_async(timeout_ms=20_000)
    info = good(handle.info(include_attempts=True, include_log=True))

    assert result.err_value.error_code is OperationalErrorCode.UNHANDLED_EXCEPTION
    assert result.err_value.exception["message"] == "a\x00b"
    assert "a\ufffdb" in info.attempts[0].error_message
    assert "ValueError: a\ufffdb" in info.attempts[0].traceback
    assert "a\ufffdb" in good(app.operations.failures())[0].message
    assert "logged\ufffdtext" in info.log


@pytest.mark.parametrize("ends_well", [True, False], ids=["result", "failure"])
async def test_a_row_deleted_while_its_task_runs_is_let_go(
    ends_well: bool, new_app: NewApp, db: Database
) -> None:
    app = new_app()
    inside, may_go = asyncio.Event(), asyncio.Event()

    @app.task("held")
    async def held() -> TaskResult[int, TaskError]:
        logging.getLogger("job").warning("some output")
        inside.set()
        await may_go.wait()
        if not ends_well:
            raise ValueError("no")
        return TaskResult(ok=1)

    @app.task("next")
    async def following() -> TaskResult[int, TaskError]:
        return TaskResult(ok=2)

    async with working(app):
        good(await held.send_async())
        await inside.wait()
        db.connection.execute("delete from horsies_tasks")
        may_go.set()
        result = await good(await following.send_async()).get_async(timeout_ms=20_000)
    names = db.connection.execute("select task_name from horsies_tasks").fetchall()
    logs = db.connection.execute("select log from horsies_task_logs").fetchall()

    assert result.ok_value == 2
    assert ([row["task_name"] for row in names], logs) == (["next"], [])


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"good_until": "tomorrow"}, "good_until must be a datetime"),
        ({"run_at": datetime(2030, 1, 1)}, "run_at must be timezone-aware"),  # noqa: DTZ001
        ({"run_at": datetime(2030, 1, 1, tzinfo=UTC), "delay": 1}, "run_at or delay"),
        ({"delay": "soon"}, "delay must be a number of seconds"),
        ({"delay": -1}, "delay must be a number of seconds"),
        ({"delay": float("nan")}, "delay must be a number of seconds"),
        ({"delay": 1e300}, "delay must be a number of seconds"),
        ({"delay": True}, "delay must be a number of seconds"),
        ({"unique_key": ""}, "unique_key must be a text of 1 to 255 characters"),
        ({"unique_key": "k" * 256}, "unique_key must be"),
        ({"unique_key": 5}, "unique_key must be"),
        ({"unique_key": "a\x00"}, "unique_key must be"),
        ({"unique_key": "\ud800"}, "unique_key must be"),
        ({"unique_scope": "forever"}, "unique_scope must be"),
        ({"priority": 0}, "priority must be an integer from 1 to 100"),
        ({"priority": "high"}, "priority must be"),
        ({"timeout_ms": 1.5}, "timeout_ms must be"),
        ({"soft_timeout_ms": 5}, "soft_timeout_ms must be"),
        ({"tags": [5]}, "tags must be texts"),
        ({"tags": ["a\x00"]}, "tags must be texts"),
        ({"queue_name": "x"}, "cannot specify queue_name in DEFAULT mode; remove"),
    ],
    ids=lambda value: repr(value)[:40] if isinstance(value, dict) else None,
)
def test_wrong_send_options_are_refused_by_name(
    options: dict[str, Any], said: str, far_app: Callable[[str], Any]
) -> None:
    error = bad(far_app(NOWHERE).with_options(**options).send())

    assert (error.code, error.retryable) == (TaskSendErrorCode.VALIDATION_FAILED, False)
    assert said in error.message


@pytest.mark.parametrize("calls", [["abc"], [None], [(1,), 5]], ids=["text", "nothing", "number"])
def test_many_sends_take_tuples_and_mappings_only(
    calls: list[Any], far_app: Callable[[str], Any]
) -> None:
    error = bad(far_app(NOWHERE).send_many(calls))

    assert error.code is TaskSendErrorCode.VALIDATION_FAILED
    assert f"call {len(calls) - 1}: give a tuple or mapping of arguments" in error.message


def endless() -> list[Any]:
    loop: list[Any] = []
    loop += [loop, loop]
    return loop


@pytest.mark.parametrize(
    "value",
    [object(), endless(), "\ud800", float("nan"), {1: "a", "1": "b"}],
    ids=["object", "endless", "surrogate", "nan", "keys alike"],
)
def test_arguments_that_cannot_be_written_are_refused_by_parameter(
    value: Any, app: Horsies
) -> None:
    @app.task("take")
    def take(anything: Any) -> TaskResult[Any, TaskError]:
        return TaskResult(ok=anything)

    error = bad(take.send(value))
    direct = take.definition.settle_result(take(value))[0]

    assert error.code is TaskSendErrorCode.VALIDATION_FAILED
    assert "parameter 'anything'" in error.message
    assert "WORKER_SERIALIZATION_ERROR" in direct


def test_a_direct_call_lets_ctrl_c_through(app: Horsies) -> None:
    @app.task("interrupted")
    def interrupted() -> TaskResult[int, TaskError]:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()


@pytest.fixture
def far_app() -> Iterator[Callable[[str], Any]]:
    """The task of an app on any URL; closed afterwards."""
    apps: list[Horsies] = []

    def task_at(url: str) -> Any:
        app = make_app(url)
        apps.append(app)

        @app.task("job")
        async def job(number: int = 0) -> TaskResult[int, TaskError]:
            return TaskResult(ok=number)

        return job

    yield task_at
    for app in apps:
        app.get_broker().close()


FarApp = Callable[[str], Any]


async def test_a_refused_connection_is_told_at_once_and_may_be_retried(far_app: FarApp) -> None:
    job = far_app(NOWHERE)
    started = time.monotonic()

    errors = [bad(job.send(1)), bad(await job.send_async(1))]

    assert time.monotonic() - started < 3
    for error in errors:
        assert (error.code, error.retryable) == (TaskSendErrorCode.ENQUEUE_FAILED, True)
        assert "connection" in error.message
        assert error.payload is not None


def test_a_send_that_failed_can_be_sent_again_once_the_database_is_there(
    far_app: FarApp, database_url: str
) -> None:
    error = bad(far_app(NOWHERE).send(1))

    handle = good(far_app(database_url).retry_send(error))

    assert handle.task_id == error.task_id


def test_an_unknown_database_is_named_and_not_retried(far_app: FarApp, server: Server) -> None:
    error = bad(far_app(server.database_url("no_such_database")).send())

    assert not error.retryable
    assert '"no_such_database" does not exist' in error.message


def test_a_read_only_database_is_named_as_such(
    far_app: FarApp, server: Server, database_url: str
) -> None:
    name = urlsplit(database_url).path[1:]
    as_owner(server, "alter database {} set default_transaction_read_only = on", name)

    error = bad(far_app(database_url).send())

    assert error.retryable, "the server that takes writes may be another one by now"
    assert "read-only transaction" in error.message


def test_a_full_database_may_be_tried_again(
    far_app: FarApp, server: Server, database_url: str
) -> None:
    name = urlsplit(database_url).path[1:]
    as_owner(server, "alter database {} connection limit 0", name)
    job = far_app(database_url)

    error = bad(job.send())
    as_owner(server, "alter database {} connection limit 10", name)
    again = job.retry_send(error)

    assert error.retryable
    assert "too many connections for database" in error.message
    assert good(again).task_id == error.task_id


@pytest.fixture
def stranger(server: Server, empty_database_url: str) -> Iterator[tuple[str, str]]:
    """A role with no rights of its own, and its URL for the empty database."""
    name = urlsplit(empty_database_url).path[1:]
    role = f"stranger_{name[-12:]}"
    server.close_public_schema(name)
    as_owner(server, "create role {} login", role)
    yield role, changed(empty_database_url, user=role)
    with psycopg.connect(changed(server.url, database=name)) as connection:
        connection.execute(sql.SQL("drop owned by {}").format(sql.Identifier(role)))
    as_owner(server, "drop role {}", role)


def test_a_role_that_may_not_create_tables_is_told_what_to_grant(
    far_app: FarApp, stranger: tuple[str, str]
) -> None:
    role, url = stranger

    error = bad(far_app(url).send())

    assert not error.retryable
    assert f'grant usage, create on schema "public" to "{role}"' in error.message
    assert "horsies migrate" in error.message


def test_existing_tables_need_no_right_to_create(
    far_app: FarApp, stranger: tuple[str, str], empty_database_url: str
) -> None:
    role, url = stranger
    with psycopg.connect(empty_database_url) as connection:
        migrate(connection)
        for grant in (
            "grant select, insert, update, delete on all tables in schema public to {}",
            "grant usage on all sequences in schema public to {}",
        ):
            connection.execute(sql.SQL(grant).format(sql.Identifier(role)))  # type: ignore[arg-type]

    job = far_app(url)

    assert good(job.send()).created
    assert len(good(job.send_many([(1,), (2,)]))) == 2


def test_a_wrong_password_is_said_so_without_the_password(
    far_app: FarApp, durable_cluster: DurableCluster
) -> None:
    parts = urlsplit(durable_cluster.url)
    superuser_url = urlsplit(durable_cluster.superuser_url)._replace(path=parts.path)
    with psycopg.connect(urlunsplit(superuser_url), autocommit=True) as connection:
        connection.execute("create role locked login password 'right'")
        connection.execute("grant create on schema public to locked")
        rules = connection.execute("show hba_file").fetchone()
        assert rules is not None
        file = Path(rules[0])
        file.write_text(f"local all locked scram-sha-256\n{file.read_text()}")
        connection.execute("select pg_reload_conf()")
    place = parts.netloc.partition("@")[2]

    def url(password: str) -> str:
        return urlunsplit(parts._replace(netloc=f"locked:{password}@{place}"))

    error = bad(far_app(url("wr0ng")).send())
    sent = far_app(url("right")).send()

    assert not error.retryable
    assert 'password authentication failed for user "locked"' in error.message
    assert "wr0ng" not in error.message
    assert good(sent).created


async def test_one_bad_row_does_not_spoil_the_sends_beside_it(database_url: str) -> None:
    broker = PostgresBroker(PostgresConfig(database_url=database_url))
    good(await broker.enqueue_async("job", task_id="taken", enqueue_sha="one"))
    rows: dict[str, dict[str, Any]] = {
        "long queue": {"queue_name": "q" * 101},
        "taken": {"enqueue_sha": "another"},
        "big priority": {"priority": 2**31},
        "nul": {"args_json": '["a\x00b"]'},
        "surrogate": {"args_json": '["\ud800"]'},
        "future": {"enqueue_delay_seconds": float("inf")},
        **{f"fine {number}": {} for number in range(20)},
    }

    async with asyncio.TaskGroup() as group:
        sends = {
            name: group.create_task(
                broker.enqueue_async("job", **{"task_id": name, "enqueue_sha": "s", **row})
            )
            for name, row in rows.items()
        }
    answers = {name: send.result() for name, send in sends.items()}
    await broker.close_async()

    assert [name for name in rows if answers[name].is_err()] == list(rows)[:6]
    assert bad(answers["taken"]).code is BrokerErrorCode.PAYLOAD_MISMATCH
    for name in ("long queue", "big priority", "nul", "surrogate", "future"):
        assert bad(answers[name]).code is BrokerErrorCode.ENQUEUE_FAILED
        assert not bad(answers[name]).retryable


async def test_a_bug_while_writing_reaches_every_caller_that_waits(
    app: Horsies, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def broken(_batch: object) -> None:
        raise LookupError("a bug")

    monkeypatch.setattr(app.get_broker().enqueuer, "write_async", broken)

    async with asyncio.timeout(5):
        sends = [asyncio.create_task(app.tasks["add"].send_async(number)) for number in range(3)]
        await asyncio.wait(sends)

    assert [str(send.exception()) for send in sends] == ["a bug"] * 3


def test_one_unique_key_for_several_tasks_is_refused_and_stores_none(
    app: Horsies, db: Database, database_url: str
) -> None:
    keyed = app.tasks["echo"].with_options(unique_key="k")

    error = bad(keyed.send_many([("one",), ("two",)]))
    with psycopg.connect(database_url) as connection:
        joined = app.tasks["echo"].with_options(unique_key="k", connection=connection)
        assert bad(joined.send_many([("one",), ("two",)])).code is error.code

    assert error.code is TaskSendErrorCode.VALIDATION_FAILED
    assert "names one task" in error.message
    assert db.connection.execute("select 1 from horsies_tasks").fetchone() is None
    assert len(good(keyed.send_many([("one",)]))) == 1


def test_nesting_too_deep_to_be_read_again_is_refused_at_send(app: Horsies, db: Database) -> None:
    @app.task("deep")
    def deep(value: list[Any]) -> TaskResult[None, TaskError]:
        return TaskResult(ok=None)

    nested: list[Any] = []
    for _ in range(250):
        nested = [nested]

    error = bad(deep.send(nested))

    assert error.code is TaskSendErrorCode.VALIDATION_FAILED
    assert "nested" in error.message
    assert "value" in error.message
    assert db.connection.execute("select 1 from horsies_tasks").fetchone() is None


def as_owner(server: Server, statement: str, name: str) -> None:
    with psycopg.connect(server.url, autocommit=True) as connection:
        connection.execute(sql.SQL(statement).format(sql.Identifier(name)))  # type: ignore[arg-type]
