"""What this worker holds.

Hands started tasks to their executors and turns their ends into completions.
"""

import asyncio
import logging
import os
import random
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from horsies.clock import monotonic
from horsies.codec.signature import byte_count
from horsies.config import AppConfig
from horsies.executors.base import Call, Delivered, NotBegun, Outcome
from horsies.executors.journal import Journal
from horsies.tasks.claims import ClaimedTask
from horsies.tasks.options import parse_task_options
from horsies.worker.completer import Completer
from horsies.worker.lanes import Lane
from horsies.worker.outcome import StopReason, judge

_logger = logging.getLogger("horsies.worker")
_random = random.SystemRandom()
_AT_ONCE = 100  # about a millisecond's work


@dataclass(slots=True)
class Running:
    """A task in an executor."""

    task: ClaimedTask
    lane: Lane
    pid: int
    started_at: float
    beat_at: float
    stop: StopReason | None = None


class Dispatcher:
    """Running tasks by id. `on_room` is called when a slot has become free."""

    def __init__(
        self,
        config: AppConfig,
        lanes: list[Lane],
        completer: Completer,
        journal: Journal | None,
        on_room: Callable[[], None],
    ) -> None:
        self._config = config
        self._lanes = lanes
        self._completer = completer
        self._journal = journal
        self._own_pid = os.getpid()
        self._slots: dict[str, int] = {}
        self._on_room = on_room
        self.running: dict[str, Running] = {}
        self._accepted: deque[Running] = deque()
        self._is_paused = False
        self._warned: set[str] = set()

    def start(self, tasks: Sequence[ClaimedTask]) -> None:
        """Run tasks whose RUNNING state is committed.

        The first hundred now, the rest as the loop comes round: what sleeps in it wakes in time,
        and the next claim is under way meanwhile.
        """
        now = monotonic()
        is_first = not self._accepted
        for task in tasks:
            lane = self._lanes[task.lane - 1]
            lane.in_flight += 1
            held = Running(task, lane, task.worker_pid or self._own_pid, now, now)
            self.running[task.id] = held
            self._accepted.append(held)
        if is_first:
            self._submit_some()

    def _submit_some(self) -> None:
        # Results that wait for their write fill the memory: no more of them until some are written.
        self._is_paused = self._completer.is_full
        if self._is_paused:
            return
        for _ in range(min(_AT_ONCE, len(self._accepted))):
            self._submit(self._accepted.popleft())
        if self._accepted:
            asyncio.get_running_loop().call_soon(self._submit_some)

    def give_back_accepted(self) -> None:
        """What has not reached its executor goes back unbegun."""
        while self._accepted:
            held = self._accepted.popleft()
            held.stop = held.stop or "now"
            self._submit(held)

    def _submit(self, held: Running) -> None:
        task = held.task
        options = parse_task_options(task.task_options)
        call = Call(
            task.id,
            task.task_name,
            task.attempt,
            task.args,
            task.kwargs,
            options.timeout_ms or self._config.task_timeout_ms,
            options.soft_timeout_ms,
            self._place(task.id),
        )
        if held.stop is None:
            held.lane.submit(call, self._done, held.pid)
        else:
            self._done(call, NotBegun())

    def _place(self, task_id: str) -> int:
        if self._journal is None:
            return 0
        slot = self._slots[task_id] = self._journal.place(task_id)
        return slot

    def settle(self, task_id: str) -> None:
        """The end of this task is recorded."""
        slot = self._slots.pop(task_id, None)
        if slot is not None and self._journal is not None:
            self._journal.release(slot)
        if self._is_paused:
            self._submit_some()

    def _done(self, call: Call, outcome: Outcome) -> None:
        held = self.running.pop(call.task_id)
        held.lane.in_flight -= 1
        completion = judge(held.task, outcome, stop=held.stop, random=_random)
        if isinstance(outcome, Delivered):
            held.lane.measure(outcome.duration_s, completion.size)
            self._warn_if_large(call, outcome)
        self._completer.add(completion)
        self._on_room()

    def stop(self, task_id: str, reason: StopReason) -> None:
        """End a running task; its outcome follows through its executor."""
        held = self.running.get(task_id)
        if held is not None and held.stop is None:
            held.stop = reason
            held.lane.executor.stop(task_id)

    def _warn_if_large(self, call: Call, outcome: Delivered) -> None:
        limit = self._config.payload_warn_bytes
        if limit and byte_count(outcome.result) > limit and call.task_name not in self._warned:
            self._warned.add(call.task_name)
            _logger.warning(
                "task %s returns results larger than payload_warn_bytes=%d; "
                "consider storing them elsewhere and returning a reference",
                call.task_name,
                limit,
            )
