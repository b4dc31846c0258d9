"""A worker inside the test's event loop: how attempts begin, end and are recorded."""

import asyncio
import logging
import os
import re
import threading
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import psycopg
import pytest

from horsies import Horsies, current_task
from horsies.config import CustomQueueConfig, QueueMode, RecoveryConfig, WorkerResilienceConfig
from horsies.database.statement import Statement
from horsies.result import TaskError, TaskResult
from horsies.tasks.retry import RetryPolicy
from horsies.worker.worker import Worker
from support.apps import good, make_app, working
from support.database import Database
from support.eventually import eventually_async

Result = TaskResult[Any, TaskError]
NewApp = Callable[..., Horsies]


def now() -> datetime:
    return datetime.now(UTC)


class Gate:
    """Holds tasks inside their user code until the test opens it."""

    def __init__(self) -> None:
        self.open = asyncio.Event()
        self.inside: list[int] = []

    def task(self, app: Horsies, name: str = "held", **options: Any) -> Any:
        @app.task(name, **options)
        async def held(number: int) -> TaskResult[int, TaskError]:
            self.inside.append(number)
            await self.open.wait()
            return TaskResult(ok=number)

        return held

    async def wait_for(self, count: int) -> None:
        async def is_reached() -> bool:
            return len(self.inside) >= count

        await eventually_async(is_reached)


async def ended(db: Database, task_id: str) -> dict[str, Any]:
    """The row once it has reached a terminal state."""

    async def look() -> dict[str, Any] | None:
        row = db.task(task_id)
        return row if row["completed_at"] or row["failed_at"] else None

    row = await eventually_async(look)
    assert row is not None
    return row


async def run_one(app: Horsies, name: str, *args: Any) -> tuple[str, Any]:
    handle = good(await app.tasks[name].send_async(*args))
    async with working(app):
        result = await handle.get_async(10_000)
    return handle.task_id, result


@pytest.mark.seed("S3", "S4", "S19", "S20", "S21", "S59", "S60", "S74")
async def test_tasks_run_on_the_loop_and_in_threads(app: Horsies, db: Database) -> None:
    add = good(await app.tasks["add"].send_async(2, b=3))
    echo = good(await app.tasks["echo"].send_async("hé"))

    async with working(app):
        results = [await add.get_async(10_000), await echo.get_async(10_000)]

    assert [result.ok_value for result in results] == [5, "hé"]
    for handle in (add, echo):
        row = db.task(handle.task_id)
        (attempt,) = db.attempts(handle.task_id)
        assert (row["status"], row["error_code"]) == ("COMPLETED", None)
        assert row["sent_at"] <= row["enqueued_at"] <= row["claimed_at"] <= row["started_at"]
        assert row["started_at"] <= row["completed_at"]
        assert (row["worker_pid"], row["worker_process_name"]) == (
            os.getpid(),
            f"worker-{os.getpid()}",
        )
        assert (attempt["outcome"], attempt["attempt"]) == ("COMPLETED", 1)


@pytest.mark.seed("S5", "S22", "S23", "S26", "S74", "S119")
async def test_returned_error_fails_the_task(new_app: NewApp, db: Database) -> None:
    app = new_app()

    @app.task("refuse")
    async def refuse() -> TaskResult[int, TaskError]:
        return TaskResult(err=TaskError(error_code="NO_FUNDS", message="empty", data={"a": 1}))

    task_id, result = await run_one(app, "refuse")

    error = result.err_value
    row = db.task(task_id)
    (attempt,) = db.attempts(task_id)
    assert (error.error_code, error.message, error.data) == ("NO_FUNDS", "empty", {"a": 1})
    assert (row["status"], row["error_code"], row["failed_reason"]) == ("FAILED", "NO_FUNDS", None)
    assert (attempt["outcome"], attempt["error_code"]) == ("FAILED", "NO_FUNDS")
    assert (attempt["error_message"], attempt["failed_reason"]) == ("empty", None)


@pytest.mark.seed("S24", "S62")
@pytest.mark.parametrize("execution", ["async", "blocking"])
async def test_exception_fails_the_task_and_the_worker_goes_on(
    new_app: NewApp, db: Database, execution: str
) -> None:
    app = new_app()

    if execution == "async":

        @app.task("explode")
        async def explode() -> TaskResult[int, TaskError]:
            raise ValueError("boom")
    else:

        @app.task("explode", execution="blocking")
        def explode_blocking() -> TaskResult[int, TaskError]:
            raise ValueError("boom")

    first = good(await app.tasks["explode"].send_async())
    second = good(await app.tasks["explode"].send_async())

    async with working(app):
        results = [await handle.get_async(10_000) for handle in (first, second)]

    for result in results:
        error = result.err_value
        assert error.error_code.value == "UNHANDLED_EXCEPTION"
        assert error.exception["type"] == "ValueError"
        _, first_frame, *_, last = error.exception["traceback"].splitlines()
        assert __file__ in first_frame, "it begins at user code"
        assert last == "ValueError: boom"
    assert db.statuses() == {"FAILED": 2}


