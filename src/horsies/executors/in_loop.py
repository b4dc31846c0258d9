"""Run `async def` tasks on the worker's own event loop, many at once."""

import asyncio
from collections import deque

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
    NotBegun,
    Outcome,
    Stopped,
    TimedOut,
)
from horsies.executors.output import NOTHING, CaptureHandler, LogBuffer


class _Run:
    __slots__ = (
        "begun_at",
        "buffer",
        "call",
        "done",
        "is_stopped",
        "is_timed_out",
        "task",
        "timer",
    )

    def __init__(self, call: Call, done: Done) -> None:
        self.call = call
        self.done: Done | None = done
        self.task: asyncio.Task[None] | None = None
        self.timer: asyncio.TimerHandle | None = None
        self.buffer: LogBuffer | None = None
        self.begun_at: float | None = None
        self.is_stopped = False
        self.is_timed_out = False

    def is_ending(self) -> bool:
        return self.is_stopped or self.is_timed_out


class InLoopExecutor:
    """Coroutines on the loop; calls beyond `concurrency` wait their turn."""

    def __init__(
        self,
        definitions: Definitions,
        concurrency: int,
        *,
        capture: CaptureSettings | None = None,
        grace_seconds: float = STOP_GRACE_SECONDS,
    ) -> None:
        self._definitions = definitions
        self._concurrency = concurrency
        self._loop: asyncio.AbstractEventLoop
        self._grace_seconds = grace_seconds
        self._capture = CaptureHandler(capture or CaptureSettings())
        self._running_count = 0
        self._waiting: deque[_Run] = deque()
        self._runs: dict[str, _Run] = {}
        self._abandoned: set[asyncio.Task[None]] = set()
        self._idle = asyncio.Event()
        self._idle.set()

    @property
    def started_slots(self) -> int:
        return self._concurrency

    @property
    def free_slots(self) -> int:
        return max(0, self._concurrency - self._running_count - len(self._waiting))

    @property
    def abandoned_count(self) -> int:
        """Coroutines that ignored their cancellation; the loop cannot end cleanly before them."""
        return len(self._abandoned)

    async def start(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._capture.install()

    def submit(self, call: Call, done: Done) -> None:
        run = _Run(call, done)
        self._runs[call.task_id] = run
        if self._running_count < self._concurrency:
            self._begin(run)
        else:
            self._waiting.append(run)

    def stop(self, task_id: str) -> bool:
        run = self._runs.get(task_id)
        if run is None:
            return False
        if run.task is None:
            self._waiting.remove(run)
            self._report(run, NotBegun())
        elif not run.is_ending():
            run.is_stopped = True
            self._cancel(run)
        return True

    def is_alive(self, task_id: str) -> bool:
        return task_id in self._runs

    def begun_at(self, task_id: str) -> float | None:
        run = self._runs.get(task_id)
        return None if run is None else run.begun_at

    async def close(self, *, kill: bool) -> None:
        """Wait for what runs; with `kill`, cancel it first. What waits is given back."""
        while self._waiting:
            self._report(self._waiting.popleft(), NotBegun())
        if kill:
            for task_id in tuple(self._runs):
                self.stop(task_id)
        await self._idle.wait()
        self._capture.uninstall()

    def _begin(self, run: _Run) -> None:
        self._running_count += 1
        self._idle.clear()
        run.task = self._loop.create_task(self._serve(run))
        limit_ms = run.call.timeout_ms
        if limit_ms is not None:
            run.timer = self._loop.call_later(limit_ms / 1000, self._time_out, run)

    async def _serve(self, run: _Run) -> None:
        call = run.call
        if run.is_ending():  # asked to stop before the loop came round to it
            self._end(run, None)
            return
        definition = self._definitions.get(call.task_name)
        run.buffer = self._capture.begin()
        run.begun_at = monotonic()
        outcome: Delivered | Crashed | None
        try:
            outcome = await attempt.run_async(definition, call, self._definitions.journal)
        except asyncio.CancelledError as error:
            # Cancelled by us, or raised by user code: then it is an exception like any other.
            outcome = None if run.is_ending() else attempt.raised(definition, call, error)
        except KeyboardInterrupt as error:
            outcome = attempt.crashed(error)
        self._end(run, outcome)

    def _time_out(self, run: _Run) -> None:
        if not run.is_stopped:
            run.is_timed_out = True
            self._cancel(run)

    def _cancel(self, run: _Run) -> None:
        if run.task is not None and run.begun_at is not None:
            run.task.cancel()
        if run.timer is not None:
            run.timer.cancel()
        run.timer = self._loop.call_later(self._grace_seconds, self._abandon, run)

    def _abandon(self, run: _Run) -> None:
        if run.task is not None:
            self._abandoned.add(run.task)
            run.task.add_done_callback(self._abandoned.discard)
        self._end(run, None)

    def _end(self, run: _Run, ended: Delivered | Crashed | None) -> None:
        if run.done is None:
            return  # abandoned earlier; its late result is dropped
        if run.timer is not None:
            run.timer.cancel()
        captured = NOTHING if run.buffer is None else run.buffer.captured()
        log, is_truncated = captured.text, captured.is_truncated
        outcome: Outcome
        if run.begun_at is None:
            outcome = NotBegun()
        elif run.is_timed_out:
            outcome = TimedOut(run.call.timeout_ms or 0, log, is_truncated)
        elif ended is None or (run.is_stopped and not ended.is_ok):
            outcome = Stopped(log, is_truncated)
        elif log is None:
            outcome = ended
        else:
            outcome = ended._replace(log=log, log_truncated=is_truncated)
        self._running_count -= 1
        while self._waiting and self._running_count < self._concurrency:
            self._begin(self._waiting.popleft())
        if self._running_count == 0:
            self._idle.set()
        self._report(run, outcome)

    def _report(self, run: _Run, outcome: Outcome) -> None:
        done, run.done = run.done, None
        if self._runs.get(run.call.task_id) is run:
            del self._runs[run.call.task_id]
        if done is not None:
            done(run.call, outcome)
