"""Runs one callable as django-simple-queue does: generators, signals, output, log."""

import asyncio
import inspect
import json
import logging
import sys
import uuid
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from django.db import connections, transaction

from horsies.codec.text import storable
from horsies.contrib.django.conf import setting
from horsies.contrib.django.connections import clean_connections
from horsies.contrib.django.runtime import WORKER_CODES, failed, send_safely, traceback_of
from horsies.contrib.django.simple_queue import signals
from horsies.contrib.django.simple_queue.conf import is_task_allowed
from horsies.contrib.django.simple_queue.live_log import LiveLog
from horsies.contrib.django.simple_queue.models import Task
from horsies.contrib.django.simple_queue.output import OutputLimit, as_text
from horsies.contrib.django.simple_queue.statements import run
from horsies.executors.base import Call, Interrupted
from horsies.result import OperationalErrorCode, TaskError, TaskResult

LOG_FORMAT = "%(asctime)s %(name)s %(levelname)s %(message)s"
_logger = logging.getLogger("horsies.django")
# Failures that no child could tell of: their receivers run here, apart from the event loop.
_receivers = ThreadPoolExecutor(1, thread_name_prefix="horsies-signals")


class ManagedEventLoop:
    """Gives the thread a current event loop while a task runs, and closes it afterwards."""

    def __init__(self) -> None:
        self.loop: asyncio.AbstractEventLoop | None = None

    def __enter__(self) -> asyncio.AbstractEventLoop:
        self.loop = asyncio.new_event_loop()
        asyncio.set_event_loop(self.loop)
        return self.loop

    def __exit__(self, *_error: object) -> None:
        assert self.loop is not None
        self.loop.close()
        asyncio.set_event_loop(None)


def prepare_child() -> None:
    """In a child: log records go where its output goes, in the format of django-simple-queue."""
    if setting("CAPTURE_LOG"):
        handler = logging.StreamHandler(sys.stderr)
        handler.setFormatter(logging.Formatter(LOG_FORMAT))
        logging.getLogger().addHandler(handler)


def run_callable(row: Any, call: Call) -> TaskResult[Any, TaskError]:
    """Run the callable of a row; the allowlist is asked before anything is imported."""
    if not is_task_allowed(row.task_name):
        text = f"Task '{row.task_name}' is not in the allowed list."
        return failed(OperationalErrorCode.TASK_EXCEPTION, text)
    task = Task.objects.using(setting("DATABASE_ALIAS")).get(pk=row.pk)
    root = logging.getLogger()
    level = root.level
    with LiveLog(str(task.pk)), ManagedEventLoop() as loop:
        root.setLevel(logging.DEBUG)
        print(f"Initiating task id: {task.pk}")
        send_safely(signals.before_job, Task, task=task)
        try:
            return _run(task, loop)
        finally:
            root.setLevel(level)
            print(f"Finished task id: {task.pk}")


def _run(task: Task, loop: asyncio.AbstractEventLoop) -> TaskResult[Any, TaskError]:
    limit = OutputLimit()
    try:
        function = Task._callable_task(task.task)
        arguments = json.loads(task.args) if task.args else {}
        if task.output:  # of the import, or of an attempt that was lost
            run("clear", task_id=str(task.pk))
        task.output = ""
        if inspect.isgeneratorfunction(function):
            _consume(task, function(**arguments), limit)
            value = None
        elif inspect.isasyncgenfunction(function):
            _consume(task, _values(loop, function(**arguments)), limit)
            value = None
        elif inspect.iscoroutinefunction(function):
            value = limit.cut(as_text(loop.run_until_complete(function(**arguments))))
        else:
            value = limit.cut(as_text(function(**arguments)))
    except Interrupted:
        raise
    except BaseException as error:  # noqa: BLE001 - user code: SystemExit is a task error too
        return _fail(task, error)
    if value is not None:
        task.output = value
    task.status, task.worker_pid = Task.COMPLETED, None
    send_safely(signals.on_success, Task, task=task)
    return TaskResult(ok=value)


def _fail(task: Task, error: BaseException) -> TaskResult[Any, TaskError]:
    if connections[setting("DATABASE_ALIAS")].needs_rollback:
        transaction.rollback()
    text = storable(f"{error!r}\n\n{traceback_of(error)}")
    task.status, task.error, task.worker_pid = Task.FAILED, text, None
    send_safely(signals.on_failure, Task, task=task, error=error)
    data = {"exception_type": type(error).__name__}
    return failed(OperationalErrorCode.UNHANDLED_EXCEPTION, text, data)


def _consume(task: Task, values: Any, limit: OutputLimit) -> None:
    """Store each value as soon as it is there; what is stored is the output."""
    pieces: list[str] = []
    for iteration, value in enumerate(values):
        send_safely(signals.before_loop, Task, task=task, iteration=iteration)
        piece = limit.take(as_text(value) or "")
        if piece:
            run("append", task_id=str(task.pk), stream="output", chunk=piece)
            pieces.append(piece)
        task.output = "".join(pieces) if len(pieces) < 100 else task.output
        send_safely(signals.after_loop, Task, task=task, output=value, iteration=iteration)
    task.output = "".join(pieces)


def _values(loop: asyncio.AbstractEventLoop, generator: Any) -> Any:
    while True:
        try:
            yield loop.run_until_complete(anext(generator))
        except StopAsyncIteration:
            return


def execute_task(task_id: uuid.UUID | str, log_fd: int | None = None) -> None:
    """Run one queued task in this process, on this process's connection."""
    from horsies.contrib.django.testing import run_one

    run_one(str(task_id))


def tell_failure(*, task_id: str, task_name: str, attempt: int, error: Any) -> None:
    """Tell receivers of failures that the child could not report: it was killed, or it died."""
    code = str(getattr(error.error_code, "value", error.error_code))
    if code in WORKER_CODES:
        _receivers.submit(_tell, task_id, code, error.data)


def _tell(task_id: str, code: str, data: Any) -> None:
    with clean_connections():
        task = Task.objects.using(setting("DATABASE_ALIAS")).filter(pk=task_id).first()
        if task is None:
            return
        reason = None
        if code == "TASK_TIMEOUT":
            limit_s = (data or {}).get("timeout_ms", 0) / 1000
            reason = TimeoutError(f"Task exceeded {limit_s:g}s timeout")
        send_safely(signals.on_failure, Task, task=task, error=reason)