async def test_exceptions_are_mapped_to_codes(new_app: NewApp, db: Database) -> None:
    app = new_app(exception_mapper={KeyError: "KEY_GONE"}, default_unhandled_error_code="OTHER")

    @app.task("look", exception_mapper={ValueError: "BAD_VALUE"})
    async def look(kind: str) -> TaskResult[int, TaskError]:
        raise {"v": ValueError, "k": KeyError, "u": UnicodeError}[kind]("x")

    handles = {kind: good(await look.send_async(kind)) for kind in "vku"}
    async with working(app):
        codes = {k: (await h.get_async(10_000)).err_value.error_code for k, h in handles.items()}

    assert codes == {"v": "BAD_VALUE", "k": "KEY_GONE", "u": "OTHER"}


async def test_value_of_the_wrong_type_fails_the_task(new_app: NewApp) -> None:
    app = new_app()

    @app.task("lie")
    async def lie() -> TaskResult[int, TaskError]:
        return TaskResult(ok="not a number")  # type: ignore[arg-type]

    _, result = await run_one(app, "lie")

    assert result.err_value.error_code.value == "RETURN_TYPE_MISMATCH"


async def test_result_that_cannot_be_stored_fails_the_task(new_app: NewApp) -> None:
    app = new_app(payload_max_bytes=200)

    @app.task("object")
    async def opaque() -> TaskResult[Any, TaskError]:
        return TaskResult(ok=object())

    @app.task("large")
    async def large() -> TaskResult[str, TaskError]:
        return TaskResult(ok="x" * 500)

    handles = [good(await app.tasks[name].send_async()) for name in ("object", "large")]
    async with working(app):
        errors = [(await handle.get_async(10_000)).err_value for handle in handles]

    assert {error.error_code.value for error in errors} == {"WORKER_SERIALIZATION_ERROR"}
    assert "too large" in errors[1].message


@pytest.mark.seed("S133", "S135")
async def test_row_with_an_unknown_name_fails_and_imports_nothing(
    app: Horsies, db: Database
) -> None:
    task_id = db.insert(task_name="os.system", args='["true"]', enqueued_at=now())

    async with working(app):
        row = await ended(db, task_id)

    assert (row["status"], row["error_code"]) == ("FAILED", "WORKER_RESOLUTION_ERROR")
    assert len(db.attempts(task_id)) == 1


@pytest.mark.seed("S133", "S135")
@pytest.mark.parametrize(
    "columns",
    [
        pytest.param({"args": "{not json"}, id="corrupt args"),
        pytest.param({"args": "[1]", "kwargs": "[]"}, id="kwargs not an object"),
        pytest.param({"args": '["x"]'}, id="wrong type"),
        pytest.param({"args": "[1, 2, 3]"}, id="too many"),
        pytest.param({"kwargs": '{"a": 1, "gone": 2}'}, id="unknown parameter"),
        pytest.param({}, id="missing"),
        pytest.param(
            {
                "args": '[{"__pydantic_model__": true, "module": "antigravity", '
                '"qualname": "X", "data": {}}]'
            },
            id="class of a module nobody imported",
        ),
    ],
)
async def test_arguments_that_do_not_fit_fail_before_user_code(
    app: Horsies, db: Database, columns: dict[str, str]
) -> None:
    task_id = db.insert(task_name="add", enqueued_at=now(), **columns)

    async with working(app):
        row = await ended(db, task_id)

    assert (row["status"], row["error_code"]) == ("FAILED", "WORKER_SERIALIZATION_ERROR")
    (attempt,) = db.attempts(task_id)
    assert attempt["outcome"] == "FAILED"


@pytest.mark.seed("S27", "S28", "S29", "S48")
async def test_failed_attempt_is_retried_by_its_policy(new_app: NewApp, db: Database) -> None:
    app = new_app()
    runs: list[datetime] = []

    policy = RetryPolicy.fixed([1], auto_retry_for=["BROKEN"], jitter=False)

    @app.task("flaky", retry_policy=policy)
    async def flaky() -> TaskResult[int, TaskError]:
        runs.append(now())
        if len(runs) == 1:
            return TaskResult(err=TaskError(error_code="BROKEN", message="once"))
        return TaskResult(ok=len(runs))

    task_id, result = await run_one(app, "flaky")

    row = db.task(task_id)
    first, second = db.attempts(task_id)
    assert result.ok_value == 2
    assert (row["retry_count"], row["status"]) == (1, "COMPLETED")
    assert row["enqueued_at"] == row["next_retry_at"]
    assert (first["will_retry"], first["outcome"]) == (True, "FAILED")
    assert (second["will_retry"], second["outcome"]) == (False, "COMPLETED")
    assert runs[1] - runs[0] >= timedelta(seconds=1)
    assert second["started_at"] - row["next_retry_at"] < timedelta(seconds=1), "told when due"


