"""Hooks, middleware and the current task that must type-check, with the types they must have."""

from collections.abc import Awaitable, Callable
from datetime import datetime
from typing import Any, assert_type

from horsies import (
    CurrentTask,
    EnqueuedEvent,
    FailedEvent,
    Horsies,
    RetriedEvent,
    TaskError,
    TaskInfo,
    TaskProgress,
    WorkerStartedEvent,
    current_task,
)

app = Horsies()


@app.on("enqueued")
def on_enqueued(event: EnqueuedEvent) -> None:
    assert_type(event.is_in_transaction, bool)


@app.on("failed")
async def on_failed(event: FailedEvent) -> None:
    assert_type(event.error, TaskError)
    assert_type(event.attempt, int)


@app.on("retried")
def on_retried(event: RetriedEvent) -> float | None:
    return event.retry_after_s


app.on("worker_started")(lambda event: print(assert_type(event, WorkerStartedEvent).queue_names))


@app.middleware
def plain(task: CurrentTask, call_next: Callable[[], Any]) -> Any:
    assert_type(task.deadline, datetime | None)
    return call_next()


@app.middleware
async def around(task: CurrentTask, call_next: Callable[[], Awaitable[Any]]) -> Any:
    return await call_next()


current_task().progress(1)
current_task().progress(0.5, 1, note="half")
current_task().log("so far %d", 3)
assert_type(current_task().is_cancel_requested, bool)


def shown(info: TaskInfo) -> float | None:
    assert_type(info.progress, TaskProgress | None)
    return info.progress and info.progress.fraction
