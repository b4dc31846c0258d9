"""Run blocking functions in long-lived threads of the worker process."""

import asyncio
import ctypes
import threading
from collections import deque
from collections.abc import Callable
from functools import partial
from queue import SimpleQueue
from typing import Unpack

from horsies.clock import monotonic
from horsies.executors import attempt
from horsies.executors.base import (
    Call,
    Crashed,
    Definitions,
    Delivered,
    Done,
    Interrupted,
    NotBegun,
    SoftTimeout,
    TimedOut,
)
from horsies.executors.host import Host
from horsies.executors.local import LocalExecutor, LocalOptions, LocalRun


class _Run(LocalRun):
    __slots__ = ("_set_soft_timer", "ended", "thread")

    def __init__(self, call: Call, done: Done, set_soft_timer: "Callable[[_Run], None]") -> None:
        super().__init__(call, done)
        self.thread: _Thread | None = None
        self.ended: Delivered | Crashed | None = None
        self._set_soft_timer = set_soft_timer

    def start_soft_limit(self) -> None:
        self._set_soft_timer(self)

    def is_taken(self) -> bool:
        """Whether a thread has it; from then on only that thread knows whether it runs."""
        return self.thread is not None


class ThreadExecutor(LocalExecutor[_Run]):
    """Runs calls in a fixed number of threads, which take them in order from one queue.

    A slot becomes free when the function in its thread has returned.
    """

    def __init__(
        self, definitions: Definitions, slots: int, **options: Unpack[LocalOptions]
    ) -> None:
        super().__init__(definitions, slots, **options)
        self._queue: SimpleQueue[_Run | None] = SimpleQueue()
        self._ended: deque[_Run] = deque()
        self._is_woken = False

    @property
    def free_slots(self) -> int:
        return max(0, self._slots - self._busy_count)

    async def start(self) -> None:
        await super().start()
        for number in range(self._slots):
            name = f"horsies-thread-{number + 1}"
            host = partial(Host, self._definitions)
            _Thread(name, self._queue, host, self._attempt, self._on_run_ended).start()

    def submit(self, call: Call, done: Done) -> None:
        run = _Run(call, done, self._start_soft_limit)
        run.is_dispatched = True
        self._runs[call.task_id] = run
        self._busy_count += 1
        self._idle.clear()
        self._queue.put(run)

    def withdraw(self, task_id: str) -> bool:
        run = self._runs.get(task_id)
        if run is None or run.is_taken() or run.is_stopped:
            return False
        run.is_stopped = True
        if run.is_taken():  # just now: it runs, or its thread has seen the stop
            run.is_stopped = False
            return False
        self._report(run, NotBegun())  # the thread that takes it passes over it
        return True

    async def close(self, *, kill: bool) -> None:
        for run in tuple(self._runs.values()):
            if run.thread is None:
                self.stop(run.call.task_id)
        await super().close(kill=kill)

    async def _wait_until_idle(self, *, kill: bool) -> None:
        try:
            async with asyncio.timeout(self._grace_seconds + 0.1 if kill else None):
                await self._idle.wait()
        except TimeoutError:
            pass  # the threads are daemons: they end with the process
        for _ in range(self._slots):
            self._queue.put(None)

    def _attempt(self, run: _Run, host: Host) -> Delivered | Crashed:
        """Run one call in the thread; an interruption may hit any part of this method."""
        run.capture = self._capture
        run.begun_at = monotonic()  # the timers need it before user code begins
        if run.call.timeout_ms is not None:
            self._limit(run, run.call.timeout_ms, partial(self._time_out, run))
        definition = self._definitions.get(run.call.task_name)
        try:
            return attempt.run(definition, run, host)
        except SoftTimeout as error:  # it arrived after the function, while encoding the result
            return attempt.from_exception(definition, run.call, error)
        except KeyboardInterrupt as error:
            return attempt.crashed_by(error)

    def _on_run_ended(self, run: _Run) -> None:
        """Called in the thread; one wake-up of the loop collects all runs that ended by then."""
        self._ended.append(run)
        if not self._is_woken:
            self._is_woken = True
            self._loop.call_soon_threadsafe(self._collect)

    def _collect(self) -> None:
        self._is_woken = False  # before the loop below, so that it misses no run that ends later
        while self._ended:
            run = self._ended.popleft()
            self._busy_count -= 1
            self._report_ended(run)
        if self._busy_count == 0:
            self._idle.set()

    def _start_soft_limit(self, run: _Run) -> None:
        """Called in the thread, just before the function."""
        thread, limit_ms = run.thread, run.call.soft_timeout_ms
        if thread is not None and limit_ms is not None:
            self._limit(run, limit_ms, partial(thread.interrupt, run, SoftTimeout))

    def _limit(self, run: _Run, limit_ms: int, act: Callable[[], None]) -> None:
        """Called in the thread; the limit counts from now, not from when the loop is free."""
        ends_at = monotonic() + limit_ms / 1000
        self._loop.call_soon_threadsafe(self._set_timer, run, ends_at, act)

    def _set_timer(self, run: _Run, ends_at: float, act: Callable[[], None]) -> None:
        if run.done is not None:
            left_s = max(0.0, ends_at - monotonic())
            run.timers.append(self._loop.call_later(left_s, act))

    def _time_out(self, run: _Run) -> None:
        """Report at the limit and interrupt the thread; its slot stays busy until it ends."""
        if run.thread is not None and not run.is_stopped:
            log = run.captured()
            run.thread.interrupt(run, Interrupted)
            self._report(run, TimedOut(run.call.timeout_ms or 0, log.text, log.is_truncated))

    def _interrupt(self, run: _Run) -> None:
        if run.thread is None:  # still queued: the thread that takes it sees is_stopped
            self._report(run, NotBegun())
            return
        run.thread.interrupt(run, Interrupted)
        run.timers.append(self._loop.call_later(self._grace_seconds, self._report_ended, run))

    def _report_ended(self, run: _Run) -> None:
        """Report what is known now: the run has ended, or it ignored the interruption."""
        self._report(run, run.outcome(run.ended))


