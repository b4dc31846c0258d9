"""What happens to tasks and workers, as hooks are told of it: `@app.on("failed")`."""

from dataclasses import dataclass
from typing import Literal, TypeAlias

from horsies.result import TaskError

EventName: TypeAlias = Literal[
    "enqueued", "started", "succeeded", "failed", "retried", "cancelled", "expired",
    "worker_started", "worker_stopping",
]  # fmt: skip


@dataclass(frozen=True, slots=True)
class _TaskEvent:
    task_id: str
    task_name: str
    queue_name: str


@dataclass(frozen=True, slots=True)
class EnqueuedEvent(_TaskEvent):
    """This process has stored a new task; in a transaction of the caller's, which may still fail.

    Told in the process that sends, before `send` returns.
    """

    is_in_transaction: bool


@dataclass(frozen=True, slots=True)
class _AttemptEvent(_TaskEvent):
    attempt: int
    worker_id: str


@dataclass(frozen=True, slots=True)
class StartedEvent(_AttemptEvent):
    """The worker hands an attempt to its executor, where it begins as soon as there is a place.

    An attempt that was given back before its code began is told of again where it does begin.
    """


@dataclass(frozen=True, slots=True)
class SucceededEvent(_AttemptEvent):
    """The task is COMPLETED, and that is committed."""

    duration_s: float | None


@dataclass(frozen=True, slots=True)
class FailedEvent(_AttemptEvent):
    """The task is FAILED for good, and that is committed."""

    duration_s: float | None
    error: TaskError


@dataclass(frozen=True, slots=True)
class RetriedEvent(_AttemptEvent):
    """An attempt has failed and the task will be tried again, and that is committed."""

    duration_s: float | None
    error: TaskError
    retry_after_s: float | None


@dataclass(frozen=True, slots=True)
class CancelledEvent(_TaskEvent):
    """A task was cancelled, and that is committed; without an attempt, it had not begun."""

    attempt: int | None = None
    worker_id: str | None = None


@dataclass(frozen=True, slots=True)
class ExpiredEvent(_TaskEvent):
    """The deadline of a task passed before it began, and that is committed.

    `worker_id` is the worker that noticed; without one, a call noticed it.
    """

    worker_id: str | None


@dataclass(frozen=True, slots=True)
class WorkerStartedEvent:
    """A worker is about to claim its first tasks."""

    worker_id: str
    queue_names: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class WorkerStoppingEvent:
    """A worker has been told to stop and finishes what it runs."""

    worker_id: str
    running_count: int
