"""Sending: what is stored, what is refused, and what may be sent again."""

import asyncio
import signal
import threading
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import psycopg
import pytest

from horsies import Horsies
from horsies.codes import TaskSendErrorCode
from horsies.config import CustomQueueConfig, PostgresConfig, QueueMode
from horsies.result import TaskError, TaskResult
from horsies.sending.errors import TaskSendError
from horsies.sending.statements import direct_send
from horsies.tasks.retry import RetryPolicy
from support.apps import bad, good
from support.database import Database
from support.eventually import eventually, eventually_async

CODE = TaskSendErrorCode
HOUR = timedelta(hours=1)


def now() -> datetime:
    return datetime.now(UTC)


@pytest.mark.seed("S1", "S43", "S96", "S103", "S108")
def test_send_stores_a_pending_row(app: Horsies, db: Database) -> None:
    before = now()

    handle = good(app.tasks["add"].send(1, b=2))

    row = db.task(handle.task_id)
    assert handle.created
    assert (row["status"], row["task_name"], row["queue_name"]) == ("PENDING", "add", "default")
    assert (row["args"], row["kwargs"], row["priority"]) == ("[1]", '{"b":2}', 100)
    assert before <= row["sent_at"] <= row["enqueued_at"] <= now()
    assert len(row["enqueue_sha"]) == 64
    assert row["task_options"] == '{"retry_policy":null,"good_until":null}'
    assert (row["claimed"], row["retry_count"], row["max_retries"]) == (False, 0, 0)
    assert row["is_workflow_task"] is False


def test_connection_prepared_by_a_thread_that_was_first_too_is_used(
    app: Horsies, db: Database
) -> None:
    first = good(app.tasks["add"].send(1, b=2))

    direct_send.cache_clear()  # as for threads that meet in it: each has its own, one is kept
    second = good(app.tasks["add"].send(1, b=2))

    assert db.status(first.task_id) == db.status(second.task_id) == "PENDING"


def test_sends_go_on_after_a_rolled_back_call(app: Horsies, db: Database) -> None:
    handle = good(app.tasks["add"].send(1))
    for _ in range(8):  # until the driver has prepared a statement, which it forgets at a ROLLBACK
        good(handle.info())

    bad(app.schedules.pause("nope"))

    assert db.status(good(app.tasks["add"].send(2)).task_id) == "PENDING"


def test_sends_go_on_after_the_session_was_reset(app: Horsies, db: Database) -> None:
    good(app.tasks["add"].send(1))
    with app.get_broker().database.pool.connection() as connection:
        connection.execute("discard all")

    handles = [good(app.tasks["add"].send(number)) for number in range(3)]

    assert [db.status(handle.task_id) for handle in handles] == ["PENDING"] * 3


def test_call_without_arguments_stores_nulls(new_app: Callable[..., Horsies], db: Database) -> None:
    app = new_app()

    @app.task("bare")
    def bare() -> TaskResult[None, TaskError]:
        return TaskResult(ok=None)

    handle = good(bare.send())

    assert (db.task(handle.task_id)["args"], db.task(handle.task_id)["kwargs"]) == (None, None)


@pytest.mark.seed("S44", "S66")
async def test_every_form_stores_its_row(app: Horsies, db: Database) -> None:
    add = app.tasks["add"]
    deadline = now() + HOUR
    options = add.with_options(good_until=deadline)

    handles = [
        good(add.send(1)),
        good(await add.send_async(1)),
        good(add.schedule(60, 1)),
        good(await add.schedule_async(60, 1)),
        good(options.send(1)),
        good(await options.send_async(1)),
        good(options.schedule(60, 1)),
        good(await options.schedule_async(60, 1)),
        good(options.send_many([(1,)]))[0],
        good(await options.send_many_async([{"a": 1}]))[0],
    ]

    rows = [db.task(handle.task_id) for handle in handles]
    due_in = [round((row["enqueued_at"] - row["sent_at"]).total_seconds()) for row in rows]
    assert due_in == [0, 0, 60, 60, 0, 0, 60, 60, 0, 0]
    assert [row["good_until"] for row in rows] == [None] * 4 + [deadline] * 6


@pytest.mark.seed("S52", "S57", "S66")
def test_deadline_is_stored_in_row_and_options(app: Horsies, db: Database) -> None:
    deadline = now() + HOUR

    handle = good(app.tasks["add"].with_options(good_until=deadline).send(1))

    row = db.task(handle.task_id)
    assert row["good_until"] == deadline
    assert str(deadline.year) in row["task_options"]