@pytest.mark.seed("S27")
async def test_code_that_is_not_listed_is_not_retried(new_app: NewApp, db: Database) -> None:
    app = new_app()
    policy = RetryPolicy.fixed([1], auto_retry_for=["BROKEN"], jitter=False)

    @app.task("wrong", retry_policy=policy)
    async def wrong() -> TaskResult[int, TaskError]:
        return TaskResult(err=TaskError(error_code="OTHER", message="no"))

    task_id, _ = await run_one(app, "wrong")

    assert (db.task(task_id)["retry_count"], len(db.attempts(task_id))) == (0, 1)


async def test_last_retry_ends_with_its_error(new_app: NewApp, db: Database) -> None:
    app = new_app()
    policy = RetryPolicy.fixed([1], auto_retry_for=["UNHANDLED_EXCEPTION"], jitter=False)

    @app.task("hopeless", retry_policy=policy)
    async def hopeless() -> TaskResult[int, TaskError]:
        raise RuntimeError("again")

    task_id, result = await run_one(app, "hopeless")

    assert result.err_value.error_code.value == "UNHANDLED_EXCEPTION"
    assert db.task(task_id)["retry_count"] == 1
    assert [attempt["will_retry"] for attempt in db.attempts(task_id)] == [True, False]


@pytest.mark.seed("S56")
async def test_retry_past_the_deadline_is_refused(new_app: NewApp, db: Database) -> None:
    app = new_app()
    policy = RetryPolicy.fixed([60], auto_retry_for=["BROKEN"], jitter=False)

    @app.task("late", retry_policy=policy)
    async def late() -> TaskResult[int, TaskError]:
        return TaskResult(err=TaskError(error_code="BROKEN", message="no"))

    deadline = now() + timedelta(seconds=30)
    handle = good(await late.with_options(good_until=deadline).send_async())
    async with working(app):
        result = await handle.get_async(10_000)

    assert result.err_value.error_code == "BROKEN"
    assert db.task(handle.task_id)["retry_count"] == 0


@pytest.mark.seed("S7", "S30", "S31", "S33", "S53", "S55")
async def test_task_sent_past_its_deadline_expires_unrun(app: Horsies, db: Database) -> None:
    past = now() - timedelta(seconds=1)
    handle = good(await app.tasks["add"].with_options(good_until=past).send_async(1))

    async with working(app):
        result = await handle.get_async(10_000)

    assert result.err_value.error_code.value == "TASK_EXPIRED"
    assert db.status(handle.task_id) == "EXPIRED"
    assert db.attempts(handle.task_id) == []


@pytest.mark.seed("S7", "S34", "S36", "S38", "S54", "S55")
async def test_task_that_waited_claimed_past_its_deadline_expires(
    new_app: NewApp, db: Database
) -> None:
    app, gate = new_app(prefetch_buffer=2, claim_lease_ms=60_000), Gate()
    held = gate.task(app)

    async with working(app, concurrency=1) as worker:
        first = good(await held.send_async(1))
        await gate.wait_for(1)
        second = good(await held.send_async(2))
        await eventually_async(lambda: has_status(db, second.task_id, "CLAIMED"))
        db.execute(
            "update horsies_tasks set good_until = now() - interval '1 s' where id = %s",
            second.task_id,
        )
        gate.open.set()
        result = await second.get_async(10_000)
        assert (await first.get_async(10_000)).ok_value == 1

    error = result.err_value
    assert error.error_code.value == "TASK_EXPIRED"
    assert error.data == {"task_id": second.task_id, "worker_id": worker.context.identity.worker_id}
    assert gate.inside == [1]
    assert db.attempts(second.task_id) == []


async def has_status(db: Database, task_id: str, status: str) -> bool:
    return db.status(task_id) == status


async def test_deadline_does_not_stop_a_running_task(new_app: NewApp, db: Database) -> None:
    app, gate = new_app(), Gate()
    held = gate.task(app)

    async with working(app):
        handle = good(await held.send_async(1))
        await gate.wait_for(1)
        db.execute("update horsies_tasks set good_until = now() - interval '1 s'")
        gate.open.set()
        result = await handle.get_async(10_000)

    assert result.ok_value == 1


