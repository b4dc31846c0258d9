"""Run plain functions in child processes and supervise each child on its own.

When a child dies, at most one call fails: the one whose user code had begun.
"""

import asyncio
import contextlib
import signal
from collections import deque
from collections.abc import Sequence

from horsies.clock import monotonic
from horsies.executors.base import (
    STOP_GRACE_SECONDS,
    BegunMarks,
    Call,
    CaptureSettings,
    Delivered,
    Done,
    NotBegun,
    Outcome,
    Stopped,
    TimedOut,
)
from horsies.executors.child import ChildSettings
from horsies.executors.child_pool import ChildPool
from horsies.executors.child_process import ChildProcess, Run, describe_crash
from horsies.executors.shared_page import MAX_QUEUED

# A child that has missed six beats is unresponsive.
_UNRESPONSIVE_SECONDS = 3.0
# A child whose call takes longer than this gets no others; twice the worker's prefetch horizon.
_SLOW_SECONDS = 0.1
# How often the memory of running children is checked, if it is limited.
_MEMORY_CHECK_SECONDS = 0.25
# A call is taken for the cause when its child died more often than this just before it began.
_MAX_REASSIGNMENTS = 3


class ProcessExecutor:
    """Runs calls in `count` children, forked from one process that has imported the app.

    `bootstrap` is the command that starts the fork server; it calls `fork_server_main.serve(load)`.
    `depth` is how many calls a child may hold at once when the executor chooses the child.
    """

    def __init__(
        self,
        count: int,
        *,
        bootstrap: Sequence[str],
        max_tasks_per_child: int = 0,
        max_memory_per_child_mb: int = 0,
        capture: CaptureSettings | None = None,
        grace_seconds: float = STOP_GRACE_SECONDS,
        begun: BegunMarks | None = None,
    ) -> None:
        capture = capture or CaptureSettings()
        settings = ChildSettings(
            capture.enabled,
            capture.max_bytes,
            max_tasks_per_child,
            max_memory_per_child_mb,
            capture.echoes,
        )
        self.depth = 1
        self._count = count
        self._grace_seconds = grace_seconds
        self._begun = begun
        self._loop: asyncio.AbstractEventLoop
        self._pool = ChildPool(count, bootstrap, settings)
        self._pool.on_ready = self._dispatch
        self._pool.on_answer = self._on_answer
        self._pool.on_gone = self._on_gone
        self._waiting: deque[Run] = deque()
        self._runs: dict[str, Run] = {}
        self._in_flight_count = 0
        self._is_closing = False
        self._max_memory_mb = max_memory_per_child_mb
        self._slow_child_timer: asyncio.TimerHandle | None = None
        self._memory_timer: asyncio.TimerHandle | None = None
        self._idle = asyncio.Event()

    @property
    def started_slots(self) -> int:
        return len(self._pool.ready())

    @property
    def free_slots(self) -> int:
        return max(0, self._count - self._in_flight_count)

    @property
    def pids(self) -> tuple[int, ...]:
        """The pids of all children that have reported ready, including those that are leaving."""
        return tuple(child.pid for child in self._pool.children.values() if child.pid is not None)

    @property
    def fork_server_pid(self) -> int | None:
        return self._pool.server_pid

    async def start(self) -> None:
        """Start all children; raise ExecutorStartError with the traceback if one fails."""
        self._loop = asyncio.get_running_loop()
        await self._pool.start()
        if self._max_memory_mb > 0:
            self._check_memory()

    def plan(self, count: int) -> list[int]:
        """Choose pids for the next `count` calls, least loaded first; none if no child is ready."""
        loads = {c.pid: c.load + c.is_slow * MAX_QUEUED for c in self._pool.ready() if c.pid}
        chosen: list[int] = []
        while loads and len(chosen) < count:
            pid = min(loads, key=loads.__getitem__)
            loads[pid] += 1
            chosen.append(pid)
        return chosen

    def submit(self, call: Call, done: Done, pid: int | None = None) -> None:
        """Queue the call in child `pid`; without one, in the next child that has room."""
        run = Run(call, done)
        self._runs[call.task_id] = run
        self._in_flight_count += 1
        child = None if pid is None else self._pool.find(pid)
        if child is not None and child.has_room:
            self._assign(run, child)
        else:
            self._waiting.append(run)
            self._dispatch()

    def stop(self, task_id: str) -> bool:
        run = self._runs.get(task_id)
        if run is None:
            return False
        if run.child is None:
            self._waiting.remove(run)
            self._report(run, NotBegun())
        elif run.child.withdraw(run):
            self._report(run, NotBegun())
        elif not run.is_stopped and not run.is_timed_out:
            run.is_stopped = True
            if run.child.current is run:
                self._terminate(run, run.child)
        return True

    def withdraw(self, task_id: str) -> bool:
        run = self._runs.get(task_id)
        if run is None or (run.child is not None and not run.child.withdraw(run)):
            return False
        if run in self._waiting:
            self._waiting.remove(run)
        self._report(run, NotBegun())
        return True

    def is_alive(self, task_id: str) -> bool:
        """Whether the child of this call still beats; a call that waits for a child is alive."""
        run = self._runs.get(task_id)
        if run is None:
            return False
        return run.child is None or monotonic() - run.child.page.beat_at < _UNRESPONSIVE_SECONDS

    def begun_at(self, task_id: str) -> float | None:
        run = self._runs.get(task_id)
        if run is None or run.child is None or not run.has_begun():
            return None
        return run.child.page.begun_at

    def collect_progress(self) -> None:
        for child in self._pool.children.values():
            child.collect_progress()

    def pid_of(self, task_id: str) -> int | None:
        run = self._runs.get(task_id)
        return None if run is None or run.child is None else run.child.pid

    def name_of(self, pid: int) -> str | None:
        child = self._pool.find(pid)
        return None if child is None else child.name

    async def close(self, *, kill: bool) -> None:
        """Wait for running calls, or kill them; then end the children and the fork server."""
        self._is_closing = True
        self._pool.stop_replacing()
        for child in self._pool.children.values():
            self._waiting.extend(child.withdraw_queued())
        while self._waiting:
            self._report(self._waiting.popleft(), NotBegun())
        if kill:
            for run in self._runs.values():
                run.is_stopped = True
            self._pool.kill_busy()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(self._grace_seconds if kill else None):
                while self._in_flight_count:
                    self._idle.clear()
                    await self._idle.wait()
        await self._pool.close(within=self._grace_seconds)
        if self._memory_timer is not None:
            self._memory_timer.cancel()

    def _dispatch(self) -> None:
        while self._waiting:
            children = (child for child in self._pool.ready() if not child.is_slow)
            child = min(children, key=lambda c: c.load, default=None)
            if child is None or child.load >= self.depth or not child.has_room:
                return
            self._assign(self._waiting.popleft(), child)

    def _assign(self, run: Run, child: ChildProcess) -> None:
        child.assign(run)
        if child.current is run:
            self._start_time_limit(run, child)
        elif self._slow_child_timer is None:
            self._slow_child_timer = self._loop.call_later(
                _SLOW_SECONDS, self._relieve_slow_children
            )

    def _relieve_slow_children(self) -> None:
        """Take back calls that wait behind a long one: another child may begin them sooner."""
        self._slow_child_timer = None
        has_queues = False
        for child in self._pool.children.values():
            run = child.current
            is_long = run is not None and run.has_begun()
            if is_long and monotonic() - child.page.begun_at > _SLOW_SECONDS:
                child.is_slow = True
                self._waiting.extendleft(reversed(child.withdraw_queued()))
            has_queues = has_queues or child.load > 1
        self._dispatch()
        if has_queues and self._slow_child_timer is None:
            self._slow_child_timer = self._loop.call_later(
                _SLOW_SECONDS, self._relieve_slow_children
            )

    def _check_memory(self) -> None:
        """Kill children that exceed the memory limit during a call, before the machine swaps."""
        for child in tuple(self._pool.children.values()):
            run = child.current
            if run is None or not run.has_begun():
                continue
            used_mb = child.memory_mb()
            if used_mb > self._max_memory_mb:
                limit = f"max_memory_per_child_mb={self._max_memory_mb}"
                child.kill_reason = f"it used {used_mb:.0f} MiB, {limit}"
                child.is_leaving = True
                self._kill(run, child)
        self._memory_timer = self._loop.call_later(_MEMORY_CHECK_SECONDS, self._check_memory)

    def _start_time_limit(self, run: Run, child: ChildProcess) -> None:
        """Start the time limit of a call that is now at the head of its child's queue."""
        if run.is_stopped:
            self._terminate(run, child)
        elif run.call.timeout_ms is not None:
            limit = run.call.timeout_ms / 1000
            run.timer = self._loop.call_later(limit, self._check_time_limit, run, child, limit)

    def _check_time_limit(self, run: Run, child: ChildProcess, limit: float) -> None:
        remaining = child.page.begun_at + limit - monotonic() if run.has_begun() else limit
        if remaining > 0:
            run.timer = self._loop.call_later(remaining, self._check_time_limit, run, child, limit)
        else:
            run.is_timed_out = True
            self._terminate(run, child)

    def _terminate(self, run: Run, child: ChildProcess) -> None:
        """End one call by ending its child: SIGTERM, then SIGKILL after the grace period."""
        run.cancel_timer()
        child.is_leaving = True
        child.page.stop_sequence = run.sequence
        self._pool.signal(child, signal.SIGTERM)
        run.timer = self._loop.call_later(self._grace_seconds, self._kill, run, child)

    def _kill(self, run: Run, child: ChildProcess) -> None:
        child.read()  # an answer that has just arrived saves the child
        if child.current is run:
            self._pool.signal(child, signal.SIGKILL)
        else:
            child.kill_reason = None

    def _on_answer(self, child: ChildProcess, delivered: Delivered | None) -> None:
        run = child.pop_answered(delivered)
        child.is_slow = False
        if child.is_retiring:
            self._reassign(child.pop_all())
        else:
            # A child that was asked to stop stays if its call ended by itself before that.
            child.is_leaving = child.is_orphan
            if child.current is not None:
                self._start_time_limit(child.current, child)
        if run is not None and delivered is None:  # skipped, although it seemed to have begun
            self._reassign([run])
        self._dispatch()
        if run is None or delivered is None:
            return
        log, is_truncated = delivered.log, delivered.log_truncated
        if run.is_timed_out:
            self._report(run, TimedOut(run.call.timeout_ms or 0, log, is_truncated))
        elif run.is_stopped and not delivered.is_ok:
            self._report(run, Stopped(log, is_truncated))
        else:
            self._report(run, delivered)

    def _on_gone(self, child: ChildProcess, status: int | None) -> None:
        unfinished = child.pop_all()
        if unfinished and self._has_begun(unfinished[0]):
            run = unfinished.pop(0)
            crashed = describe_crash(child, status)
            log, is_truncated = crashed.log, crashed.log_truncated
            if run.is_timed_out:
                self._report(run, TimedOut(run.call.timeout_ms or 0, log, is_truncated))
            elif run.is_stopped:
                self._report(run, Stopped(log, is_truncated))
            else:
                self._report(run, crashed)
        elif unfinished:
            unfinished[0].reassignment_count += 1
            if unfinished[0].reassignment_count > _MAX_REASSIGNMENTS:
                self._report(unfinished.pop(0), describe_crash(child, status))
        self._reassign(unfinished)
        self._dispatch()

    def _has_begun(self, run: Run) -> bool:
        """Whether user code may have run: the child took the call and marked it as begun."""
        if self._begun is None or run.is_timed_out or run.is_stopped:
            return run.has_begun()
        return run.has_begun() and self._begun.has_begun(run.call.slot)

    def _reassign(self, runs: list[Run]) -> None:
        """Give calls that a leaving child will not begin to the other children, in order."""
        for run in reversed(runs):
            run.cancel_timer()
            run.child = None
            if run.is_stopped or self._is_closing:
                self._report(run, NotBegun())
            else:
                self._waiting.appendleft(run)

    def _report(self, run: Run, outcome: Outcome) -> None:
        run.cancel_timer()
        self._in_flight_count -= 1
        if self._runs.get(run.call.task_id) is run:
            del self._runs[run.call.task_id]
        if self._in_flight_count == 0:
            self._idle.set()
        run.done(run.call, outcome)
