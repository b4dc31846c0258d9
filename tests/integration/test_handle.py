"""Handles: waiting, looking, withdrawing, putting back."""

import asyncio
import gc
import threading
import time
import weakref
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from horsies import Horsies, TaskStatus
from horsies.codes import BrokerErrorCode
from horsies.config import PostgresConfig
from horsies.result import OperationalErrorCode, OutcomeCode, RetrievalCode, TaskError
from horsies.results import waiting as results_waiting
from horsies.results.handle import TaskHandle
from support.apps import bad, good
from support.database import FAILURE, OK, Database
from support.eventually import eventually, eventually_async

END = "update horsies_tasks set status = %s, result = %s, completed_at = now() where id = %s"


def finish(db: Database, task_id: str, status: str = "COMPLETED", result: str | None = OK) -> None:
    db.execute(END, status, result, task_id)


def error_of(result: Any) -> TaskError:
    assert result.is_err(), result
    error: TaskError = result.err_value
    return error


@pytest.fixture
def handle(app: Horsies) -> TaskHandle[Any]:
    sent: TaskHandle[Any] = good(app.tasks["add"].send(1))
    return sent


@pytest.mark.parametrize(
    ("status", "stored", "code"),
    [
        pytest.param("FAILED", FAILURE, "BROKEN", id="failed"),
        pytest.param("CANCELLED", None, OutcomeCode.TASK_CANCELLED, id="cancelled"),
        pytest.param("COMPLETED", None, RetrievalCode.RESULT_NOT_AVAILABLE, id="empty"),
        pytest.param("COMPLETED", "{", "RESULT_DESERIALIZATION_ERROR", id="unreadable"),
        pytest.param(
            "COMPLETED", OK.replace("1", '"x"'), "PYDANTIC_HYDRATION_ERROR", id="wrong type"
        ),
    ],
)
async def test_get_explains_every_end(
    db: Database, handle: TaskHandle[Any], status: str, stored: str | None, code: object
) -> None:
    finish(db, handle.task_id, status, stored)

    blocking = await asyncio.to_thread(handle.get, 0)
    awaiting = await TaskHandle(handle.task_id, handle._app, True).get_async(0)

    for result in (blocking, awaiting):
        found: Any = error_of(result).error_code
        assert found == code or getattr(found, "value", None) == code


@pytest.mark.seed("S20")
async def test_get_returns_the_stored_value_and_caches_it(
    app: Horsies, db: Database, handle: TaskHandle[Any]
) -> None:
    finish(db, handle.task_id)

    first = await handle.get_async()
    db.execute("delete from horsies_tasks")

    assert first.ok_value == 1
    assert handle.get() is first
    assert await handle.get_async() is first


async def test_timed_out_wait_is_not_cached(db: Database, handle: TaskHandle[Any]) -> None:
    early = await handle.get_async(timeout_ms=30)
    blocking = await asyncio.to_thread(handle.get, 30)
    finish(db, handle.task_id)
    late = await handle.get_async(timeout_ms=0)

    for result in (early, blocking):
        error = error_of(result)
        assert error.error_code is RetrievalCode.WAIT_TIMEOUT
        assert error.data == {"task_id": handle.task_id, "timeout_ms": 30}
    assert late.ok_value == 1


def test_zero_looks_once(handle: TaskHandle[Any]) -> None:
    started = time.monotonic()

    result = handle.get(timeout_ms=0)

    assert error_of(result).error_code is RetrievalCode.WAIT_TIMEOUT
    assert time.monotonic() - started < 1


async def test_missing_task_is_told_at_once(app: Horsies) -> None:
    handle = app.handle("no such task")

    result = await handle.get_async()

    assert error_of(result).error_code is RetrievalCode.TASK_NOT_FOUND


