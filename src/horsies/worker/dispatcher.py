"""Hands started tasks to their executors and turns their ends into completions."""

import asyncio
import logging
import os
import random
from collections import deque
from collections.abc import Callable, Sequence
from typing import NamedTuple

from horsies.clock import monotonic
from horsies.codec.signature import byte_count
from horsies.config import AppConfig
from horsies.executors.base import Call, Delivered, NotBegun, Outcome
from horsies.observability.trace_context import traceparent_of
from horsies.recovery.begun_slots import BegunSlots
from horsies.tasks.definition import TaskDefinition
from horsies.tasks.options import parse_task_options
from horsies.worker.claim_request import PermitRequest
from horsies.worker.completer import Completer
from horsies.worker.held_task import HeldTask, StopReason
from horsies.worker.lanes import Lane
from horsies.worker.outcome import judge
from horsies.worker.permits import Permits

_logger = logging.getLogger("horsies.worker")
_random = random.SystemRandom()
_AT_ONCE = 100  # about a millisecond's work


class DispatchEvents(NamedTuple):
    """Who is told: of a free slot, of a claim, of a task that begins, of one that is too late."""

    on_slot_freed: Callable[[], None]
    on_claimed: Callable[[Sequence[HeldTask]], None]
    on_started: Callable[[HeldTask], None]
    on_expired: Callable[[HeldTask], None]