@pytest.mark.seed("S78")
async def test_logging_of_a_task_is_stored_with_its_attempt(new_app: NewApp, db: Database) -> None:
    app = new_app()

    @app.task("talk")
    async def talk() -> TaskResult[int, TaskError]:
        logging.getLogger("shop").warning("hello from %s", "inside")
        return TaskResult(ok=1)

    @app.task("silent")
    async def silent() -> TaskResult[int, TaskError]:
        return TaskResult(ok=1)

    talks, silences = good(await talk.send_async()), good(await silent.send_async())
    async with working(app):
        await talks.get_async(10_000)
        await silences.get_async(10_000)

    (log,) = db.execute("select * from horsies_task_logs")
    assert (log["task_id"], log["attempt"], log["truncated"]) == (talks.task_id, 1, False)
    assert "hello from inside" in log["log"]
    assert "hello" in good(talks.info(include_log=True)).log


async def test_every_failed_attempt_keeps_its_own_traceback(new_app: NewApp) -> None:
    app = new_app()

    @app.task(
        "stumble",
        retry_policy=RetryPolicy.fixed([1, 1], auto_retry_for=["STUMBLED"], jitter=False),
        default_unhandled_error_code="STUMBLED",
    )
    async def stumble() -> TaskResult[int, TaskError]:
        attempt = current_task().attempt
        if attempt == 1:
            raise KeyError("the first")
        if attempt == 2:
            raise LookupError("the second")
        return TaskResult(ok=attempt)

    handle = good(await stumble.send_async())
    async with working(app):
        await handle.get_async(20_000)
    third, second, first = good(handle.info(include_attempts=True)).attempts

    assert third.traceback is None
    assert second.traceback.endswith("LookupError: the second\n")
    assert first.traceback.endswith("KeyError: 'the first'\n")


@pytest.mark.seed("S80")
async def test_failure_hooks_are_called_once_per_terminal_failure(
    new_app: NewApp, db: Database
) -> None:
    app = new_app()
    calls: list[dict[str, Any]] = []
    policy = RetryPolicy.fixed([1], auto_retry_for=["BROKEN"], jitter=False)

    @app.on_failure
    def broken_hook(**_failure: Any) -> None:
        raise RuntimeError("hooks may break")

    @app.on_failure
    def remember(**failure: Any) -> None:
        status = db.status(failure["task_id"])
        calls.append({**failure, "status": status})

    @app.task("broken", retry_policy=policy)
    async def broken() -> TaskResult[int, TaskError]:
        return TaskResult(err=TaskError(error_code="BROKEN", message="no"))

    task_id, _ = await run_one(app, "broken")

    (call,) = calls
    assert (call["task_id"], call["task_name"], call["attempt"]) == (task_id, "broken", 2)
    assert (call["error"].error_code, call["status"]) == ("BROKEN", "FAILED")


@pytest.mark.seed("S44")
async def test_delayed_task_is_picked_up_when_due(new_app: NewApp, db: Database) -> None:
    """Long before the poll, which is a minute away."""
    app = new_app(resilience={"notify_poll_interval_ms": 60_000})

    @app.task("echo_later")
    async def echo_later(value: int) -> TaskResult[int, TaskError]:
        return TaskResult(ok=value)

    async with working(app):
        handle = good(await echo_later.schedule_async(1, 7))
        await eventually_async(lambda: has_status(db, handle.task_id, "PENDING"))
        result = await handle.get_async(30_000)

    row = db.task(handle.task_id)
    assert result.ok_value == 7
    assert row["started_at"] >= row["enqueued_at"]


async def test_lost_notifications_are_made_up_by_polling(new_app: NewApp, db: Database) -> None:
    app = new_app(resilience={"notify_poll_interval_ms": 1_000})
    gate = Gate()
    gate.open.set()
    held = gate.task(app)
    db.execute("alter table horsies_tasks disable trigger user")

    async with working(app):
        handle = good(await held.send_async(1))
        result = await handle.get_async(15_000)

    assert result.ok_value == 1


@pytest.mark.seed("S2", "S101", "S105")
async def test_soft_cap_shows_waiting_claims_and_returns_them_at_the_end(
    new_app: NewApp, db: Database
) -> None:
    app, gate = new_app(prefetch_buffer=3, claim_lease_ms=60_000), Gate()
    held = gate.task(app)
    for number in range(10):
        good(await held.send_async(number))

    async with working(app, concurrency=2) as worker:
        await gate.wait_for(2)
        await eventually_async(lambda: has_statuses(db, RUNNING=2, CLAIMED=3, PENDING=5))
        claimed = db.execute("select * from horsies_tasks where status = 'CLAIMED'")
        worker.stop()
        await eventually_async(lambda: has_statuses(db, RUNNING=2, PENDING=8))
        gate.open.set()

    assert {row["claimed_by_worker_id"] for row in claimed} == {worker.context.identity.worker_id}
    assert all(row["claimed"] and row["claim_expires_at"] for row in claimed)
    assert db.statuses() == {"COMPLETED": 2, "PENDING": 8}


