"""The broker's simple calls, each a statement and the reading of its rows.

Blocking and awaiting callers share them.
"""

from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any, NamedTuple, TypeVar

from horsies.broker.results import Decode
from horsies.broker.session import Operation
from horsies.broker.types import BrokerErrorCode, TaskAttemptInfo, TaskInfo
from horsies.clock import utc_now
from horsies.database import recovery, tasks
from horsies.database.rows import (
    ExpiredTask,
    Receipt,
    Scalar,
    StaleRun,
    StoredAttempt,
    StoredTask,
    WorkerStats,
)
from horsies.database.statement import Statement
from horsies.states import TaskStatus

Row = TypeVar("Row", bound=NamedTuple)
_STALE_FIELDS = (
    "id", "worker_hostname", "worker_pid", "worker_process_name",
    "last_heartbeat", "started_at", "task_name",
)  # fmt: skip


def cancel(task_id: str, *, running: bool) -> Operation[Receipt, bool]:
    return Operation(
        _cancel([task_id], running=running),
        lambda rows: rows[0].outcome != "refused",
        BrokerErrorCode.CLEANUP_FAILED,
    )


def cancel_many(task_ids: list[str], *, running: bool) -> Operation[Receipt, int]:
    return Operation(
        _cancel(task_ids, running=running),
        lambda rows: sum(row.outcome != "refused" for row in rows),
        BrokerErrorCode.CLEANUP_FAILED,
    )


def _cancel(task_ids: list[str], *, running: bool) -> Statement[Receipt]:
    return tasks.request_cancel(task_ids) if running else tasks.cancel_tasks(task_ids)


def requeue(task_id: str, *, include_completed: bool) -> Operation[Receipt, bool]:
    return Operation(
        tasks.requeue_tasks([task_id], include_completed=include_completed),
        lambda rows: rows[0].outcome == "requeued",
        BrokerErrorCode.CLEANUP_FAILED,
    )


def rerun(task_id: str, new_id: str, good_until: datetime | None) -> Operation[Scalar, str | None]:
    return Operation(
        tasks.rerun_task(task_id, new_id, utc_now(), good_until),
        lambda rows: new_id if rows else None,
        BrokerErrorCode.CLEANUP_FAILED,
    )


def count(wanted: tasks.Filter) -> Operation[Scalar, int]:
    return Operation(tasks.count_matching(wanted), _number, BrokerErrorCode.CLEANUP_FAILED)


def matching_ids(wanted: tasks.Filter, *, after: str) -> Operation[Scalar, list[str]]:
    return Operation(
        tasks.matching_ids(wanted, after=after),
        lambda rows: [row.value for row in rows],
        BrokerErrorCode.CLEANUP_FAILED,
    )


def requeue_many(task_ids: list[str]) -> Operation[Receipt, int]:
    return Operation(
        tasks.requeue_tasks(task_ids, include_completed=False),
        lambda rows: sum(row.outcome == "requeued" for row in rows),
        BrokerErrorCode.CLEANUP_FAILED,
    )


def expire() -> Operation[Scalar, int]:
    return Operation(recovery.expire_tasks(), _number, BrokerErrorCode.CLEANUP_FAILED)


def requeue_stale_claimed(stale_threshold_ms: int) -> Operation[Scalar, int]:
    statement = recovery.requeue_stale_claims(timedelta(milliseconds=stale_threshold_ms), [])
    return Operation(statement, _number, BrokerErrorCode.CLEANUP_FAILED)


def stale_runs(stale_after: timedelta) -> Operation[StaleRun, list[StaleRun]]:
    return Operation(
        recovery.stale_runs(stale_after), lambda rows: rows, BrokerErrorCode.CLEANUP_FAILED
    )


def stale_tasks(stale_threshold_minutes: float) -> Operation[StaleRun, list[dict[str, Any]]]:
    return Operation(
        recovery.stale_runs(timedelta(minutes=stale_threshold_minutes)),
        lambda rows: [{name: getattr(row, name) for name in _STALE_FIELDS} for row in rows],
        BrokerErrorCode.MONITORING_QUERY_FAILED,
    )


def expired_tasks() -> Operation[ExpiredTask, list[dict[str, Any]]]:
    return Operation(
        recovery.expired_tasks(),
        lambda rows: [row._asdict() for row in rows],
        BrokerErrorCode.MONITORING_QUERY_FAILED,
    )


def worker_stats() -> Operation[WorkerStats, list[dict[str, Any]]]:
    return Operation(
        recovery.worker_stats(),
        lambda rows: [row._asdict() for row in rows],
        BrokerErrorCode.MONITORING_QUERY_FAILED,
    )


def task(
    task_id: str, decode: Decode, *, with_result: bool, with_failed_reason: bool, with_log: bool
) -> Operation[StoredTask, TaskInfo | None]:
    statement = tasks.read_task(
        task_id, with_result=with_result, with_failed_reason=with_failed_reason, with_log=with_log
    )
    return Operation(
        statement,
        lambda rows: _task_info(rows[0], decode) if rows else None,
        BrokerErrorCode.TASK_INFO_QUERY_FAILED,
    )


def attempts(task_id: str) -> Operation[StoredAttempt, list[TaskAttemptInfo]]:
    return Operation(
        tasks.read_attempts(task_id),
        lambda rows: [TaskAttemptInfo(*row) for row in rows],
        BrokerErrorCode.TASK_INFO_QUERY_FAILED,
    )


def with_attempts(info: TaskInfo, found: list[TaskAttemptInfo]) -> TaskInfo:
    return replace(info, attempts=found)


def _task_info(row: StoredTask, decode: Decode) -> TaskInfo:
    fields = row._asdict()
    result = fields.pop("result")
    fields["status"] = TaskStatus(row.status)
    return TaskInfo(**fields, result=decode(row.task_name, result) if result is not None else None)


def _number(rows: list[Scalar]) -> int:
    return int(rows[0].value)
