"""Hooks and middleware of an app, with a worker in the test's own event loop."""

import asyncio
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from horsies import ConfigurationError, CurrentTask, Horsies, RetryPolicy, TaskFailed, TaskFilter
from horsies.config import RecoveryConfig
from horsies.testing import inline
from support.apps import good, working
from support.database import Database, retry_options
from support.eventually import eventually_async

NewApp = Callable[..., Horsies]


def watched(app: Horsies, *names: Any) -> list[tuple[str, Any]]:
    """The events of these names, as they are told."""
    told: list[tuple[str, Any]] = []
    for name in names:
        app.on(name)(lambda event, name=name: told.append((name, event)))
    return told


async def test_a_retried_task_is_told_of_at_each_turn(new_app: NewApp, db: Database) -> None:
    app = new_app(allow_plain_returns=True)
    policy = RetryPolicy.fixed([1], auto_retry_for=["BUSY"], jitter=False)
    told = watched(app, "enqueued", "started", "retried", "succeeded", "failed")

    @app.task("pay", retry_policy=policy)
    async def pay() -> None:
        raise TaskFailed("BUSY", "the bank does not answer")

    handle = good(await pay.send_async())
    async with working(app) as worker:
        await handle.get_async(20_000)

    assert [(name, getattr(event, "attempt", None)) for name, event in told] == [
        ("enqueued", None), ("started", 1), ("retried", 1), ("started", 2), ("failed", 2),
    ]  # fmt: skip
    assert {(event.task_id, event.task_name, event.queue_name) for _, event in told} == {
        (handle.task_id, "pay", "default")
    }
    retried, failed = told[2][1], told[4][1]
    assert (retried.retry_after_s, retried.error.error_code) == (1.0, "BUSY")
    assert (failed.worker_id, failed.error.message) == (
        worker.context.identity.worker_id,
        "the bank does not answer",
    )


async def test_cancelled_and_expired_tasks_are_told_of(new_app: NewApp, db: Database) -> None:
    app = new_app(allow_plain_returns=True, recovery=RecoveryConfig(check_interval_ms=1_000))
    told = watched(app, "cancelled", "expired")
    inside = asyncio.Event()

    @app.task("wait")
    async def wait() -> None:
        inside.set()
        await asyncio.Event().wait()

    late = db.insert(good_until=datetime.now(UTC) - timedelta(seconds=1), task_name="late")
    handle = good(await wait.send_async())
    async with working(app):
        await inside.wait()
        assert good(await app.get_broker().cancel_task(handle.task_id, running=True))
        await eventually_async(lambda: length(told, 2))

    events = dict(told)
    assert (events["cancelled"].task_id, events["cancelled"].attempt) == (handle.task_id, 1)
    assert (events["expired"].task_id, events["expired"].task_name) == (late, "late")
    assert db.status(late) == "EXPIRED"


async def test_waiting_tasks_that_someone_cancels_are_told_of_where_that_happens(
    new_app: NewApp, db: Database
) -> None:
    app = new_app(allow_plain_returns=True)
    told = watched(app, "cancelled")
    broker, operations = app.get_broker(), app.operations
    ids = [db.insert(task_name=f"t{number}") for number in range(5)]
    running = db.insert(status="RUNNING", task_name="busy")

    assert good(await broker.cancel_task(ids[0]))
    assert good(await asyncio.to_thread(broker.cancel_task_sync, ids[1]))
    assert good(await asyncio.to_thread(broker.cancel_tasks, TaskFilter(task_name="t2"))) == 1
    assert good(await asyncio.to_thread(operations.cancel, [ids[3], running])).number == 1
    assert good(await operations.cancel_async(TaskFilter(task_name="t4"))).number == 1
    assert not good(await broker.cancel_task(ids[0]))  # again: it was told of once

    events = [event for _, event in told]
    assert [(event.task_id, event.task_name) for event in events] == [
        (task_id, f"t{number}") for number, task_id in enumerate(ids)
    ]
    assert {(event.queue_name, event.attempt, event.worker_id) for event in events} == {
        ("default", None, None)
    }


async def length(told: list[Any], count: int) -> bool:
    return len(told) >= count


def insert_lost_run(db: Database, name: str, **columns: Any) -> str:
    """A run of a worker on another machine, silent for an hour."""
    since = datetime.now(UTC) - timedelta(hours=1)
    return db.insert(
        status="RUNNING", task_name=name, claimed_at=since, started_at=since,
        claimed_by_worker_id="gone", **columns,
    )  # fmt: skip