async def has_statuses(db: Database, **statuses: int) -> bool:
    return db.statuses() == statuses


async def test_hard_cap_never_holds_more_than_its_slots(new_app: NewApp, db: Database) -> None:
    app, gate = new_app(prefetch_buffer=0), Gate()
    held = gate.task(app)
    for number in range(6):
        good(await held.send_async(number))

    async with working(app, concurrency=2):
        await gate.wait_for(2)
        statuses = db.statuses()
        gate.open.set()
        await eventually_async(lambda: has_statuses(db, COMPLETED=6))

    assert statuses == {"RUNNING": 2, "PENDING": 4}


async def test_queue_cap_holds_over_two_workers(new_app: NewApp, db: Database) -> None:
    queues = [CustomQueueConfig(name="q", max_concurrency=3)]
    app = new_app(queue_mode=QueueMode.CUSTOM, custom_queues=queues)
    gate = Gate()
    held = gate.task(app, queue_name="q")
    for number in range(8):
        good(await held.send_async(number))

    async with working(app), working(app):
        await gate.wait_for(3)
        statuses = db.statuses()
        gate.open.set()
        await eventually_async(lambda: has_statuses(db, COMPLETED=8))

    assert statuses == {"RUNNING": 3, "PENDING": 5}


async def test_cluster_cap_holds_over_two_workers(new_app: NewApp, db: Database) -> None:
    app, gate = new_app(cluster_wide_cap=3), Gate()
    held = gate.task(app)
    for number in range(8):
        good(await held.send_async(number))

    async with working(app), working(app):
        await gate.wait_for(3)
        statuses = db.statuses()
        gate.open.set()
        await eventually_async(lambda: has_statuses(db, COMPLETED=8))

    assert statuses == {"RUNNING": 3, "PENDING": 5}


@pytest.mark.seed("S13", "S71")
async def test_two_workers_run_each_task_once(new_app: NewApp, db: Database) -> None:
    app, gate = new_app(), Gate()
    gate.open.set()
    held = gate.task(app)
    good(await held.send_many_async((number,) for number in range(500)))

    async with working(app), working(app):
        await eventually_async(lambda: has_statuses(db, COMPLETED=500))

    assert sorted(gate.inside) == list(range(500))
    assert db.value("select count(*) from horsies_task_attempts") == 500


async def test_claim_batches_of_one_drain_the_queue(new_app: NewApp, db: Database) -> None:
    app, gate = new_app(), Gate()
    gate.open.set()
    held = gate.task(app)
    good(await held.send_many_async((number,) for number in range(20)))

    async with working(app, max_claim_batch=1):
        await eventually_async(lambda: has_statuses(db, COMPLETED=20))

    assert gate.inside == list(range(20)), "first in, first out"


async def test_claims_of_large_arguments_carry_64_megabytes_each(
    new_app: NewApp, db: Database
) -> None:
    app = new_app(resilience=WorkerResilienceConfig(notify_poll_interval_ms=300_000))
    inside: list[int] = []
    opened = asyncio.Event()

    @app.task("large")
    async def large(text: str) -> TaskResult[int, TaskError]:
        inside.append(len(text))
        await opened.wait()
        return TaskResult(ok=len(text))

    app.get_broker().database.ensure_schema()
    db.execute(
        "insert into horsies_tasks (id, task_name, queue_name, enqueue_sha, args) "
        "select lpad(n::text, 36, '0'), 'large', 'default', '', "
        "  jsonb_build_array(repeat('x', 10000000))::text from generate_series(1, 15) n"
    )

    async def all_are_inside() -> bool:
        return len(inside) == 15

    async with working(app):
        await eventually_async(all_are_inside)
        claims = db.execute("select count(*) as n from horsies_tasks group by claimed_at")
        opened.set()

    assert sorted(row["n"] for row in claims) == [1, 7, 7], "without a poll between them"


@pytest.mark.seed("S95")
async def test_better_priority_runs_first(new_app: NewApp, db: Database) -> None:
    queues = [
        CustomQueueConfig(name="low", priority=50, max_concurrency=None),
        CustomQueueConfig(name="high", priority=1, max_concurrency=None),
    ]
    app = new_app(queue_mode=QueueMode.CUSTOM, custom_queues=queues, prefetch_buffer=0)
    gate = Gate()
    gate.open.set()
    low = gate.task(app, "low", queue_name="low")
    high = gate.task(app, "high", queue_name="high")
    for number in range(5):
        good(await low.send_async(100 + number))
        good(await high.send_async(number))

    async with working(app, concurrency=1):
        await eventually_async(lambda: has_statuses(db, COMPLETED=10))

    assert gate.inside == [0, 1, 2, 3, 4, 100, 101, 102, 103, 104]


