"""Run `async def` tasks on the worker's own event loop, many at once."""

import asyncio
import contextvars
import sys
from typing import Any, Unpack

from horsies.executors import attempt
from horsies.executors.base import (
    Call,
    Crashed,
    Definitions,
    Delivered,
    Done,
    Interrupted,
    TimedOut,
)
from horsies.executors.forked_copy import end_forked_copies_of
from horsies.executors.host import Host
from horsies.executors.local import LocalExecutor, LocalOptions, LocalRun
from horsies.executors.own_tasks import hidden_task, hide_own_tasks

# From Python 3.12 on, a coroutine begins at once instead of in the next turn of the event loop.
_BEGINS_AT_ONCE: dict[str, Any] = {"eager_start": True} if sys.version_info >= (3, 12) else {}
# Calls that may begin one after the other before others have a turn: about a millisecond's work.
_IN_A_ROW = 100


class _Run(LocalRun):
    __slots__ = ("is_timed_out", "task")

    def __init__(self, call: Call, done: Done) -> None:
        super().__init__(call, done)
        self.task: asyncio.Task[None] | None = None
        self.is_timed_out = False

    def is_ending(self) -> bool:
        return super().is_ending() or self.is_timed_out


class InLoopExecutor(LocalExecutor[_Run]):
    """Runs coroutines on the event loop; calls beyond the slots wait for their turn."""

    def __init__(
        self, definitions: Definitions, slots: int, **options: Unpack[LocalOptions]
    ) -> None:
        super().__init__(definitions, slots, **options)
        self._abandoned: set[asyncio.Task[None]] = set()
        self._is_beginning = False

    @property
    def abandoned_count(self) -> int:
        """How many coroutines ignored their cancellation; the loop cannot close before they end."""
        return len(self._abandoned)

    @property
    def free_slots(self) -> int:
        return max(0, self._slots - self._busy_count - len(self._waiting))

    async def start(self) -> None:
        await super().start()
        # No call inherits context variables from the call that ended before it.
        self._context = contextvars.copy_context()
        self._host = Host(self._definitions)
        self._context.run(self._host.leave_out)
        end_forked_copies_of(self._loop)
        hide_own_tasks(self._loop)

    def submit(self, call: Call, done: Done) -> None:
        run = _Run(call, done)
        self._runs[call.task_id] = run
        if self._busy_count < self._slots:
            self._begin(run)
        else:
            self._waiting.append(run)

    def _begin(self, run: _Run) -> None:
        self._busy_count += 1
        self._idle.clear()
        run.is_dispatched = True
        limit_ms = run.call.timeout_ms
        if limit_ms is not None:
            run.timers.append(self._loop.call_later(limit_ms / 1000, self._time_out, run))
        run.task = hidden_task(
            self._loop,
            self._serve(run),
            name=run.call.task_name,
            context=self._context.copy(),
            **_BEGINS_AT_ONCE,
        )

    def _begin_waiting(self) -> None:
        """Fill free slots; a call that ends while it begins leaves the next one to this loop."""
        if self._is_beginning:
            return
        self._is_beginning = True
        try:
            for _ in range(_IN_A_ROW):
                if not self._waiting or self._busy_count >= self._slots:
                    return
                self._begin(self._waiting.popleft())
        finally:
            self._is_beginning = False
        self._loop.call_soon(self._begin_waiting)

    async def _serve(self, run: _Run) -> None:
        call = run.call
        if run.is_stopped or run.is_timed_out or run.done is None:  # before the loop got to it
            self._end(run, None)
            return
        definition = self._definitions.get(call.task_name)
        run.capture = self._capture
        ended: Delivered | Crashed | None
        try:
            ended = await attempt.run_async(definition, run, self._host)
        except asyncio.CancelledError as error:
            # Either we cancelled, or user code raised it: then it is an exception like any other.
            ended = None if run.is_ending() else attempt.from_exception(definition, call, error)
        except (KeyboardInterrupt, Interrupted) as error:
            ended = attempt.crashed_by(error)
        self._end(run, ended)

    def _time_out(self, run: _Run) -> None:
        if not run.is_stopped:
            run.is_timed_out = True
            self._interrupt(run)

    def _interrupt(self, run: _Run) -> None:
        if run.task is not None and run.begun_at is not None:
            run.task.cancel()
        run.timers.append(self._loop.call_later(self._grace_seconds, self._abandon, run))

    def _abandon(self, run: _Run) -> None:
        if run.task is not None:
            self._abandoned.add(run.task)
            run.task.add_done_callback(self._abandoned.discard)
        self._end(run, None)

    def _end(self, run: _Run, ended: Delivered | Crashed | None) -> None:
        if run.done is None:
            return  # abandoned earlier: drop its late result
        self._busy_count -= 1
        if self._waiting:
            self._begin_waiting()
        elif self._busy_count == 0:
            self._idle.set()
        if run.is_timed_out and run.begun_at is not None:
            log = run.captured()
            self._report(run, TimedOut(run.call.timeout_ms or 0, log.text, log.is_truncated))
        else:
            self._report(run, run.outcome(ended))
