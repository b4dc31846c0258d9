"""The statements that read tasks: their results, themselves, their attempts."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, NamedTuple

from horsies.database.loading import fitted
from horsies.database.sql_files import query
from horsies.database.statement import Statement
from horsies.results.task_info import TaskAttemptInfo, TaskInfo, TaskProgress
from horsies.states import TaskStatus


class StoredResult(NamedTuple):
    task_id: str
    task_name: str
    status: str
    result: str | None
    error_code: str | None


@dataclass(frozen=True, slots=True)
class StoredTask(TaskInfo):
    """A `TaskInfo` as the row has it: status and result are texts."""

    status: Any
    result: Any = None


def read_results(task_ids: Sequence[str]) -> Statement[StoredResult]:
    """Status and result of each task that exists."""
    return Statement(query("results", "read_results"), {"ids": list(task_ids)}, StoredResult)


class Unfinished(NamedTuple):
    """How a task stands that has not ended."""

    status: str
    queue_name: str
    started_at: datetime | None
    is_early: bool
    is_served: bool

    def __str__(self) -> str:
        if self.status == TaskStatus.RUNNING.value and self.started_at is not None:
            return f"it is RUNNING since {self.started_at.isoformat(timespec='seconds')}"
        told = f"it is still {self.status}"
        if self.is_early:
            told = f"{told}, its time has not come"
        if not self.is_served:
            told = f"{told}; no live worker serves queue {self.queue_name!r}"
        return told


def why_unfinished(task_id: str) -> Statement[Unfinished]:
    return Statement(query("results", "why_unfinished"), {"task_id": task_id}, Unfinished)


def read_task(
    task_id: str, *, with_result: bool, with_failed_reason: bool, with_log: bool
) -> Statement[StoredTask]:
    parameters = {
        "task_id": task_id,
        "with_result": with_result,
        "with_failed_reason": with_failed_reason,
        "with_log": with_log,
    }
    return Statement(query("results", "read_task"), parameters, _stored_task)


def _stored_task(*columns: Any) -> StoredTask:
    task = StoredTask(*columns[:-5])
    tags = fitted(task.tags, list[str] | None)
    return replace(task, tags=tags, progress=stored_progress(*columns[-5:]))


def stored_progress(attempt: int | None, *columns: Any) -> TaskProgress | None:
    """The columns of a progress report, if there is one."""
    return None if attempt is None else TaskProgress(attempt, *columns)


def read_attempts(task_id: str) -> Statement[TaskAttemptInfo]:
    """Attempts, the latest first."""
    return Statement(query("results", "read_attempts"), {"task_id": task_id}, TaskAttemptInfo)