async def test_drain_lets_running_tasks_finish(
    new_app: NewApp, db: Database, caplog: pytest.LogCaptureFixture
) -> None:
    app, gate = new_app(), Gate()
    held = gate.task(app)
    caplog.set_level("INFO", logger="horsies")

    async def is_draining() -> bool:
        return "to finish (" in caplog.text

    async with working(app) as worker:
        handle = good(await held.send_async(1))
        await gate.wait_for(1)
        worker.stop()
        await eventually_async(
            is_draining
        )  # a claim that was under way may still take what it finds
        later = good(await held.send_async(2))
        gate.open.set()

    assert (await handle.get_async(0)).ok_value == 1
    assert db.status(later.task_id) == "PENDING"


@pytest.mark.seed("S125", "S126", "S127")
async def test_worker_writes_a_snapshot_of_itself(new_app: NewApp, db: Database) -> None:
    app = new_app(cluster_wide_cap=9)
    gate = Gate()
    gate.task(app)

    async with working(app, concurrency=7) as worker:

        async def snapshot() -> list[dict[str, Any]]:
            return db.execute("select * from horsies_worker_states")

        (row, *_) = await eventually_async(snapshot)

    assert (row["worker_id"], row["pid"]) == (worker.context.identity.worker_id, os.getpid())
    assert (row["queues"], row["cluster_wide_cap"]) == (["default"], 9)
    assert row["slots"] == {"async": {"slots": 7, "busy": 0}}, "its only task is a coroutine"
    assert row["memory_usage_mb"] > 1
    assert row["worker_started_at"] <= row["snapshot_at"]
    assert row["recovery_config"]["check_interval_ms"] == 30_000


@pytest.mark.seed("S18", "S49", "S61")
async def test_long_run_gets_heartbeats_and_short_ones_none(new_app: NewApp, db: Database) -> None:
    app = new_app(
        recovery={"runner_heartbeat_interval_ms": 1_000, "running_stale_threshold_ms": 2_000}
    )
    gate = Gate()
    held = gate.task(app)

    async def beats() -> list[dict[str, Any]]:
        return db.execute("select * from horsies_heartbeats order by sent_at")

    async with working(app) as worker:
        long = good(await held.send_async(1))
        await eventually_async(beats)
        gate.open.set()
        short = good(await held.send_async(2))
        await short.get_async(10_000)

    rows = await beats()
    assert {row["task_id"] for row in rows} == {long.task_id}
    assert (rows[0]["role"], rows[0]["pid"]) == ("runner", os.getpid())
    assert rows[0]["sender_id"] == f"{worker.context.identity.worker_id}:{os.getpid()}"


async def test_heartbeats_go_on_while_another_service_waits(
    new_app: NewApp, db: Database, database_url: str
) -> None:
    app, gate = new_app(recovery=RecoveryConfig(runner_heartbeat_interval_ms=1_000)), Gate()
    held = gate.task(app)
    count = "select count(*) from horsies_heartbeats"
    waits = (
        "select count(*) = 1 from pg_stat_activity where datname = current_database() "
        "and application_name = 'horsies service' and wait_event_type = 'Lock'"
    )

    async with working(app):
        good(await held.send_async(1))
        await eventually_async(lambda: asyncio.to_thread(db.value, count))
        with psycopg.connect(database_url) as blocker:
            blocker.execute("lock table horsies_worker_states")
            await eventually_async(lambda: asyncio.to_thread(db.value, waits), within=15)
            before = db.value(count)

            await eventually_async(lambda: asyncio.to_thread(lambda: db.value(count) > before + 1))

            assert db.value(waits), "the service has waited all the time"
        gate.open.set()


async def test_work_behind_a_task_that_turns_out_long_goes_to_an_idle_worker(
    new_app: NewApp, db: Database
) -> None:
    app, gate = new_app(), threading.Event()

    @app.task("step", execution="blocking")
    def step(is_long: bool) -> TaskResult[None, TaskError]:
        if is_long:
            gate.wait(30)
        return TaskResult(ok=None)

    async with working(app, threads=1):
        for handle in good(await step.send_many_async([(False,)] * 100)):
            await handle.get_async(20_000)
        long, *short = good(await step.send_many_async([(True,)] + [(False,)] * 10))
        in_hand = "select count(*) = 11 from horsies_tasks where status = 'RUNNING'"
        await eventually_async(lambda: asyncio.to_thread(db.value, in_hand))
        async with working(app, threads=1) as idle:
            results = [await handle.get_async(10_000) for handle in short]
            gate.set()
            await long.get_async(10_000)

    workers = {db.task(handle.task_id)["claimed_by_worker_id"] for handle in short}
    assert all(result.is_ok() for result in results)
    assert workers == {idle.context.identity.worker_id}
    assert {len(db.attempts(handle.task_id)) for handle in short} == {1}