@pytest.mark.seed("S57")
def test_naive_deadline_is_refused(app: Horsies, db: Database) -> None:
    naive = datetime(2030, 1, 1)  # noqa: DTZ001 - the point of the test

    error = bad(app.tasks["add"].with_options(good_until=naive).send(1))

    assert (error.code, error.retryable) == (CODE.VALIDATION_FAILED, False)
    assert (error.task_id, error.payload) == (None, None)
    assert db.statuses() == {}


def test_priority_queue_time_and_tags_of_one_send(
    new_app: Callable[..., Horsies], db: Database
) -> None:
    app = new_app(
        queue_mode=QueueMode.CUSTOM,
        custom_queues=[
            CustomQueueConfig(name="fast", priority=3),
            CustomQueueConfig(name="slow", priority=70),
        ],
    )

    @app.task("job", queue_name="fast")
    def job() -> TaskResult[None, TaskError]:
        return TaskResult(ok=None)

    due = now() + HOUR
    plain = good(job.send())
    moved = good(job.with_options(queue_name="slow", run_at=due, tags=["a", "b"]).send())
    urgent = good(job.with_options(priority=1).send())

    rows = [db.task(handle.task_id) for handle in (plain, moved, urgent)]
    assert [(row["queue_name"], row["priority"]) for row in rows] == [
        ("fast", 3),
        ("slow", 70),
        ("fast", 1),
    ]
    assert (rows[1]["enqueued_at"], rows[1]["tags"]) == (due, ["a", "b"])


@pytest.mark.seed("S103")
def test_retry_policy_is_stored_with_the_row(new_app: Callable[..., Horsies], db: Database) -> None:
    app = new_app()
    policy = RetryPolicy.fixed([1, 2], auto_retry_for=["BROKEN"], jitter=False)

    @app.task("flaky", retry_policy=policy)
    def flaky() -> TaskResult[None, TaskError]:
        return TaskResult(ok=None)

    row = db.task(good(flaky.send()).task_id)

    assert row["max_retries"] == 2
    assert '"intervals":[1,2]' in row["task_options"]


@pytest.mark.parametrize(
    ("args", "kwargs", "named"),
    [
        ((), {}, "'a'"),
        (("x",), {}, "'a'"),
        ((1,), {"b": "x"}, "'b'"),
        ((1,), {"c": 1}, "'c'"),
        ((1, 2, 3), {}, "at most 2"),
    ],
    ids=["missing", "wrong type", "wrong type by name", "unknown name", "too many"],
)
def test_arguments_that_do_not_fit_are_refused_by_name(
    app: Horsies, db: Database, args: tuple[Any, ...], kwargs: dict[str, Any], named: str
) -> None:
    error = bad(app.tasks["add"].send(*args, **kwargs))

    assert error.code is CODE.VALIDATION_FAILED
    assert named in error.message
    assert db.statuses() == {}


@pytest.mark.parametrize(
    "options",
    [
        {"unique_key": ""},
        {"unique_key": "k" * 256},
        {"priority": 0},
        {"priority": 101},
        {"delay": -1},
        {"queue_name": "no such queue"},
        {"run_at": datetime(2030, 1, 1)},  # noqa: DTZ001 - the point of the test
        {"run_at": datetime(2030, 1, 1, tzinfo=UTC), "delay": 1},
        {"timeout_ms": 1},
    ],
    ids=str,
)
def test_options_out_of_range_are_refused(
    app: Horsies, db: Database, options: dict[str, Any]
) -> None:
    error = bad(app.tasks["add"].with_options(**options).send(1))

    assert (error.code, error.retryable) == (CODE.VALIDATION_FAILED, False)
    assert db.statuses() == {}


def test_payload_limits(
    new_app: Callable[..., Horsies], db: Database, caplog: pytest.LogCaptureFixture
) -> None:
    app = new_app(payload_max_bytes=100, payload_warn_bytes=50)

    @app.task("echo")
    def echo(text: str) -> TaskResult[str, TaskError]:
        return TaskResult(ok=text)

    good(echo.send("x" * 60))
    errors = [bad(echo.send("x" * 100)), bad(echo.send("€" * 40))]  # 120 bytes in UTF-8

    assert [error.code for error in errors] == [CODE.PAYLOAD_TOO_LARGE] * 2
    assert db.statuses() == {"PENDING": 1}
    assert "payload_warn_bytes" in caplog.text


