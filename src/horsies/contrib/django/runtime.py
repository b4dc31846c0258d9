"""What runs in a worker for a row that only Django explains: its kind says how.

The engine's definition of such a name takes no arguments; the row has them.
"""

import json
import logging
import time
import traceback
from dataclasses import replace
from typing import Any

from django.db import InterfaceError, OperationalError, connections
from django.utils import timezone

from horsies.codec.signature import ArgumentsError, SignatureCodec
from horsies.config import AppConfig
from horsies.contrib.django.conf import setting
from horsies.contrib.django.connections import clean_connections
from horsies.contrib.django.models import Task, TaskAttempt
from horsies.executors.base import Call, Interrupted
from horsies.executors.current import running_here
from horsies.observability.events import CancelledEvent, FailedEvent
from horsies.result import Ok, OperationalErrorCode, Result, TaskError, TaskResult
from horsies.tasks.definition import TaskDefinition, define_task

_logger = logging.getLogger("horsies.django")
# Failures of which the child of a run cannot tell.
WORKER_CODES = ("TASK_TIMEOUT", "WORKER_CRASHED")
# A database that restarts is back by then; the task waits instead of failing.
_READ_ATTEMPTS = 60
_READ_PAUSE_S = 0.5


class NoArguments(SignatureCodec):
    """Leaves the stored arguments to the function that knows what they mean."""

    def decode(
        self, args_json: str | None, kwargs_json: str | None
    ) -> Result[tuple[tuple[object, ...], dict[str, object]], ArgumentsError]:
        return Ok(((), {}))


def define_stored(task_name: str, config: AppConfig) -> TaskDefinition:
    """The definition by which a worker runs rows of this name."""
    definition = define_task(run_stored, task_name, config=config)
    return replace(definition, signature=NoArguments(run_stored, {}))


def run_stored() -> TaskResult[Any, TaskError]:
    """Run the current attempt by what its row says; every end is a value."""
    running = running_here()
    assert running is not None, "only an executor runs this"
    call = running.call
    with clean_connections():
        row = _read(call)
        kind = "native" if row is None else row.kind
        if row is not None and kind == "django_task":
            return _run_django_task(row)
        if row is not None and kind == "callable":
            from horsies.contrib.django.simple_queue.worker import run_callable

            return run_callable(row, call)
        text = f"task {call.task_name!r} is not registered in this worker"
        return failed(OperationalErrorCode.WORKER_RESOLUTION_ERROR, text)


def failed(code: Any, message: str, data: Any = None) -> TaskResult[Any, TaskError]:
    return TaskResult(err=TaskError(error_code=code, message=message, data=data))


def class_path(error: BaseException) -> str:
    return f"{type(error).__module__}.{type(error).__qualname__}"


def traceback_of(error: BaseException) -> str:
    return "".join(traceback.format_exception(error))


def send_safely(signal: Any, sender: Any, **arguments: Any) -> None:
    """Tell receivers; one that raises is logged and changes nothing."""
    for receiver, answer in signal.send_robust(sender=sender, **arguments):
        if isinstance(answer, Exception):
            _logger.error("receiver %r of a task signal raised", receiver, exc_info=answer)


def tell_finished(event: FailedEvent | CancelledEvent) -> None:
    """In the worker: send `task_finished` for a run whose own process was killed or has died."""
    if isinstance(event, FailedEvent):
        code = str(getattr(event.error.error_code, "value", event.error.error_code))
        if code not in WORKER_CODES:  # the child has sent it
            return
    elif event.attempt is None:  # it had not begun
        return
    from horsies.contrib.django.compat import task_finished
    from horsies.contrib.django.results import result_of

    alias = setting("DATABASE_ALIAS")
    with clean_connections():
        row = Task.objects.using(alias).filter(pk=event.task_id).first()
        if row is None or row.kind != "django_task":
            return
        result = result_of(row, list(TaskAttempt.objects.using(alias).filter(task_id=row.pk)))
        send_safely(task_finished, type(result.task.get_backend()), task_result=result)


def _read(call: Call) -> Task | None:
    """The row, also when the database has just restarted and the connection is a dead one."""
    alias = setting("DATABASE_ALIAS")
    for attempt in range(_READ_ATTEMPTS):
        try:
            return Task.objects.using(alias).filter(pk=call.task_id).first()
        except (OperationalError, InterfaceError):
            if connections[alias].in_atomic_block or attempt == _READ_ATTEMPTS - 1:
                raise
            connections[alias].close()
            time.sleep(_READ_PAUSE_S if attempt else 0)
    return None


def _run_django_task(row: Task) -> TaskResult[Any, TaskError]:
    """B.6 of Django's contract: started, called, judged, finished."""
    from horsies.contrib.django import compat
    from horsies.contrib.django.results import result_of

    try:
        attempts = TaskAttempt.objects.using(setting("DATABASE_ALIAS")).filter(task_id=row.pk)
        result = result_of(row, list(attempts))
    except BaseException as error:  # user code: its module runs while it is imported
        if isinstance(error, Interrupted):
            raise
        return failed(OperationalErrorCode.TASK_EXCEPTION, _stored_text(error))
    sender = type(result.task.get_backend())
    send_safely(compat.task_started, sender, task_result=result)
    try:
        args = (compat.TaskContext(task_result=result),) if result.task.takes_context else ()
        value = result.task.call(*args, *result.args, **result.kwargs)
        value = compat.normalize_json(value)
        json.dumps(value)
    except Interrupted:
        raise
    except BaseException as error:  # noqa: BLE001 - user code: SystemExit is a task error too
        result.errors.append(
            compat.TaskError(exception_class_path=class_path(error), traceback=traceback_of(error))
        )
        _finish(result, compat.TaskResultStatus.FAILED)
        send_safely(compat.task_finished, sender, task_result=result)
        return failed(
            OperationalErrorCode.UNHANDLED_EXCEPTION,
            _stored_text(error),
            {"exception_type": type(error).__name__},
        )
    object.__setattr__(result, "_return_value", value)
    _finish(result, compat.TaskResultStatus.SUCCESSFUL)
    send_safely(compat.task_finished, sender, task_result=result)
    return TaskResult(ok=value)


def _stored_text(error: BaseException) -> str:
    """The class on the first line, then the traceback as it is: `results` takes it apart."""
    return f"{class_path(error)}\n{traceback_of(error)}"


def _finish(result: Any, status: Any) -> None:
    object.__setattr__(result, "status", status)
    object.__setattr__(result, "finished_at", timezone.now())