async def test_tasks_send_and_await_tasks(new_app: NewApp, db: Database) -> None:
    app = new_app()

    @app.task("leaf")
    async def leaf(number: int) -> TaskResult[int, TaskError]:
        return TaskResult(ok=number * 2)

    @app.task("from_loop")
    async def from_loop() -> TaskResult[int, TaskError]:
        return await good(await leaf.send_async(4)).get_async(10_000)

    @app.task("from_thread", execution="blocking")
    def from_thread() -> TaskResult[int, TaskError]:
        return good(leaf.send(5)).get(10_000)

    handles = [good(await from_loop.send_async()), good(await from_thread.send_async())]
    async with working(app):
        results = [await handle.get_async(15_000) for handle in handles]

    assert [result.ok_value for result in results] == [8, 10]
    assert db.statuses() == {"COMPLETED": 4}


async def test_loop_stays_free_while_threads_work(new_app: NewApp, db: Database) -> None:
    app = new_app()
    release = threading.Event()

    @app.task("block", execution="blocking")
    def block() -> TaskResult[str, TaskError]:
        release.wait(timeout=20)
        return TaskResult(ok=threading.current_thread().name)

    @app.task("quick")
    async def quick() -> TaskResult[int, TaskError]:
        return TaskResult(ok=1)

    async with working(app, threads=2):
        blocked = [good(await block.send_async()) for _ in range(2)]
        result = await good(await quick.send_async()).get_async(10_000)
        release.set()
        names = [(await handle.get_async(10_000)).ok_value for handle in blocked]

    assert result.ok_value == 1
    assert threading.current_thread().name not in names


@pytest.mark.seed("S138", "S139")
@pytest.mark.parametrize("hours", [1, None])
async def test_reaper_prunes_old_records_unless_told_not_to(
    new_app: NewApp, db: Database, hours: int | None
) -> None:
    app = new_app(
        recovery={
            "terminal_record_retention_hours": hours,
            "heartbeat_retention_hours": hours,
            "worker_state_retention_hours": hours,
        }
    )
    Gate().task(app)
    old = now() - timedelta(hours=2)
    db.insert(status="COMPLETED", completed_at=old)
    db.insert(status="FAILED", failed_at=old)
    marker = db.insert(good_until=old)
    db.insert("horsies_heartbeats", task_id="x", sender_id="x", role="runner", sent_at=old)

    async def counts() -> tuple[int, int]:
        ended = "select count(*) from horsies_tasks where id <> %s"
        return db.value(ended, marker), db.value("select count(*) from horsies_heartbeats")

    async def is_swept() -> bool:
        return await counts() == ((0, 0) if hours else (2, 1))

    async with working(app):
        await ended(db, marker)
        await eventually_async(is_swept)

    assert await is_swept()


async def test_task_sent_while_a_claim_is_answered_is_not_left_to_the_poll(
    new_app: NewApp, db: Database
) -> None:
    app, gate = new_app(), Gate()
    gate.open.set()
    held = gate.task(app)
    handles: list[Any] = []

    def send_between_answer_and_reading(worker: Worker) -> None:
        claiming, claimer = worker._claiming, worker._claimer
        original = claiming.run

        async def run(statement: Statement[Any]) -> list[Any]:
            rows = await original(statement)
            if "horsies_claim_tasks" in statement.sql and not rows and not handles:
                wake_count = claimer._wake_count
                handles.append(good(await held.send_async(1)))

                async def is_told() -> bool:
                    return claimer._wake_count > wake_count

                await eventually_async(is_told)
            return rows

        claiming.run = run  # type: ignore[method-assign]

    async with working(app, before_start=send_between_answer_and_reading):
        await gate.wait_for(1)

    row = db.task(handles[0].task_id)
    assert row["started_at"] - row["enqueued_at"] < timedelta(seconds=2)