def test_nul_character_travels_inside_json(app: Horsies, db: Database) -> None:
    handle = good(app.tasks["echo"].send("a\x00b"))

    assert db.task(handle.task_id)["args"] == '["a\\u0000b"]'


def test_suppressed_sends_store_nothing(
    app: Horsies, db: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HORSIES_SUPPRESS_SENDS", "1")
    by_environment = [bad(app.tasks["add"].send(1)), bad(app.tasks["add"].schedule(5, 1))]
    monkeypatch.delenv("HORSIES_SUPPRESS_SENDS")
    with app.suppressed_sends():
        by_block = bad(app.tasks["add"].send(1))

    assert {error.code for error in (*by_environment, by_block)} == {CODE.SEND_SUPPRESSED}
    assert db.statuses() == {}
    assert good(app.tasks["add"].send(1)).created


def test_unique_key_gives_the_holder(app: Horsies, db: Database) -> None:
    keyed = app.tasks["add"].with_options(unique_key="k")

    first, second = good(keyed.send(1)), good(keyed.send(1))
    other = bad(keyed.send(2))

    assert (first.created, second.created) == (True, False)
    assert second.task_id == first.task_id
    assert (other.code, other.task_id) == (CODE.PAYLOAD_MISMATCH, first.task_id)
    assert db.statuses() == {"PENDING": 1}


@pytest.mark.parametrize("scope", ["unfinished", "stored"])
def test_key_after_the_end_depends_on_its_scope(app: Horsies, db: Database, scope: Any) -> None:
    keyed = app.tasks["add"].with_options(unique_key="k", unique_scope=scope)
    first = good(keyed.send(1))
    db.execute("update horsies_tasks set status = 'COMPLETED', completed_at = now()")

    second = good(keyed.send(1))

    assert second.created is (scope == "unfinished")
    assert (second.task_id == first.task_id) is (scope == "stored")


def test_concurrent_sends_of_one_key_store_one_row(app: Horsies, db: Database) -> None:
    keyed = app.tasks["add"].with_options(unique_key="k")
    barrier = threading.Barrier(16)
    handles: list[Any] = []

    def send() -> None:
        barrier.wait(timeout=10)
        handles.append(good(keyed.send(1)))

    threads = [threading.Thread(target=send) for _ in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=20)

    assert len(handles) == 16
    assert len({handle.task_id for handle in handles}) == 1
    assert sum(handle.created for handle in handles) == 1
    assert db.statuses() == {"PENDING": 1}


def test_key_freed_while_it_is_looked_up_is_taken(
    app: Horsies, db: Database, database_url: str
) -> None:
    keyed = app.tasks["add"].with_options(unique_key="k")
    holder = good(keyed.send(1))
    sent: list[Any] = []
    slow_trigger = """
        create function wait_for_lock() returns trigger language plpgsql as
        $$ begin perform pg_advisory_xact_lock(7); return null; end $$;
        create trigger wait_for_lock after insert on horsies_tasks
        for each statement execute function wait_for_lock()"""

    with psycopg.connect(database_url) as blocker:
        db.execute(slow_trigger)
        blocker.execute("select pg_advisory_lock(7)")
        thread = threading.Thread(target=lambda: sent.append(keyed.send(1)))
        thread.start()
        eventually(
            lambda: db.execute(
                "select 1 from pg_stat_activity "
                "where datname = current_database() and wait_event = 'advisory'"
            )
        )
        good(holder.cancel())
    thread.join(timeout=20)

    handle = good(sent[0])
    assert handle.created
    assert handle.task_id != holder.task_id


async def test_concurrent_awaiting_sends_of_one_key_store_one_row(
    app: Horsies, db: Database
) -> None:
    keyed = app.tasks["add"].with_options(unique_key="k")

    async with asyncio.TaskGroup() as group:
        sends = [group.create_task(keyed.send_async(1)) for _ in range(50)]

    handles = [good(send.result()) for send in sends]
    assert len({handle.task_id for handle in handles}) == 1
    assert sum(handle.created for handle in handles) == 1
    assert db.statuses() == {"PENDING": 1}


async def test_concurrent_awaiting_sends_share_transactions(app: Horsies, db: Database) -> None:
    add = app.tasks["add"]
    await add.send_async(0)

    async with asyncio.TaskGroup() as group:
        for number in range(200):
            group.create_task(add.send_async(number))

    assert db.statuses() == {"PENDING": 201}
    assert db.value("select count(distinct xmin::text) from horsies_tasks") <= 20


async def test_bad_row_does_not_spoil_the_sends_it_shares_a_statement_with(
    app: Horsies, db: Database
) -> None:
    add = app.tasks["add"]
    db.execute(
        "create function refuse() returns trigger language plpgsql as "
        "$$ begin raise exception 'no thirteen'; end $$"
    )
    db.execute(
        "create trigger refuse before insert on horsies_tasks for each row "
        "when (new.args = '[13]') execute function refuse()"
    )

    async with asyncio.TaskGroup() as group:
        sends = [group.create_task(add.send_async(number)) for number in range(20)]

    failed = [number for number, send in enumerate(sends) if send.result().is_err()]
    error = bad(sends[13].result())
    assert failed == [13]
    assert (error.code, error.retryable) == (CODE.ENQUEUE_FAILED, False)
    assert "no thirteen" in error.message
    assert db.statuses() == {"PENDING": 19}


def test_send_many_stores_ten_thousand_at_once(app: Horsies, db: Database) -> None:
    handles = good(app.tasks["add"].send_many((number, 1) for number in range(10_000)))

    assert len({handle.task_id for handle in handles}) == 10_000
    assert db.statuses() == {"PENDING": 10_000}
    assert db.value("select count(distinct xmin::text) from horsies_tasks") == 1
    assert db.task(handles[1234].task_id)["args"] == "[1234,1]"


@pytest.mark.parametrize("options", [{}, {"tags": ["t"]}], ids=["copied", "inserted"])
def test_send_many_with_one_bad_call_stores_none(
    app: Horsies, db: Database, options: dict[str, Any]
) -> None:
    add = app.tasks["add"].with_options(**options)

    error = bad(add.send_many([(1,), {"a": 2}, ("x",)]))

    assert error.code is CODE.VALIDATION_FAILED
    assert "call 2" in error.message
    assert db.statuses() == {}


@pytest.mark.parametrize("text", ["tab\there", "line\nend\r", "back\\slash", "\\N", "é\u2028"])
def test_send_many_keeps_every_character(app: Horsies, db: Database, text: str) -> None:
    (many,) = good(app.tasks["echo"].send_many([(text,)]))
    one = good(app.tasks["echo"].send(text))

    assert db.task(many.task_id)["args"] == db.task(one.task_id)["args"]


@pytest.mark.seed("S44")
def test_send_many_rows_are_due_at_once(app: Horsies, db: Database) -> None:
    (handle,) = good(app.tasks["add"].send_many([(1,)]))

    row = db.task(handle.task_id)
    assert abs((row["enqueued_at"] - row["sent_at"]).total_seconds()) < 5
    assert row["enqueued_at"] <= db.value("select clock_timestamp()")


@pytest.mark.parametrize("commits", [True, False])
def test_send_joins_the_callers_transaction(
    app: Horsies, db: Database, database_url: str, commits: bool
) -> None:
    with psycopg.connect(database_url) as connection:
        handle = good(app.tasks["add"].with_options(connection=connection).send(1))
        during = db.statuses()
        if not commits:
            connection.rollback()

    assert handle.created
    assert during == {}
    assert db.statuses() == ({"PENDING": 1} if commits else {})


async def test_awaiting_send_joins_the_callers_transaction(
    app: Horsies, db: Database, database_url: str
) -> None:
    async with await psycopg.AsyncConnection.connect(database_url) as connection:
        good(await app.tasks["add"].with_options(connection=connection).send_async(1))
        during = db.statuses()

    assert during == {}
    assert db.statuses() == {"PENDING": 1}


def test_connection_of_the_wrong_kind_is_refused(app: Horsies, db: Database) -> None:
    error = bad(app.tasks["add"].with_options(connection=object()).send(1))

    assert error.code is CODE.VALIDATION_FAILED
    assert "connection" in error.message


@pytest.fixture
def unreachable(new_app: Callable[..., Horsies]) -> Horsies:
    """An app whose database does not answer, with the tasks of `app`."""
    broker = PostgresConfig(database_url="postgresql://127.0.0.1:9/none?connect_timeout=1")
    app = new_app(broker=broker)

    @app.task("add")
    async def add(a: int, b: int = 0) -> TaskResult[int, TaskError]:
        return TaskResult(ok=a + b)

    return app


def test_unreachable_database_gives_an_error_that_can_be_sent_again(
    unreachable: Horsies, app: Horsies, db: Database
) -> None:
    error = bad(unreachable.tasks["add"].send(1))

    first = good(app.tasks["add"].retry_send(error))
    again = good(app.tasks["add"].retry_send(error))

    assert (error.code, error.retryable) == (CODE.ENQUEUE_FAILED, True)
    assert "[1]" not in repr(error)
    assert first.task_id == again.task_id == error.task_id
    assert (first.created, again.created) == (True, False)
    assert db.task(first.task_id)["sent_at"] == error.payload.sent_at
    assert db.statuses() == {"PENDING": 1}


async def test_delayed_payload_is_sent_again_as_delayed(
    unreachable: Horsies, app: Horsies, db: Database
) -> None:
    error = bad(await unreachable.tasks["add"].schedule_async(60, 1))

    wrong = bad(app.tasks["add"].retry_send(error))
    right = good(await app.tasks["add"].retry_schedule_async(error))

    assert wrong.code is CODE.VALIDATION_FAILED
    row = db.task(right.task_id)
    assert row["enqueued_at"] > row["sent_at"] + timedelta(seconds=55)


def test_retry_calls_refuse_what_they_cannot_replay(unreachable: Horsies, app: Horsies) -> None:
    error: TaskSendError = bad(unreachable.tasks["add"].send(1))
    assert error.payload is not None
    add = app.tasks["add"]
    edited = replace(error, payload=replace(error.payload, args_json="[2]"))

    refusals = {
        "other code": bad(add.retry_send(replace(error, code=CODE.VALIDATION_FAILED))),
        "no payload": bad(add.retry_send(replace(error, payload=None))),
        "no id": bad(add.retry_send(replace(error, task_id=None))),
        "other task": bad(app.tasks["echo"].retry_send(error)),
        "undelayed": bad(add.retry_schedule(error)),
        "edited": bad(add.retry_send(edited)),
    }

    codes = {name: refusal.code for name, refusal in refusals.items()}
    assert codes.pop("edited") is CODE.PAYLOAD_MISMATCH
    assert set(codes.values()) == {CODE.VALIDATION_FAILED}


async def test_many_that_were_not_stored_are_sent_again(
    unreachable: Horsies, app: Horsies, db: Database
) -> None:
    calls = [(number,) for number in range(3)]
    late = unreachable.tasks["add"].with_options(delay=60, tags=["x"])
    plain = bad(unreachable.tasks["add"].send_many(calls))
    delayed = bad(await late.send_many_async(calls))

    handles = good(app.tasks["add"].retry_send_many(plain))
    handles += good(await app.tasks["add"].retry_send_many_async(delayed))

    ids = [one.task_id for one in (*plain.each, *delayed.each)]
    assert [handle.task_id for handle in handles] == ids
    rows = [db.task(task_id) for task_id in ids]
    assert [row["args"] for row in rows] == ["[0]", "[1]", "[2]"] * 2
    assert [row["tags"] for row in rows] == [None] * 3 + [["x"]] * 3
    assert all(row["enqueued_at"] - row["created_at"] == timedelta(minutes=1) for row in rows[3:])


def test_many_that_cannot_be_replayed_are_refused(unreachable: Horsies, app: Horsies) -> None:
    error = bad(unreachable.tasks["add"].send_many([(1,), (2,)]))
    changed = replace(error.each[1], payload=replace(error.each[1].payload, args_json="[3]"))

    refused = [
        bad(app.tasks["add"].retry_send_many(replace(error, each=()))),
        bad(app.tasks["echo"].retry_send_many(error)),
        bad(app.tasks["add"].retry_send_many(replace(error, each=(error.each[0], changed)))),
    ]

    assert [one.code for one in refused] == [
        CODE.VALIDATION_FAILED,
        CODE.VALIDATION_FAILED,
        CODE.PAYLOAD_MISMATCH,
    ]


@pytest.mark.seed("S108")
def test_same_id_with_another_payload_is_a_mismatch(
    unreachable: Horsies, app: Horsies, db: Database
) -> None:
    first, second = bad(unreachable.tasks["add"].send(1)), bad(unreachable.tasks["add"].send(2))
    good(app.tasks["add"].retry_send(first))

    error = bad(app.tasks["add"].retry_send(replace(second, task_id=first.task_id)))

    assert (error.code, error.task_id) == (CODE.PAYLOAD_MISMATCH, first.task_id)
    assert db.task(first.task_id)["args"] == "[1]"


def test_connections_cut_between_sends_are_replaced(app: Horsies, db: Database) -> None:
    good(app.tasks["add"].send(1))
    db.execute(
        "select pg_terminate_backend(pid) from pg_stat_activity "
        "where datname = current_database() and pid <> pg_backend_pid() "
        "and backend_type = 'client backend'"
    )
    eventually(
        lambda: db.value(
            "select count(*) = 1 from pg_stat_activity where datname = current_database() "
            "and backend_type = 'client backend'"
        )
    )

    assert good(app.tasks["add"].send(2)).created


async def test_a_send_that_waits_for_its_key_holds_up_no_other(
    app: Horsies, db: Database, database_url: str
) -> None:
    add: Any = app.tasks["add"]
    good(await add.send_async(0))
    keyed = add.with_options(unique_key="k")
    with psycopg.connect(database_url) as blocker:
        good(keyed_send := add.with_options(unique_key="k", connection=blocker).send(1))
        waiting = asyncio.create_task(keyed.send_async(1), name="waits for the key")
        await eventually_async(lambda: asyncio.to_thread(is_waiting_for_a_lock, db))

        others = [good(await add.send_async(number)) for number in range(3)]

        assert not waiting.done()
        assert len({one.task_id for one in others}) == 3
        blocker.commit()
    assert good(await waiting).task_id == good(keyed_send).task_id


def shared_task(name: str) -> "asyncio.Task[Any]":
    return next(task for task in asyncio.all_tasks() if task.get_name() == name)


@pytest.mark.parametrize("has_begun", [False, True], ids=["before it began", "while it writes"])
async def test_cancelling_what_sends_share_costs_no_send(
    app: Horsies, db: Database, database_url: str, has_begun: bool
) -> None:
    add: Any = app.tasks["add"]
    good(await add.send_async(0))
    with psycopg.connect(database_url) as blocker:
        blocker.execute("lock table horsies_tasks in share mode")
        async with asyncio.timeout(20), asyncio.TaskGroup() as group:
            sending = group.create_task(add.send_async(1))
            await asyncio.sleep(0)
            if has_begun:
                await eventually_async(lambda: asyncio.to_thread(is_waiting_for_a_lock, db))

            shared_task("horsies-enqueue").cancel()  # as libraries do at their end
            await asyncio.sleep(0)
            blocker.rollback()

    assert db.status(good(sending.result()).task_id) == "PENDING"
    assert db.statuses() == {"PENDING": 2}


async def test_no_wait_for_a_connection_is_no_limit_for_statements(
    new_app: Callable[..., Horsies], database_url: str
) -> None:
    app = new_app(broker=PostgresConfig(database_url=database_url, pool_timeout=0))

    @app.task("one")
    def one() -> TaskResult[int, TaskError]:
        return TaskResult(ok=1)

    assert good(await one.send_async()).created


def is_waiting_for_a_lock(db: Database) -> bool:
    count = (
        "select count(*) from pg_stat_activity "
        "where datname = current_database() and wait_event_type = 'Lock'"
    )
    return bool(db.value(count))


def test_ctrl_c_ends_a_send_that_waits(app: Horsies, database_url: str, db: Database) -> None:
    add = app.tasks["add"]
    good(add.send(1, 2))
    waits = (
        "select count(*) from pg_stat_activity where wait_event_type = 'Lock' "
        "and datname = current_database() and backend_type = 'client backend'"
    )
    main = threading.get_ident()

    def interrupt(seen: Database) -> None:
        eventually(lambda: seen.value(waits) == 1)
        signal.pthread_kill(main, signal.SIGINT)

    db.execute("begin")
    db.execute("lock table horsies_tasks")
    # Within a transaction the activity would stay as it was first seen.
    with psycopg.connect(database_url, autocommit=True) as watching:
        interrupting = threading.Thread(target=interrupt, args=[Database(watching)])
        # A shell ignores the signal for what it runs in the background, also for these tests.
        before = signal.signal(signal.SIGINT, signal.default_int_handler)
        interrupting.start()
        with pytest.raises(KeyboardInterrupt):
            add.send(1, 2)
        interrupting.join()
        signal.signal(signal.SIGINT, before)
    db.execute("rollback")

    good(add.send(1, 2))
    assert db.value("select count(*) from horsies_tasks") == 2
