"""Run blocking functions in long-lived threads of the worker."""

import asyncio
import ctypes
import threading
from collections import deque
from collections.abc import Callable
from queue import SimpleQueue

from horsies.clock import monotonic
from horsies.executors import attempt
from horsies.executors.base import (
    STOP_GRACE_SECONDS,
    Call,
    CaptureSettings,
    Crashed,
    Definitions,
    Delivered,
    Done,
    Interrupted,
    NotBegun,
    Outcome,
    SoftTimeout,
    Stopped,
    TimedOut,
)
from horsies.executors.output import NOTHING, Captured, CaptureHandler, LogBuffer


class _Run:
    __slots__ = ("begun_at", "buffer", "call", "done", "is_stopped", "outcome", "thread", "timers")

    def __init__(self, call: Call, done: Done) -> None:
        self.call = call
        self.done: Done | None = done
        self.thread: _Thread | None = None
        self.timers: list[asyncio.TimerHandle] = []
        self.buffer: LogBuffer | None = None
        self.begun_at: float | None = None
        self.is_stopped = False
        self.outcome: Delivered | Crashed | None = None


class ThreadExecutor:
    """A fixed number of threads; a slot is free again when its thread has returned."""

    def __init__(
        self,
        definitions: Definitions,
        threads: int,
        *,
        capture: CaptureSettings | None = None,
        grace_seconds: float = STOP_GRACE_SECONDS,
    ) -> None:
        self._definitions = definitions
        self._thread_count = threads
        self._grace_seconds = grace_seconds
        self._loop: asyncio.AbstractEventLoop
        self._capture = CaptureHandler(capture or CaptureSettings())
        self._idle_threads: list[_Thread] = []
        self._waiting: deque[_Run] = deque()
        self._runs: dict[str, _Run] = {}
        self._busy_count = 0
        self._ended: deque[_Run] = deque()
        self._is_woken = False
        self._idle = asyncio.Event()
        self._idle.set()

    @property
    def started_slots(self) -> int:
        return self._thread_count

    @property
    def free_slots(self) -> int:
        return max(0, len(self._idle_threads) - len(self._waiting))

    async def start(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._capture.install()
        for number in range(self._thread_count):
            thread = _Thread(f"horsies-thread-{number + 1}", self._attempt, self._hand_back)
            thread.start()
            self._idle_threads.append(thread)

    def submit(self, call: Call, done: Done) -> None:
        run = _Run(call, done)
        self._runs[call.task_id] = run
        if self._idle_threads:
            self._begin(run, self._idle_threads.pop())
        else:
            self._waiting.append(run)

    def stop(self, task_id: str) -> bool:
        run = self._runs.get(task_id)
        if run is None:
            return False
        if run.thread is None:
            self._waiting.remove(run)
            self._report(run, NotBegun())
        elif not run.is_stopped:
            run.is_stopped = True
            run.thread.interrupt(run, Interrupted)
            run.timers.append(self._loop.call_later(self._grace_seconds, self._give_up, run))
        return True

    def is_alive(self, task_id: str) -> bool:
        return task_id in self._runs

    def begun_at(self, task_id: str) -> float | None:
        run = self._runs.get(task_id)
        return None if run is None else run.begun_at

    async def close(self, *, kill: bool) -> None:
        """Wait for what runs; with `kill`, interrupt it and leave what ignores that behind."""
        while self._waiting:
            self._report(self._waiting.popleft(), NotBegun())
        for task_id in tuple(self._runs) if kill else ():
            self.stop(task_id)
        try:
            async with asyncio.timeout(self._grace_seconds + 0.1 if kill else None):
                await self._idle.wait()
        except TimeoutError:
            pass  # daemon threads: they end with the process
        for thread in self._idle_threads:
            thread.inbox.put(None)
        self._capture.uninstall()

    def _begin(self, run: _Run, thread: "_Thread") -> None:
        call = run.call
        self._busy_count += 1
        self._idle.clear()
        run.thread = thread
        if call.timeout_ms is not None:
            run.timers.append(self._loop.call_later(call.timeout_ms / 1000, self._time_out, run))
        if call.soft_timeout_ms is not None:
            delay = call.soft_timeout_ms / 1000
            run.timers.append(self._loop.call_later(delay, thread.interrupt, run, SoftTimeout))
        thread.inbox.put(run)

    def _attempt(self, run: _Run) -> Delivered | Crashed:
        """Run in the thread: everything an interruption may hit."""
        run.buffer = self._capture.begin()
        run.begun_at = monotonic()
        definition = self._definitions.get(run.call.task_name)
        try:
            return attempt.run(definition, run.call, self._definitions.journal)
        except SoftTimeout as error:  # it struck outside the function, while encoding
            return attempt.raised(definition, run.call, error)
        except KeyboardInterrupt as error:
            return attempt.crashed(error)

    def _hand_back(self, run: _Run) -> None:
        """Called in the thread; one wake-up of the loop serves all that ended meanwhile."""
        self._ended.append(run)
        if not self._is_woken:
            self._is_woken = True
            self._loop.call_soon_threadsafe(self._collect)

    def _collect(self) -> None:
        self._is_woken = False  # before the look, so that nothing ended after it is missed
        while self._ended:
            run = self._ended.popleft()
            if run.thread is not None:
                self._idle_threads.append(run.thread)
            self._busy_count -= 1
            while self._waiting and self._idle_threads:
                self._begin(self._waiting.popleft(), self._idle_threads.pop())
            self._give_up(run)
        if self._busy_count == 0:
            self._idle.set()

    def _time_out(self, run: _Run) -> None:
        """Report at the limit; the thread is interrupted and its slot stays taken until it ends."""
        if run.thread is not None and not run.is_stopped:
            log = _captured(run)
            run.thread.interrupt(run, Interrupted)
            self._report(run, TimedOut(run.call.timeout_ms or 0, log.text, log.is_truncated))

    def _give_up(self, run: _Run) -> None:
        """Report what is known by now: the thread has ended, or ignored being stopped."""
        log = _captured(run)
        ended = run.outcome
        if run.begun_at is None:
            self._report(run, NotBegun())
        elif ended is None or (run.is_stopped and not ended.is_ok):
            self._report(run, Stopped(log.text, log.is_truncated))
        elif log.text is None:
            self._report(run, ended)
        else:
            self._report(run, ended._replace(log=log.text, log_truncated=log.is_truncated))

    def _report(self, run: _Run, outcome: Outcome) -> None:
        done, run.done = run.done, None
        if done is None:
            return
        for timer in run.timers:
            timer.cancel()
        if self._runs.get(run.call.task_id) is run:
            del self._runs[run.call.task_id]
        done(run.call, outcome)


def _captured(run: _Run) -> Captured:
    return NOTHING if run.buffer is None else run.buffer.captured()


class _Thread(threading.Thread):
    """Serves runs from its inbox; can be interrupted in the middle of one."""

    def __init__(
        self,
        name: str,
        attempt: Callable[[_Run], Delivered | Crashed],
        hand_back: Callable[[_Run], None],
    ) -> None:
        super().__init__(name=name, daemon=True)
        self.inbox: SimpleQueue[_Run | None] = SimpleQueue()
        self._attempt = attempt
        self._hand_back = hand_back
        self._current: _Run | None = None
        self._lock = threading.Lock()

    def interrupt(self, run: _Run, error: type[BaseException]) -> None:
        """Raise `error` in the thread if it is still in `run`."""
        with self._lock:
            if self._current is run:
                _raise_in(self.ident, error)

    def run(self) -> None:
        while (run := self.inbox.get()) is not None:
            try:
                try:
                    self._current = run  # before the look: a stop() sees it, or is seen
                    if not run.is_stopped:
                        run.outcome = self._attempt(run)
                finally:
                    self._leave()
            except (Interrupted, SoftTimeout):
                self._leave()  # it may have struck inside the first _leave
            self._hand_back(run)

    def _leave(self) -> None:
        """From here on nothing may strike: the next run is another task's."""
        with self._lock:
            self._current = None
            _raise_in(self.ident, None)


def _raise_in(ident: int | None, error: type[BaseException] | None) -> None:
    target = None if error is None else ctypes.py_object(error)
    ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(ident or 0), target)
