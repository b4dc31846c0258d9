"""From a row and its attempts to Django's TaskResult."""

import json
from collections.abc import Sequence
from dataclasses import fields
from datetime import datetime
from typing import Any

from django.core.exceptions import SuspiciousOperation, ValidationError
from django.utils import timezone
from django.utils.module_loading import import_string

from horsies.contrib.django.compat import (
    Task as DjangoTask,
)
from horsies.contrib.django.compat import (
    TaskError,
    TaskResult,
    TaskResultDoesNotExist,
    TaskResultStatus,
)
from horsies.contrib.django.models import Task, TaskAttempt
from horsies.states import TaskStatus, read_status

_STATUS = {
    TaskStatus.PENDING: TaskResultStatus.READY,
    TaskStatus.CLAIMED: TaskResultStatus.READY,
    TaskStatus.RUNNING: TaskResultStatus.RUNNING,
    TaskStatus.COMPLETED: TaskResultStatus.SUCCESSFUL,
    TaskStatus.FAILED: TaskResultStatus.FAILED,
    TaskStatus.EXPIRED: TaskResultStatus.FAILED,
    TaskStatus.CANCELLED: TaskResultStatus.FAILED,
}
_OUR_EXCEPTIONS = "horsies.contrib.django.exceptions"
_BY_CODE = {
    "TASK_TIMEOUT": f"{_OUR_EXCEPTIONS}.TaskTimeout",
    "WORKER_CRASHED": f"{_OUR_EXCEPTIONS}.WorkerCrashed",
    "TASK_CANCELLED": f"{_OUR_EXCEPTIONS}.TaskCancelled",
    "TASK_EXPIRED": f"{_OUR_EXCEPTIONS}.TaskExpired",
}


def find_result(backend: Any, result_id: str) -> Any:
    """The result of a task of this backend, or TaskResultDoesNotExist."""
    rows = Task.objects.using(backend.database)
    try:
        row = rows.get(pk=result_id)
    except (Task.DoesNotExist, ValidationError):
        raise TaskResultDoesNotExist(result_id) from None
    if row.kind != "django_task" or row.options.get("django", {}).get("backend") != backend.alias:
        raise TaskResultDoesNotExist(result_id)
    attempts = TaskAttempt.objects.using(backend.database).filter(task_id=row.pk)
    return result_of(row, list(attempts))


def load_task(path: str) -> Any:
    """The Task behind a stored path; never any other object."""
    try:
        found = import_string(path)
    except ImportError:
        raise
    except (ValueError, AttributeError) as error:
        raise ImportError(f"cannot import {path!r}: {error}") from error
    if not isinstance(found, DjangoTask):
        raise SuspiciousOperation(f"{path!r} is not a Task; it is not called")
    return found


def result_of(row: Task, attempts: Sequence[TaskAttempt]) -> Any:
    """A TaskResult with all that is known about the task now."""
    status = read_status(TaskStatus, row.status)
    worker_ids = [str(attempt.worker_id) for attempt in attempts]
    if status is TaskStatus.RUNNING:
        worker_ids.append(str(row.claimed_by_worker_id))
    starts = [attempt.started_at for attempt in attempts]
    starts += [row.started_at] if row.started_at and status is TaskStatus.RUNNING else []
    result = TaskResult(
        task=stored_task(row),
        id=str(row.pk),
        status=_STATUS[status],
        enqueued_at=_shown(row.sent_at or row.created_at),
        started_at=_shown(min(starts, default=None)),
        finished_at=_shown(row.ended_at),
        last_attempted_at=_shown(max(starts, default=None)),
        args=json.loads(row.args or "[]"),
        kwargs=json.loads(row.kwargs or "{}"),
        backend=row.options.get("django", {}).get("backend", "default"),
        errors=_errors(row, attempts, status),
        worker_ids=worker_ids,
    )
    if status is TaskStatus.COMPLETED:
        object.__setattr__(result, "_return_value", row.result)
    return result


def stored_task(row: Task) -> Any:
    """The task as it was enqueued, its function imported.

    It was valid then; settings may have changed since, so it is made without being validated.
    """
    options = row.options
    django = options.get("django", {})
    run_after = django.get("run_after")
    declared = load_task(row.task_name)
    timeout_ms = options.get("timeout_ms")
    stored = {
        "priority": django.get("priority", 0),
        "backend": django.get("backend", "default"),
        "queue_name": row.queue_name,
        "run_after": None if run_after is None else datetime.fromisoformat(run_after),
        "takes_context": bool(django.get("takes_context", declared.takes_context)),
        "timeout": None if timeout_ms is None else timeout_ms / 1000,
        "unique_key": options.get("unique_key"),
    }
    if getattr(declared, "retry_policy", None) is None:
        stored["max_retries"] = (options.get("retry_policy") or {}).get("max_retries", 0)
    task = object.__new__(type(declared))
    for field in fields(declared):
        value = stored.get(field.name, getattr(declared, field.name))
        object.__setattr__(task, field.name, value)
    return task


def describe_failure(error_code: str | None, message: str | None, error: Any) -> str:
    """What happened to a task that has no exception of its own to show."""
    data = error.get("data") if isinstance(error, dict) else None
    if error_code == "TASK_TIMEOUT" and isinstance(data, dict):
        return f"Task timed out after {data.get('timeout_ms', 0) / 1000:g} seconds"
    return message or error_code or "the task failed"


def _errors(row: Task, attempts: Sequence[TaskAttempt], status: TaskStatus) -> list[Any]:
    errors = [_error_of(row, attempt) for attempt in attempts if attempt.outcome != "COMPLETED"]
    if status in (TaskStatus.CANCELLED, TaskStatus.EXPIRED):
        code = f"TASK_{status.value}"
        if not errors or attempts[-1].error_code != code:
            text = (row.error or {}).get("message") or f"The task is {status.display.lower()}"
            errors.append(TaskError(exception_class_path=_BY_CODE[code], traceback=text))
    return errors


def _error_of(row: Task, attempt: TaskAttempt) -> Any:
    """The first line of a stored message is the class, the rest its traceback as it was."""
    path, newline, traceback = (attempt.error_message or "").partition("\n")
    if attempt.error_code in _BY_CODE or not newline:
        path = _BY_CODE.get(attempt.error_code or "", f"{_OUR_EXCEPTIONS}.WorkerCrashed")
        traceback = describe_failure(attempt.error_code, attempt.error_message, row.error)
    return TaskError(exception_class_path=path, traceback=traceback)


def _shown(instant: datetime | None) -> datetime | None:
    if instant is None or timezone.is_aware(timezone.now()) == timezone.is_aware(instant):
        return instant
    return timezone.make_naive(instant)
