"""One task in full: its row, its attempts, what they wrote, and what happened when."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import NamedTuple

from horsies.codec.secrecy import masked_arguments
from horsies.operations.reading import TaskLog, TaskRow, task_logs, task_row
from horsies.operations.steps import Steps
from horsies.results.reading import Decode, task_info
from horsies.results.statements import read_attempts
from horsies.results.task_info import TaskAttemptInfo, TaskInfo
from horsies.states import TaskStatus
from horsies.tasks.definition import TaskDefinition

# A send takes a moment; only where it took longer, as in a transaction, is that worth a line.
_MOMENTS_LATER = timedelta(seconds=1)


class Moment(NamedTuple):
    """Something that happened to a task, or that will."""

    at: datetime
    what: str


@dataclass(frozen=True, slots=True)
class TaskDetail:
    """All that is stored of one task. `info` has its result, reason and attempts."""

    info: TaskInfo
    row: TaskRow
    logs: list[TaskLog]
    timeline: list[Moment]


def detail_steps(task_id: str, decode: Decode) -> Steps[TaskDetail | None]:
    operation = task_info(
        task_id, decode, with_result=True, with_failed_reason=True, with_log=False
    )
    info = operation.read((yield operation.statement))
    rows: list[TaskRow] = yield task_row(task_id)
    if info is None or not rows:
        return None
    attempts: list[TaskAttemptInfo] = yield read_attempts(task_id)
    logs: list[TaskLog] = yield task_logs(task_id)
    if attempts and attempts[0].traceback is None:  # of a release that stored it in results only
        attempts[0] = replace(attempts[0], traceback=_traceback_of(info))
    info = replace(info, attempts=attempts)
    moments = sorted(_moments(info, rows[0], attempts), key=lambda moment: moment.at)
    return TaskDetail(info, rows[0], logs, moments)


def _traceback_of(info: TaskInfo) -> str | None:
    if info.result is None or info.result.is_ok():
        return None
    exception = info.result.err_value.exception
    text = exception.get("traceback") if isinstance(exception, dict) else None
    return str(text) if text else None


def _moments(info: TaskInfo, row: TaskRow, attempts: Sequence[TaskAttemptInfo]) -> Iterator[Moment]:
    if info.sent_at is not None:
        yield Moment(info.sent_at, "sent")
    if info.sent_at is None or abs(row.created_at - info.sent_at) > _MOMENTS_LATER:
        yield Moment(row.created_at, "stored")
    for attempt in attempts:
        place = f" on {attempt.worker_hostname} pid {attempt.worker_pid}"
        yield Moment(attempt.started_at, f"attempt {attempt.attempt} began{place}")
        yield Moment(attempt.finished_at, _end_of(attempt))
    if info.status is TaskStatus.RUNNING and info.started_at is not None:
        place = f" on {info.worker_hostname} pid {info.worker_pid}"
        yield Moment(info.started_at, f"attempt {info.retry_count + 1} began{place}")
    if info.status is TaskStatus.CLAIMED and info.claimed_at is not None:
        yield Moment(info.claimed_at, f"claimed by worker {row.claimed_by_worker_id}")
    yield from _turning_points(info, row)


def _turning_points(info: TaskInfo, row: TaskRow) -> Iterator[Moment]:
    if row.cancel_requested_at is not None:
        yield Moment(row.cancel_requested_at, "cancel requested")
    if info.status is TaskStatus.PENDING and info.enqueued_at is not None:
        waits_for_retry = info.next_retry_at is not None
        yield Moment(info.enqueued_at, "due for its retry" if waits_for_retry else "due")
    if info.good_until is not None:
        yield Moment(info.good_until, "deadline for its start")
    if info.status is TaskStatus.CANCELLED:
        yield Moment(info.failed_at or row.updated_at, "cancelled")
    if info.status is TaskStatus.EXPIRED and info.failed_at is not None:
        yield Moment(info.failed_at, "expired: not started by its deadline")


def _end_of(attempt: TaskAttemptInfo) -> str:
    took = (attempt.finished_at - attempt.started_at).total_seconds()
    if attempt.outcome == "COMPLETED":
        return f"attempt {attempt.attempt} completed after {took:.3f} s"
    then = ", to be retried" if attempt.will_retry else ""
    code = attempt.error_code or attempt.outcome
    return f"attempt {attempt.attempt} failed with {code} after {took:.3f} s{then}"


def without_secrets(task: TaskDetail, definition: TaskDefinition | None) -> TaskDetail:
    """The same for a viewer: what the task's parameters call secret is masked."""
    if definition is None:
        return task
    resolved = definition.annotations.resolved
    declared = {name: resolved.get(name) for name in definition.signature.signature.parameters}
    args, kwargs = masked_arguments(task.row.args, task.row.kwargs, declared)
    return replace(task, row=task.row._replace(args=args, kwargs=kwargs))
