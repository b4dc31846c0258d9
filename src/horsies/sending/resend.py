"""Sends that are repeated from the error of a failed one: the same row, under the same id."""

from horsies.codes import TaskSendErrorCode
from horsies.observability.trace_context import without_traceparent
from horsies.result import Err, Ok, Result
from horsies.sending.errors import TaskSendError, TaskSendPayload
from horsies.sending.fingerprint import enqueue_fingerprint
from horsies.sending.rows import NewTask, row_of


def row_to_resend(
    task_name: str, error: TaskSendError, *, is_delayed: bool
) -> Result[NewTask, TaskSendError]:
    """The row a failed send would have stored, unless the error cannot be one of this task's."""
    payload, task_id = error.payload, error.task_id
    if error.code is not TaskSendErrorCode.ENQUEUE_FAILED:
        return _refused(f"only ENQUEUE_FAILED can be sent again, not {error.code.value}")
    if payload is None or task_id is None:
        return _refused("the error carries no payload to send again")
    if payload.task_name != task_name:
        return _refused(f"the payload belongs to task {payload.task_name!r}")
    if (payload.enqueue_delay_seconds is not None) is not is_delayed:
        return _refused(f"use {'retry_send' if is_delayed else 'retry_schedule'} for this payload")
    if not is_unchanged(payload):
        message = "the payload was changed after the send"
        code = TaskSendErrorCode.PAYLOAD_MISMATCH
        return Err(TaskSendError(code, message, False, task_id=task_id, payload=payload))
    return Ok(row_of(task_id, payload))


def rows_to_resend(task_name: str, error: TaskSendError) -> Result[list[NewTask], TaskSendError]:
    """The rows that a failed `send_many` would have stored."""
    if not error.each:
        return _refused("the error carries no tasks to send again: nothing of them was stored")
    rows: list[NewTask] = []
    for one in error.each:
        is_delayed = one.payload is not None and one.payload.enqueue_delay_seconds is not None
        row = row_to_resend(task_name, one, is_delayed=is_delayed)
        if isinstance(row, Err):
            return row
        rows.append(row.ok_value)
    return Ok(rows)


def is_unchanged(payload: TaskSendPayload) -> bool:
    """Whether the payload still hashes to its own fingerprint."""
    sha = enqueue_fingerprint(
        task_name=payload.task_name,
        queue_name=payload.queue_name,
        priority=payload.priority,
        args_json=payload.args_json,
        kwargs_json=payload.kwargs_json,
        sent_at=payload.sent_at,
        good_until=payload.good_until,
        enqueue_delay_seconds=payload.enqueue_delay_seconds,
        task_options=without_traceparent(payload.task_options),
    )
    return sha == payload.enqueue_sha


def _refused(message: str) -> Err[TaskSendError]:
    return Err(TaskSendError(TaskSendErrorCode.VALIDATION_FAILED, message, retryable=False))
