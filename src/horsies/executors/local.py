"""The base of the executors that run calls inside the worker's own process."""

import asyncio
from abc import ABC, abstractmethod
from collections import deque
from typing import Generic, TypedDict, TypeVar

from horsies.executors.base import (
    STOP_GRACE_SECONDS,
    Call,
    CaptureSettings,
    Crashed,
    Definitions,
    Delivered,
    Done,
    NotBegun,
    Outcome,
    Stopped,
)
from horsies.executors.log_capture import CapturedRun, CaptureHandler
from horsies.executors.log_records import add_tasks_to_records
from horsies.executors.output import NOTHING, Captured


class LocalRun(CapturedRun):
    """One call on its way through a local executor."""

    __slots__ = ("done", "is_dispatched", "is_stopped", "timers")

    def __init__(self, call: Call, done: Done) -> None:
        super().__init__(call)
        self.done: Done | None = done
        self.is_dispatched = False  # no longer waiting for a slot
        self.is_stopped = False
        self.timers: list[asyncio.TimerHandle] = []

    def is_ending(self) -> bool:
        return self.is_stopped or self.done is None

    def captured(self) -> Captured:
        return NOTHING if self.buffer is None else self.buffer.captured()

    def outcome(self, ended: Delivered | Crashed | None) -> Outcome:
        """Return how the call ended; the late success of a stopped call counts."""
        if self.begun_at is None:
            return NotBegun()
        log = self.captured()
        if ended is None or (self.is_stopped and not ended.is_ok):
            return Stopped(log.text, log.is_truncated)
        if log.text is None:
            return ended
        return ended._replace(log=log.text, log_truncated=log.is_truncated)


R = TypeVar("R", bound=LocalRun)


class LocalOptions(TypedDict, total=False):
    capture: CaptureSettings | None
    grace_seconds: float


class LocalExecutor(ABC, Generic[R]):
    """Answers every call exactly once; subclasses run the calls and count `free_slots`."""

    def __init__(
        self,
        definitions: Definitions,
        slots: int,
        *,
        capture: CaptureSettings | None = None,
        grace_seconds: float = STOP_GRACE_SECONDS,
    ) -> None:
        self._definitions = definitions
        self._slots = slots
        self._grace_seconds = grace_seconds
        self._loop: asyncio.AbstractEventLoop
        self._capture = CaptureHandler(capture or CaptureSettings())
        self._busy_count = 0
        self._waiting: deque[R] = deque()
        self._runs: dict[str, R] = {}
        self._idle = asyncio.Event()
        self._idle.set()

    @property
    def started_slots(self) -> int:
        return self._slots

    @property
    @abstractmethod
    def free_slots(self) -> int: ...
    @abstractmethod
    def _interrupt(self, run: R) -> None:
        """Ask a running call to end; report it after the grace period if it does not."""

    async def start(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._capture.install()
        add_tasks_to_records()

    def is_alive(self, task_id: str) -> bool:
        return task_id in self._runs

    def begun_at(self, task_id: str) -> float | None:
        run = self._runs.get(task_id)
        return None if run is None else run.begun_at

    def collect_progress(self) -> None:
        """Calls report theirs in this very process."""

    def stop(self, task_id: str) -> bool:
        run = self._runs.get(task_id)
        if run is None:
            return False
        if not run.is_dispatched:
            self._waiting.remove(run)
            self._report(run, NotBegun())
        elif not run.is_ending():
            run.is_stopped = True
            self._interrupt(run)
        return True

    def withdraw(self, task_id: str) -> bool:
        run = self._runs.get(task_id)
        if run is None or run.is_dispatched:
            return False
        self._waiting.remove(run)
        self._report(run, NotBegun())
        return True

    async def close(self, *, kill: bool) -> None:
        """Return waiting calls as NotBegun, then wait for running ones; `kill` ends those first."""
        while self._waiting:
            self._report(self._waiting.popleft(), NotBegun())
        for task_id in tuple(self._runs) if kill else ():
            self.stop(task_id)
        await self._wait_until_idle(kill=kill)
        self._capture.uninstall()

    async def _wait_until_idle(self, *, kill: bool) -> None:
        await self._idle.wait()

    def _report(self, run: R, outcome: Outcome) -> None:
        """Answer the call unless it was answered: a result after the time limit is dropped."""
        done, run.done = run.done, None
        if done is None:
            return
        for timer in run.timers:
            timer.cancel()
        if self._runs.get(run.call.task_id) is run:
            del self._runs[run.call.task_id]
        done(run.call, outcome)
