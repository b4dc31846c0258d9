"""The recovery functions of django-simple-queue, on the engine's recovery."""

import asyncio
import os
import uuid
from typing import Any

from horsies.codec.results import serialize_error_payload
from horsies.contrib.django.project import app
from horsies.contrib.django.runtime import send_safely
from horsies.contrib.django.simple_queue import signals
from horsies.contrib.django.simple_queue.models import Task
from horsies.contrib.django.simple_queue.statements import run, value
from horsies.observability.events import EventName
from horsies.recovery.process_identity import host_key
from horsies.recovery.reaper import Reaper
from horsies.result import OperationalErrorCode, OutcomeCode, TaskError, TaskResult


def detect_orphaned_tasks() -> None:
    """One pass of the engine's recovery; then rows of no worker whose pid is gone from here."""
    for name, event in asyncio.run(_reap()):
        app.on.tell(name, event)
    for task_id, pid in run("orphan"):
        if not _is_alive(pid):
            _fail(task_id, OperationalErrorCode.WORKER_CRASHED, {"worker_pid": pid}, None)


def handle_subprocess_exit(task_id: uuid.UUID | str, exit_code: int | None) -> None:
    """Fail a task in progress whose process ended with a code other than zero."""
    if exit_code:
        data = {"exit_code": exit_code}
        _fail(str(task_id), OperationalErrorCode.WORKER_CRASHED, data, None)


def handle_task_timeout(task_id: uuid.UUID | str, timeout_seconds: float) -> None:
    """Fail a task in progress that ran too long."""
    data = {"timeout_ms": int(timeout_seconds * 1000)}
    error = TimeoutError(f"Task exceeded {timeout_seconds:g}s timeout")
    _fail(str(task_id), OutcomeCode.TASK_TIMEOUT, data, error)


async def _reap() -> list[tuple[EventName, object]]:
    """One pass; what hooks are to hear of it, which is not for the event loop."""
    told: list[tuple[EventName, object]] = []
    database = app.get_broker().database

    class Connection:
        async def run(self, statement: Any, /) -> list[Any]:
            return await database.run_async(statement)

    try:
        await Reaper(
            Connection(),
            app.config.recovery,
            host_key=host_key(),
            tell=lambda name, event: told.append((name, event)),
        ).run_once()
    finally:
        await database.close_async()
    return told


def _is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def _fail(task_id: str, code: Any, data: dict[str, Any], error: BaseException | None) -> None:
    message = "the process of the task has ended"
    stored = TaskResult[object, TaskError](
        err=TaskError(error_code=code, message=message, data=data)
    )
    changed = value(
        "fail",
        task_id=task_id,
        code=code.value,
        message=message,
        result=serialize_error_payload(stored),
    )
    if changed is not None:
        task = Task.objects.get(pk=task_id)
        send_safely(signals.on_failure, Task, task=task, error=error)