class Dispatcher:
    """Tasks in executors, by id.

    An id is in an executor once at a time: a worker that was frozen past the threshold may claim a
    task again whose earlier run has not ended here. The later claim waits for that end.
    """

    def __init__(
        self,
        config: AppConfig,
        lanes: list[Lane],
        completer: Completer,
        permits: Permits,
        begun_slots: BegunSlots | None,
        events: DispatchEvents,
        definition_of: Callable[[str], TaskDefinition | None],
    ) -> None:
        self._config = config
        self._definition_of = definition_of
        self._lanes = lanes
        self._completer = completer
        self.permits = permits
        self._begun_slots = begun_slots
        self._own_pid = os.getpid()
        self.events = events
        self.running: dict[str, HeldTask] = {}
        self._successors: dict[str, HeldTask] = {}  # later claims of tasks that are in `running`
        self._accepted: deque[HeldTask] = deque()
        self._is_paused = False
        self._warned: set[str] = set()

    def start(self, tasks: Sequence[HeldTask]) -> None:
        """Run tasks whose RUNNING state is committed, as far as their permit is, too.

        The first hundred start now, the rest in later turns of the event loop, so that timers are
        on time and the next claim is under way meanwhile.
        """
        now = monotonic()
        accepted: list[HeldTask] = []
        unwelcome: list[HeldTask] = []
        for task in tasks:
            lane = self._lanes[task.lane - 1]
            is_ahead = lane.in_flight >= lane.slots
            lane.in_flight += 1
            task.held_since = task.beat_at = now
            if task.task_id in self.running:
                self._succeed(task)
                continue
            self.running[task.task_id] = task
            if is_ahead and not lane.may_wait(task.task_name):
                unwelcome.append(task)
            elif self.permits.may_begin(task):
                accepted.append(task)
        for task in unwelcome:  # taken for short ones: another worker may begin them at once
            self._done(task, NotBegun())
        self._accept(accepted)
        if self.permits.are_urgent():
            self._completer.wake()

    def _succeed(self, task: HeldTask) -> None:
        """Hold a later claim until the earlier run, which lost its own, has ended."""
        _logger.warning(
            "task %s: its claim was lost while its code ran here, and it was claimed again; "
            "the earlier run is stopped",
            task.task_id,
        )
        outlived = self._successors.pop(task.task_id, None)
        if outlived is not None:  # claimed a third time: the second claim is lost, too
            self._lanes[outlived.lane - 1].in_flight -= 1
        self._successors[task.task_id] = task
        self._stop_run(self.running[task.task_id], "now")

    def grant(self, permit: PermitRequest, voided: Sequence[int | None]) -> None:
        """A permit is committed: what it covers begins, what recovery has taken back does not."""
        admitted = self.permits.grant(permit, voided)
        for task in admitted.voided:
            self._done(task, NotBegun())
        self._accept(admitted.permitted)

    def _accept(self, tasks: Sequence[HeldTask]) -> None:
        is_first = not self._accepted
        self._accepted.extend(tasks)
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
        self._accepted.extend(self.permits.withdraw_all())
        while self._accepted:
            task = self._accepted.popleft()
            task.stop = task.stop or "now"
            self._submit(task)

    def _submit(self, task: HeldTask) -> None:
        options = parse_task_options(task.task_options)
        definition = self._definition_of(task.task_name)
        declared = definition.options if definition else options
        # A row written by plain SQL need not repeat what the task itself declares.
        task.timeout_ms = options.timeout_ms or declared.timeout_ms or self._config.task_timeout_ms
        task.traceparent = traceparent_of(task.task_options)
        task.soft_timeout_ms = options.soft_timeout_ms or declared.soft_timeout_ms
        if self._begun_slots is not None:
            task.slot = self._begun_slots.place(task.task_id)
        if task.stop is None:
            self.events.on_started(task)
            self._lanes[task.lane - 1].submit(task, self._done, task.pid or self._own_pid)
        else:
            self._done(task, NotBegun())

    def settle(self, task: HeldTask) -> None:
        """The end of this task is recorded."""
        if self._begun_slots is not None:
            self._begun_slots.release(task.slot)
        if self._is_paused:
            self._submit_some()

    def _done(self, call: Call, outcome: Outcome) -> None:
        task = self.running.pop(call.task_id)
        lane = self._lanes[task.lane - 1]
        lane.in_flight -= 1
        self._completer.add(judge(task, outcome, random=_random))
        if not isinstance(outcome, NotBegun):
            lane.is_stuck = False
            self.permits.ended(task)
        if isinstance(outcome, Delivered):
            lane.measure(task.task_name, outcome.duration_s, task.held_bytes)
            self._warn_if_large(task, outcome)
        self.events.on_slot_freed()
        successor = self._successors.pop(task.task_id, None)
        if successor is not None:
            self.running[task.task_id] = successor
            self._accept([successor])

    def stop(self, task_id: str, reason: StopReason) -> None:
        """End a running task; its outcome follows through its executor."""
        if successor := self._successors.get(task_id):
            successor.stop = successor.stop or reason
        if task := self.running.get(task_id):
            self._stop_run(task, reason)

    def _stop_run(self, task: HeldTask, reason: StopReason) -> None:
        if task.stop is None:
            task.stop = reason
            if self.permits.withdraw(task):
                self._done(task, NotBegun())
                return
            self._lanes[task.lane - 1].executor.stop(task.task_id)

    def interrupt(self) -> None:
        """Hand interruptible tasks back uncounted; the rest runs on."""
        ids = [
            task_id
            for task_id, task in self.running.items()
            if (definition := self._definition_of(task.task_name)) is not None
            and definition.interruptible
        ]
        if ids:
            _logger.info("%d interruptible tasks are handed back", len(ids))
        for task_id in ids:
            self.stop(task_id, "drain")

    def hand_back_waiting(self, *, longer_than_s: float) -> int:
        """Give back what has waited for its slot too long, behind something that takes its time."""
        if self.permits.are_urgent():
            self._completer.wake()
        oldest = monotonic() - longer_than_s
        crowded = {n for n, lane in enumerate(self._lanes, start=1) if lane.in_flight > lane.slots}
        if not crowded:
            return 0
        self._completer.wake()  # permits travel with ends; should none be due, they travel alone
        late = [
            task
            for task in self.running.values()
            if task.lane in crowded and task.held_since < oldest and task.stop is None
        ]
        withdrawn = 0
        for task in late:
            if self.withdraw(task):
                self._lanes[task.lane - 1].is_stuck = True
                withdrawn += 1
        return withdrawn

    def withdraw(self, task: HeldTask) -> bool:
        """Give a task back unless its code may have begun."""
        if self.permits.withdraw(task):
            self._done(task, NotBegun())
            return True
        return self._lanes[task.lane - 1].executor.withdraw(task.task_id)

    def slots(self) -> dict[str, dict[str, int]]:
        """How many attempts can run at once, and how many do, by kind."""
        return {
            lane.kind: {"slots": lane.slots, "busy": min(lane.in_flight, lane.slots)}
            for lane in self._lanes
        }

    def has_begun(self, task: HeldTask) -> bool:
        return self._lanes[task.lane - 1].executor.begun_at(task.task_id) is not None

    def is_alive(self, task: HeldTask) -> bool:
        """Whether the executor of a running task shows life, or the task waits for its permit."""
        return self.permits.is_waiting(task) or self._lanes[task.lane - 1].executor.is_alive(
            task.task_id
        )

    def _warn_if_large(self, task: HeldTask, outcome: Delivered) -> None:
        limit = self._config.payload_warn_bytes
        if limit and byte_count(outcome.result) > limit and task.task_name not in self._warned:
            self._warned.add(task.task_name)
            _logger.warning(
                "task %s returns results larger than payload_warn_bytes=%d; "
                "consider storing them elsewhere and returning a reference",
                task.task_name,
                limit,
            )