async def test_unreachable_database_is_an_error_value_and_not_cached(
    app: Horsies, new_app: Callable[..., Horsies], db: Database, handle: TaskHandle[Any]
) -> None:
    away = new_app(broker=PostgresConfig(database_url="postgresql://127.0.0.1:9/none"))
    blind = TaskHandle[Any](handle.task_id, away, True)

    result = await blind.get_async(timeout_ms=100)
    finish(db, handle.task_id)
    blind._app = app

    error = error_of(result)
    assert error.error_code is OperationalErrorCode.BROKER_ERROR
    assert error.exception is not None
    assert (await blind.get_async()).ok_value == 1


def test_handle_without_a_broker_says_so() -> None:
    handle = TaskHandle[Any]("x")

    assert error_of(handle.get()).error_code is RetrievalCode.RESULT_NOT_AVAILABLE
    for refusal in (handle.info(), handle.cancel(), handle.requeue(), handle.rerun()):
        error = bad(refusal)
        assert (error.code, error.retryable) == (BrokerErrorCode.NO_BROKER, False)
        assert "requires a broker-backed" in error.message


@pytest.mark.seed("S130")
async def test_notification_ends_the_wait_before_the_poll(
    db: Database, handle: TaskHandle[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    await handle.get_async(timeout_ms=1)
    monkeypatch.setattr(results_waiting, "_POLL_S", 3600)
    waiting = asyncio.create_task(handle.get_async(), name="waiter")
    await eventually_async(lambda: asyncio.to_thread(listening, db))
    await asyncio.sleep(0)

    finish(db, handle.task_id)

    async with asyncio.timeout(20):
        assert (await waiting).ok_value == 1


def listening(db: Database) -> bool:
    found: bool = db.value(
        "select count(*) = 1 from pg_stat_activity where datname = current_database() "
        "and application_name = 'horsies listener' and state = 'idle'"
    )
    return found


async def test_notification_that_names_many_wakes_each_waiter(
    app: Horsies, db: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    handles = good(await app.tasks["add"].send_many_async([(n,) for n in range(300)]))
    await handles[0].get_async(timeout_ms=1)
    monkeypatch.setattr(results_waiting, "_POLL_S", 3600)
    waits = [asyncio.ensure_future(one.get_async(30_000)) for one in handles]
    await eventually_async(lambda: asyncio.to_thread(listening, db))

    db.execute("update horsies_tasks set status = 'COMPLETED', result = %s", OK)

    async with asyncio.timeout(10):
        results = [await wait for wait in waits]
    assert all(result.is_ok() for result in results)


async def test_lost_notifications_are_made_up_by_polling(
    db: Database, handle: TaskHandle[Any]
) -> None:
    db.execute("alter table horsies_tasks disable trigger user")
    waiting = asyncio.create_task(handle.get_async(timeout_ms=10_000), name="waiter")
    await eventually_async(lambda: asyncio.to_thread(listening, db))

    finish(db, handle.task_id)

    assert (await waiting).ok_value == 1


async def test_waiters_survive_the_loss_of_their_listener(
    db: Database, handle: TaskHandle[Any], caplog: pytest.LogCaptureFixture
) -> None:
    waiting = asyncio.create_task(handle.get_async(timeout_ms=10_000), name="waiter")
    await eventually_async(lambda: asyncio.to_thread(listening, db))
    db.execute(
        "select pg_terminate_backend(pid) from pg_stat_activity "
        "where datname = current_database() and application_name = 'horsies listener'"
    )

    finish(db, handle.task_id)

    assert (await waiting).ok_value == 1
    await eventually_async(lambda: asyncio.to_thread(listening, db))


async def test_thousand_waiters_share_one_listener_connection(app: Horsies, db: Database) -> None:
    handles = good(await app.tasks["add"].send_many_async((n,) for n in range(1_000)))

    async with asyncio.TaskGroup() as group:
        waits = [group.create_task(handle.get_async(30_000)) for handle in handles]
        await eventually_async(lambda: asyncio.to_thread(listening, db))
        connections = db.value(
            "select count(*) from pg_stat_activity where datname = current_database() "
            "and pid <> pg_backend_pid()"
        )
        db.execute(
            "update horsies_tasks set status = 'COMPLETED', completed_at = now(), result = %s", OK
        )

    assert {wait.result().ok_value for wait in waits} == {1}
    assert connections <= 8


def test_threads_wait_together(app: Horsies, db: Database) -> None:
    handles = good(app.tasks["add"].send_many((n,) for n in range(10)))
    results: list[Any] = []
    threads = [
        threading.Thread(target=lambda h=handle: results.append(h.get(10_000)))
        for handle in handles
    ]
    for thread in threads:
        thread.start()

    for handle in handles:
        finish(db, handle.task_id)
    for thread in threads:
        thread.join(timeout=15)

    assert [result.ok_value for result in results] == [1] * 10


@pytest.mark.seed("S6", "S89")
def test_cancel_withdraws_what_has_not_started(
    app: Horsies, db: Database, handle: TaskHandle[Any]
) -> None:
    first, second = good(handle.cancel()), good(handle.cancel())

    assert (first, second) == (True, False)
    assert db.status(handle.task_id) == "CANCELLED"
    error = error_of(handle.get(0))
    assert error.error_code is OutcomeCode.TASK_CANCELLED
    assert error.data == {"task_id": handle.task_id}
    assert good(app.handle("no such task").cancel()) is False


@pytest.mark.seed("S6", "S8")
@pytest.mark.parametrize("status", ["RUNNING", "COMPLETED", "FAILED", "EXPIRED"])
async def test_cancel_leaves_started_and_ended_tasks(
    db: Database, handle: TaskHandle[Any], status: str
) -> None:
    db.execute("update horsies_tasks set status = %s", status)

    assert good(await handle.cancel_async()) is False
    assert db.status(handle.task_id) == status


async def test_requeue_drops_the_cached_result(db: Database, handle: TaskHandle[Any]) -> None:
    finish(db, handle.task_id, "FAILED", FAILURE)
    await handle.get_async()

    assert good(await handle.requeue_async()) is True
    assert error_of(await handle.get_async(0)).error_code is RetrievalCode.WAIT_TIMEOUT
    assert db.status(handle.task_id) == "PENDING"


def test_requeue_of_a_completed_task_must_be_asked_for(
    db: Database, handle: TaskHandle[Any]
) -> None:
    finish(db, handle.task_id)

    assert good(handle.requeue()) is False
    assert good(handle.requeue(include_completed=True)) is True


@pytest.mark.seed("S91")
async def test_requeue_failed_takes_all_that_match(app: Horsies, db: Database) -> None:
    for number in range(5):
        task_id = good(app.tasks["add"].send(number)).task_id
        finish(db, task_id, "FAILED" if number < 3 else "COMPLETED", FAILURE)
    other = good(app.tasks["echo"].send("x"))
    finish(db, other.task_id, "FAILED", FAILURE)

    count = good(await app.get_broker().requeue_failed(task_name="add"))

    assert count == 3
    assert db.statuses() == {"PENDING": 3, "COMPLETED": 2, "FAILED": 1}


@pytest.mark.parametrize("awaits", [False, True], ids=["blocking", "awaiting"])
async def test_rerun_stores_a_new_task_and_leaves_the_old(
    app: Horsies, db: Database, awaits: bool
) -> None:
    options = app.tasks["add"].with_options(
        unique_key="k", good_until=datetime.now(UTC) + timedelta(hours=1)
    )
    handle = good(options.send(4))
    early = good(handle.rerun())
    finish(db, handle.task_id)
    before = db.task(handle.task_id)

    new = good(await handle.rerun_async() if awaits else handle.rerun())

    assert early is None, "only ended tasks are run again"
    row = db.task(new.task_id)
    assert (row["status"], row["args"], row["rerun_of"]) == ("PENDING", "[4]", handle.task_id)
    assert (row["good_until"], row["unique_key"]) == (None, None)
    assert (row["queue_name"], row["priority"]) == (before["queue_name"], before["priority"])
    assert db.task(handle.task_id) == before


@pytest.mark.seed("S69")
def test_info_shows_the_row_and_what_was_asked_for(
    app: Horsies, db: Database, handle: TaskHandle[Any]
) -> None:
    (claim,) = db.claim(1)
    db.fail(claim, failed_reason="why")
    db.insert("horsies_task_logs", task_id=claim.task_id, attempt=1, log="text")

    plain = good(handle.info())
    full = good(
        handle.info(
            include_result=True, include_failed_reason=True, include_attempts=True, include_log=True
        )
    )

    assert (plain.status, plain.error_code) == (TaskStatus.FAILED, "BROKEN")
    assert (plain.worker_pid, plain.worker_hostname) == (2001, "host-a")
    assert (plain.result, plain.failed_reason, plain.attempts, plain.log) == (None,) * 4
    assert full.result.is_err()
    assert (full.failed_reason, full.log) == ("why", "text")
    assert [(a.attempt, a.outcome, a.error_code) for a in full.attempts] == [
        (1, "FAILED", "BROKEN")
    ]


async def test_info_of_missing_and_fresh_tasks(app: Horsies, handle: TaskHandle[Any]) -> None:
    missing = good(await app.handle("no such task").info_async(include_attempts=True))
    fresh = good(await handle.info_async(include_attempts=True))

    assert missing is None
    assert (fresh.status, fresh.attempts) == (TaskStatus.PENDING, [])


def test_broker_can_be_used_after_close(
    app: Horsies, db: Database, handle: TaskHandle[Any]
) -> None:
    handle.get(timeout_ms=1)
    good(app.get_broker().close())
    eventually(
        lambda: db.value(
            "select count(*) = 0 from pg_stat_activity where datname = current_database() "
            "and pid <> pg_backend_pid()"
        )
    )

    finish(db, handle.task_id)

    assert handle.get(5_000).ok_value == 1


def test_loops_that_have_ended_are_forgotten(app: Horsies) -> None:
    async def send_and_look() -> weakref.ref[asyncio.AbstractEventLoop]:
        handle: TaskHandle[Any] = good(await app.tasks["add"].send_async(1))
        await handle.get_async(timeout_ms=0)
        return weakref.ref(asyncio.get_running_loop())

    loops = [asyncio.run(send_and_look()) for _ in range(3)]

    good(app.get_broker().close())
    gc.collect()
    assert [loop() for loop in loops] == [None] * 3


async def test_cancelling_what_waits_share_costs_no_result(
    handle: TaskHandle[Any], db: Database
) -> None:
    finish(db, handle.task_id)
    async with asyncio.timeout(20), asyncio.TaskGroup() as group:
        waiting = group.create_task(handle.get_async())
        shared = None
        while shared is None:
            await asyncio.sleep(0)
            tasks = {task.get_name(): task for task in asyncio.all_tasks()}
            shared = tasks.get("horsies-read-results")
        shared.cancel()  # as libraries do at their end

    assert waiting.result().is_ok()


async def test_event_loop_goes_on_while_a_thread_looks_at_the_schema(
    new_app: Callable[..., Horsies], database_url: str
) -> None:
    config = PostgresConfig(database_url=database_url, pool_size=1, max_overflow=0, pool_timeout=10)
    broker = new_app(broker=config).get_broker()
    pool = broker.database.pool
    with pool.connection():  # the only one: the look has to wait for it
        looking = asyncio.create_task(broker.database.ensure_schema_async())
        while not pool._waiting:
            await asyncio.sleep(0)

        waiting = asyncio.create_task(broker.get_result_async("nobody", timeout_ms=1_000))
        await asyncio.sleep(0)

        assert pool._waiting, "the loop was blocked until the look gave up"
    await looking
    assert error_of(await waiting).error_code is RetrievalCode.TASK_NOT_FOUND
