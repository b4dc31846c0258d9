"""Reads one task for a caller: as it stands, with its attempts, or as the HTTP status shows it."""

from collections.abc import Callable
from dataclasses import fields, replace
from typing import Any, TypeAlias

from horsies.codec.results import UNTYPED, read_result
from horsies.codes import BrokerErrorCode
from horsies.database.operation import Operation
from horsies.result import TaskError, TaskResult
from horsies.results.statements import StoredTask, read_attempts, read_task
from horsies.results.task_info import TaskAttemptInfo, TaskInfo
from horsies.states import TaskStatus, read_status

AnyResult: TypeAlias = TaskResult[Any, TaskError]
Decode: TypeAlias = Callable[[str, str], AnyResult]  # task name, stored text


def decode_untyped(_task_name: str, text: str) -> AnyResult:
    """A stored result as plain values, for a process that does not know the task."""
    return read_result(text, UNTYPED)


def task_info(
    task_id: str, decode: Decode, *, with_result: bool, with_failed_reason: bool, with_log: bool
) -> Operation[StoredTask, TaskInfo | None]:
    statement = read_task(
        task_id, with_result=with_result, with_failed_reason=with_failed_reason, with_log=with_log
    )
    return Operation(
        statement,
        lambda rows: _info(rows[0], decode) if rows else None,
        BrokerErrorCode.TASK_INFO_QUERY_FAILED,
    )


def attempts_of(info: TaskInfo) -> Operation[TaskAttemptInfo, TaskInfo]:
    """The same task with its attempts, the latest first."""
    return Operation(
        read_attempts(info.task_id),
        lambda rows: replace(info, attempts=rows),
        BrokerErrorCode.TASK_INFO_QUERY_FAILED,
    )


def _info(row: StoredTask, decode: Decode) -> TaskInfo:
    values = {field.name: getattr(row, field.name) for field in fields(TaskInfo)}
    values["status"] = read_status(TaskStatus, row.status)
    if row.result is not None:
        values["result"] = decode(row.task_name, row.result)
    return TaskInfo(**values)