@pytest.mark.parametrize("is_by_hand", [False, True], ids=["by a worker", "by hand"])
async def test_runs_that_recovery_gives_up_are_told_of_once(
    new_app: NewApp, db: Database, *, is_by_hand: bool
) -> None:
    recovery = RecoveryConfig(check_interval_ms=1_000, auto_fail_stale_running=not is_by_hand)
    app = new_app(allow_plain_returns=True, recovery=recovery)
    told = watched(app, "failed", "retried", "cancelled", "expired")
    again = {"max_retries": 1, "task_options": retry_options(1, ["WORKER_CRASHED"])}
    failed = insert_lost_run(db, "pay")
    retried = insert_lost_run(db, "pack", **again)
    cancelled = insert_lost_run(db, "ship", cancel_requested_at=datetime.now(UTC), **again)
    late = db.insert(good_until=datetime.now(UTC) - timedelta(seconds=1), task_name="late")

    if is_by_hand:
        assert good(await app.get_broker().mark_stale_tasks_as_failed(60_000)) == 3
        assert good(await app.get_broker().expire_pending_tasks()) == 1
    else:
        async with working(app):
            await eventually_async(lambda: length(told, 4))
            await app.get_broker().mark_stale_tasks_as_failed(60_000)

    events = dict(told)
    assert {name: event.task_id for name, event in events.items()} == {
        "failed": failed, "retried": retried, "cancelled": cancelled, "expired": late,
    }  # fmt: skip
    assert len(told) == 4
    lost = [events["failed"], events["retried"], events["cancelled"]]
    assert [(event.task_name, event.attempt, event.worker_id) for event in lost] == [
        ("pay", 1, "gone"), ("pack", 1, "gone"), ("ship", 1, "gone"),
    ]  # fmt: skip
    assert events["failed"].error.error_code == "WORKER_CRASHED"
    assert events["retried"].retry_after_s == 10


async def test_enqueued_is_told_once_per_new_task(new_app: NewApp) -> None:
    app = new_app(allow_plain_returns=True)
    told = watched(app, "enqueued")
    awaited: list[str] = []

    @app.on("enqueued")
    async def wait_a_turn(event: Any) -> None:
        await asyncio.sleep(0)
        awaited.append(event.task_id)

    @app.task("pack")
    async def pack(order: int) -> None: ...

    one = good(await asyncio.to_thread(pack.send, 1))
    two = good(pack.send(2))  # while a loop runs here
    many = good(await asyncio.to_thread(pack.send_many, [(3,), (4,)]))
    unique = pack.with_options(unique_key="k")
    first, again = good(await unique.send_async(5)), good(await unique.send_async(5))

    ids = [handle.task_id for handle in (one, two, *many, first)]
    assert (first.task_id, again.created) == (again.task_id, False)
    assert [event.task_id for _, event in told] == ids
    assert awaited == ids


async def test_hooks_that_raise_change_nothing(
    new_app: NewApp, caplog: pytest.LogCaptureFixture
) -> None:
    app = new_app(allow_plain_returns=True)

    @app.on("enqueued")
    @app.on("succeeded")
    def broken(event: Any) -> None:
        raise RuntimeError("hooks may break")

    @app.task("pack")
    async def pack() -> int:
        return 1

    handle = good(await pack.send_async())
    async with working(app):
        result = await handle.result_async(10_000)

    assert result == 1
    told = [record.message for record in caplog.records if record.name == "horsies.hooks"]
    assert told == [
        "a hook for 'enqueued' raised; it changes nothing",
        "a hook for 'succeeded' raised; it changes nothing",
    ]


async def test_hook_that_exits_keeps_no_other_from_being_told(new_app: NewApp) -> None:
    app = new_app(allow_plain_returns=True)

    @app.on("succeeded")
    def leave(event: Any) -> None:
        raise SystemExit(1)

    told = watched(app, "succeeded")

    @app.task("pack")
    async def pack() -> int:
        return 1

    handles = [good(await pack.send_async()) for _ in range(2)]
    async with working(app):
        for handle in handles:
            await handle.result_async(10_000)

    assert {event.task_id for _, event in told} == {handle.task_id for handle in handles}


def test_middleware_may_answer_fail_and_change_the_result(new_app: NewApp) -> None:
    app = new_app(allow_plain_returns=True)
    order: list[str] = []

    @app.middleware
    def outer(task: CurrentTask, call_next: Callable[[], Any]) -> Any:
        order.append("outer")
        return call_next() + 1

    @app.middleware
    def inner(task: CurrentTask, call_next: Callable[[], Any]) -> Any:
        order.append("inner")
        if task.name == "refused":
            raise PermissionError("not today")
        return 10 if task.name == "answered" else call_next()

    @app.task("plain")
    def plain() -> int:
        order.append("task")
        return 1

    @app.task("answered")
    def answered() -> int:
        raise AssertionError("middleware answers for it")

    @app.task("refused")
    def refused() -> int:
        raise AssertionError("middleware refuses it")

    with inline(app):
        results = [good(task.send()).get() for task in (plain, answered, refused)]

    assert [result.ok_value for result in results[:2]] == [2, 11]
    assert "PermissionError: not today" in (results[2].err_value.message or "")
    described = results[2].err_value.exception
    assert isinstance(described, dict)
    assert "in outer" in described["traceback"].splitlines()[1]
    assert order == ["outer", "inner", "task", "outer", "inner", "outer", "inner"]


def test_bad_hooks_are_refused_where_they_are_registered() -> None:
    app = Horsies("postgresql://nowhere/none")

    with pytest.raises(ConfigurationError, match="there is no event 'faild'") as unknown:
        app.on("faild")  # type: ignore[call-overload]
    with pytest.raises(ConfigurationError, match="a hook must be a function, not str"):
        app.on("failed")("print")  # type: ignore[arg-type]
    with pytest.raises(ConfigurationError, match="middleware takes the task and the next call"):
        app.middleware(lambda task: None)  # type: ignore[arg-type, misc]

    assert "enqueued, started, succeeded" in str(unknown.value)
