"""One task as it stands: its row, its attempts, read for people and programs."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple

from horsies.result import TaskError, TaskResult
from horsies.states import TaskStatus


@dataclass(frozen=True, slots=True)
class TaskAttemptInfo:
    task_id: str
    attempt: int
    outcome: str
    will_retry: bool
    started_at: datetime
    finished_at: datetime
    error_code: str | None
    error_message: str | None
    failed_reason: str | None
    worker_id: str | None
    worker_hostname: str | None
    worker_pid: int | None
    worker_process_name: str | None
    # Of an exception; cut in the middle when it is longer than 16,000 characters.
    traceback: str | None = None


class TaskProgress(NamedTuple):
    """How far a task has said it is, by `current_task().progress(...)`."""

    attempt: int
    done: float
    total: float | None
    note: str | None
    updated_at: datetime

    @property
    def fraction(self) -> float | None:
        """The part that is done, at most 1; `None` if the total is unknown."""
        return min(1.0, self.done / self.total) if self.total else None

    def __str__(self) -> str:
        amount = f"{self.done:,.10g}"
        if self.total is not None:
            amount = f"{amount} of {self.total:,.10g}"
        return f"{amount}: {self.note}" if self.note else amount


@dataclass(frozen=True, slots=True)
class TaskInfo:
    """One task as it stands. Parts that cost more are there only when asked for."""

    task_id: str
    task_name: str
    status: TaskStatus
    queue_name: str
    priority: int
    retry_count: int
    max_retries: int
    next_retry_at: datetime | None
    sent_at: datetime | None
    enqueued_at: datetime | None
    claimed_at: datetime | None
    started_at: datetime | None
    completed_at: datetime | None
    failed_at: datetime | None
    worker_hostname: str | None
    worker_pid: int | None
    worker_process_name: str | None
    error_code: str | None
    unique_key: str | None
    rerun_of: str | None
    good_until: datetime | None = None
    tags: list[str] | None = None
    result: TaskResult[Any, TaskError] | None = None
    failed_reason: str | None = None
    log: str | None = None
    attempts: list[TaskAttemptInfo] | None = None
    progress: TaskProgress | None = None