class _Thread(threading.Thread):
    """Serves runs from the queue; another thread can interrupt a run."""

    def __init__(
        self,
        name: str,
        queue: "SimpleQueue[_Run | None]",
        make_host: Callable[[], Host],
        attempt: Callable[[_Run, Host], Delivered | Crashed],
        on_ended: Callable[[_Run], None],
    ) -> None:
        super().__init__(name=name, daemon=True)
        self._queue = queue
        self._make_host = make_host
        self._attempt = attempt
        self._on_ended = on_ended
        self._current: _Run | None = None
        self._is_interrupted = False
        self._lock = threading.Lock()

    def interrupt(self, run: _Run, error: type[BaseException]) -> None:
        """Raise `error` in the thread if it is still in `run`."""
        with self._lock:
            if self._current is run:
                self._is_interrupted = True
                _raise_in_thread(self.ident, error)

    def run(self) -> None:
        host = self._make_host()
        while (run := self._queue.get()) is not None:
            try:
                try:
                    self._current = run
                    run.thread = (
                        self  # before the check: either stop() sees the thread, or we see the stop
                    )
                    if not run.is_stopped:
                        run.ended = self._attempt(run, host)
                finally:
                    self._end_run()
            except (Interrupted, SoftTimeout):
                self._end_run()  # the exception may have arrived inside the first _end_run
            except BaseException as error:  # noqa: BLE001 - user code: its trace function may run in ours
                self._end_run()
                run.ended = attempt.crashed_by(error)
            self._on_ended(run)

    def _end_run(self) -> None:
        """Refuse further interruptions: the next run belongs to another task."""
        with self._lock:
            self._current = None
        if self._is_interrupted:
            self._take_interruption()
            self._is_interrupted = False

    def _take_interruption(self) -> None:
        """Replace an interruption that may still be under way by one that ends here.

        Python could also withdraw it, but then it would go on looking for it: every thread of the
        worker would be slower, and hang in code that is traced (CPython 3.11).
        """
        try:
            _raise_in_thread(self.ident, _TakenError)
            while True:
                pass
        except _TakenError:
            pass


class _TakenError(BaseException):
    """Takes the place of an interruption that came too late."""


def _raise_in_thread(ident: int | None, error: type[BaseException]) -> None:
    ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(ident or 0), ctypes.py_object(error))