@pytest.mark.parametrize("cap", [None, 5])
async def test_a_notification_makes_a_pass_over_its_own_queue_only(
    new_app: NewApp, cap: int | None
) -> None:
    names = [f"q{number}" for number in range(20)]
    app = new_app(
        queue_mode=QueueMode.CUSTOM,
        custom_queues=[CustomQueueConfig(name=name, max_concurrency=cap) for name in names],
        resilience=WorkerResilienceConfig(notify_poll_interval_ms=300_000),
    )
    gate = Gate()
    gate.open.set()
    held = gate.task(app, queue_name="q7")
    asked: list[tuple[str, list[str], bool]] = []

    def note_queues(worker: Worker) -> None:
        original = worker._claiming.run

        async def run(statement: Statement[Any]) -> list[Any]:
            given = statement.parameters
            for function in ("claim_tasks", "next_due"):
                if f"horsies_{function}" in statement.sql:
                    queues = re.findall(r"\bq\d+\b", str(given["queues"]))
                    asked.append((function, queues, bool(given.get("is_full_scan"))))
            return await original(statement)

        worker._claiming.run = run  # type: ignore[method-assign]

    async with working(app, before_start=note_queues) as worker:

        async def is_at_rest() -> bool:
            return worker._claimer._is_idle() and not worker._claimer._to_ask_when_due

        await eventually_async(is_at_rest)
        rounds: list[list[list[str]]] = []
        for number in range(6):
            asked.clear()
            good(await held.send_async(number))
            await gate.wait_for(number + 1)
            await eventually_async(is_at_rest)
            rounds.append([queues for _, queues, is_full_scan in asked if not is_full_scan])

    # On a busy machine the listener's own wake-ups, for all queues, may meet some of the rounds.
    assert any(passes and all(queues == ["q7"] for queues in passes) for passes in rounds)


async def test_a_row_that_becomes_due_while_all_slots_are_busy_costs_no_turns(
    new_app: NewApp, db: Database
) -> None:
    app, gate, turns = new_app(), Gate(), []
    held = gate.task(app)

    def count_turns(worker: Worker) -> None:
        original = worker._claimer._sleep

        async def sleep(stopping: asyncio.Event) -> None:
            turns.append(1)
            await original(stopping)

        worker._claimer._sleep = sleep  # type: ignore[method-assign]

    async with working(app, concurrency=1, before_start=count_turns):
        delayed = good(await held.schedule_async(1, 2))
        good(await held.send_async(1))
        await gate.wait_for(1)

        async def is_overdue() -> bool:
            return now() > db.task(delayed.task_id)["enqueued_at"] + timedelta(seconds=0.5)

        await eventually_async(is_overdue)
        assert len(turns) < 50
        gate.open.set()
        await gate.wait_for(2)


async def test_burst_ends_with_its_last_task_and_not_with_the_next_poll(
    new_app: NewApp, db: Database
) -> None:
    app = new_app(resilience=WorkerResilienceConfig(notify_poll_interval_ms=300_000))
    gate = Gate()
    handle = good(await gate.task(app).send_async(1))

    async with working(app, is_burst=True) as worker:
        claimer = worker._claimer

        async def has_nothing_more_to_claim() -> bool:
            return not any(claimer._may_have_more) and not claimer._owes_full_scan

        await gate.wait_for(1)
        await eventually_async(has_nothing_more_to_claim)
        gate.open.set()
        async with asyncio.timeout(10):
            await worker.stopping.wait()

    assert db.status(handle.task_id) == "COMPLETED"


async def test_viewers_hear_of_a_task_that_runs(new_app: NewApp, db: Database) -> None:
    app = new_app()
    gate = asyncio.Event()

    @app.task("waits")
    async def waits() -> TaskResult[int, TaskError]:
        await gate.wait()
        return TaskResult(ok=1)

    handle = good(await waits.send_async())
    db.execute("listen horsies_task_status")
    async with working(app):
        heard = await asyncio.to_thread(lambda: next(db.connection.notifies(timeout=10)))
        status = db.status(handle.task_id)
        gate.set()
        await handle.get_async(10_000)

    assert (heard.payload, status) == (handle.task_id, "RUNNING")


async def test_many_slots_of_one_kind_leave_the_others_their_share(database_url: str) -> None:
    """A wide lane may ask for all that one claim carries; those behind it are asked for, too."""
    resilience = WorkerResilienceConfig(notify_poll_interval_ms=300_000)
    app = make_app(database_url, resilience=resilience)

    @app.task("coroutine")
    async def coroutine() -> TaskResult[int, TaskError]:
        return TaskResult(ok=1)

    @app.task("thread", execution="blocking")
    def thread() -> TaskResult[int, TaskError]:
        return TaskResult(ok=2)

    async with working(app, concurrency=1_000, threads=1):
        for task in (coroutine, thread, coroutine, thread):
            handle = good(await task.send_async())
            assert (await handle.get_async(timeout_ms=20_000)).is_ok()
    await app.get_broker().close_async()
