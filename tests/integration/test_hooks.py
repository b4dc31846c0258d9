"""Hooks and middleware of an app, with a worker in the test's own event loop."""

import asyncio
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from horsies import ConfigurationError, CurrentTask, Horsies, RetryPolicy, TaskFailed
from horsies.config import RecoveryConfig
from horsies.testing import inline
from support.apps import good, working
from support.database import Database
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


async def length(told: list[Any], count: int) -> bool:
    return len(told) >= count


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
