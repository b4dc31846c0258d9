"""Tells the app's hooks what happens in a worker, from a thread of its own.

A slow hook delays the hooks behind it, never a task: coroutine functions run on the worker's event
loop, the thread waits for them.
"""

import asyncio
import logging
import queue
import threading
from collections.abc import Coroutine, Sequence
from typing import Any

from horsies.codec.results import UNTYPED, read_result
from horsies.observability.events import (
    CancelledEvent,
    EventName,
    ExpiredEvent,
    FailedEvent,
    RetriedEvent,
    StartedEvent,
    SucceededEvent,
    WorkerStartedEvent,
    WorkerStoppingEvent,
)
from horsies.observability.hooks import EventHooks, tell_hook
from horsies.recovery.statements import NamedTask
from horsies.worker.completer import Recorded
from horsies.worker.held_task import HeldTask
from horsies.worker.settings import ServedQueue

_logger = logging.getLogger("horsies.hooks")
_MAX_WAITING = 10_000
# How long a coroutine hook may take, and how long a stopping worker waits for the last hooks.
_HOOK_S = 30.0
_LAST_HOOKS_S = 10.0


class HookCalls:
    """A queue of events; without hooks for an event, nothing is made and nothing is queued."""

    def __init__(self, hooks: EventHooks, worker_id: str) -> None:
        self.hooks = hooks
        self._worker_id = worker_id
        self._queue: queue.Queue[tuple[EventName, object] | None] = queue.Queue(_MAX_WAITING)
        self._thread: threading.Thread | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._dropped_count = 0

    def tell(self, name: EventName, event: object) -> None:
        """Queue an event for its hooks."""
        if not self.hooks.of(name):
            return
        if self._thread is None:
            self._loop = asyncio.get_running_loop()
            self._thread = threading.Thread(target=self._work, name="horsies-hooks", daemon=True)
            self._thread.start()
        try:
            self._queue.put_nowait((name, event))
        except queue.Full:
            if self._dropped_count == 0:
                _logger.warning("hooks are slower than tasks: events are left out from now on")
            self._dropped_count += 1

    def started(self, task: HeldTask) -> None:
        if self.hooks.of("started"):
            self.tell("started", StartedEvent(*self._attempt(task)))

    def recorded(self, ended: Sequence[Recorded]) -> None:
        """Tell of ends that are committed."""
        if not self.hooks:
            return
        for one in ended:
            match one.outcome:
                case "completed" if self.hooks.of("succeeded"):
                    self.tell("succeeded", SucceededEvent(*self._end(one)))
                case "failed" if self.hooks.of("failed"):
                    self.tell("failed", FailedEvent(*self._end(one), _error(one)))
                case "retried" if self.hooks.of("retried"):
                    event = RetriedEvent(*self._end(one), _error(one), one.retry_after_s)
                    self.tell("retried", event)
                case "cancelled" if self.hooks.of("cancelled"):
                    self.tell("cancelled", CancelledEvent(*self._attempt(one.completion.task)))
                case _:
                    pass

    def expired(self, task: HeldTask | NamedTask) -> None:
        event = ExpiredEvent(task.task_id, task.task_name, task.queue_name, self._worker_id)
        self.tell("expired", event)

    def worker_started(self, queues: Sequence[ServedQueue]) -> None:
        names = tuple(queue.name for queue in queues)
        self.tell("worker_started", WorkerStartedEvent(self._worker_id, names))

    def worker_stopping(self, running_count: int) -> None:
        self.tell("worker_stopping", WorkerStoppingEvent(self._worker_id, running_count))

    async def close(self) -> None:
        """Wait for the hooks of all events so far, within a limit."""
        thread = self._thread
        if thread is None:
            return
        await asyncio.to_thread(self._end_thread, thread)
        if thread.is_alive():
            _logger.error("hooks did not end within %.0f s; the last are left out", _LAST_HOOKS_S)
        if self._dropped_count:
            _logger.error("%d events were not told to hooks", self._dropped_count)

    def _end_thread(self, thread: threading.Thread) -> None:
        try:
            self._queue.put(None, timeout=_LAST_HOOKS_S)
        except queue.Full:
            return
        thread.join(_LAST_HOOKS_S)

    def _work(self) -> None:
        while (told := self._queue.get()) is not None:
            name, event = told
            for hook in self.hooks.of(name):
                tell_hook(hook, name, event, self._run_on_loop)

    def _run_on_loop(self, coroutine: Coroutine[Any, Any, object]) -> object:
        assert self._loop is not None
        future = asyncio.run_coroutine_threadsafe(coroutine, self._loop)
        try:
            return future.result(_HOOK_S)
        finally:
            future.cancel()

    def _attempt(self, task: HeldTask) -> tuple[str, str, str, int, str]:
        return task.task_id, task.task_name, task.queue_name, task.attempt, self._worker_id

    def _end(self, one: Recorded) -> tuple[str, str, str, int, str, float | None]:
        return *self._attempt(one.completion.task), one.completion.duration_s


def _error(one: Recorded) -> Any:
    return read_result(one.completion.result, UNTYPED).err_value
