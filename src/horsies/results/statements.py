"""The statements that read tasks: their results, themselves, their attempts."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from horsies.database.sql_files import query
from horsies.database.statement import Statement
from horsies.results.task_info import TaskAttemptInfo, TaskInfo


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


def read_task(
    task_id: str, *, with_result: bool, with_failed_reason: bool, with_log: bool
) -> Statement[StoredTask]:
    parameters = {
        "task_id": task_id,
        "with_result": with_result,
        "with_failed_reason": with_failed_reason,
        "with_log": with_log,
    }
    return Statement(query("results", "read_task"), parameters, StoredTask)


def read_attempts(task_id: str) -> Statement[TaskAttemptInfo]:
    """Attempts, the latest first."""
    return Statement(query("results", "read_attempts"), {"task_id": task_id}, TaskAttemptInfo)
