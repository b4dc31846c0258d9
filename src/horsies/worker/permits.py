"""Permits: which tasks taken ahead of their turn may begin (decision 0011).

They are RUNNING before a slot is free for them. Each bears a number, and begins only when a
committed permit covers it: after the loss of a host, others know which cannot have begun.
"""

from collections.abc import Sequence
from dataclasses import replace
from itertools import islice
from typing import NamedTuple

from horsies.worker.claim_request import LaneRequest, PermitRequest
from horsies.worker.held_task import HeldTask
from horsies.worker.lanes import Lane

# Each lane numbers what it takes ahead in a range of its own: lanes begin in no common order.
_LANE_BITS = 56
# A permit reaches as far as the slots may get during the next four writes, by what ended during the
# last one, and is renewed when half of that is used up (decision 0011).
_WRITES_AHEAD = 4
_SHRINKS_BY = 8


class Admitted(NamedTuple):
    """What a permit changes: tasks that may begin now, and tasks that recovery has taken back."""

    permitted: list[HeldTask]
    voided: list[HeldTask]


class _LanePermits:
    """What one lane has taken ahead."""

    def __init__(self, lane: Lane, index: int) -> None:
        self._lane = lane
        self._reach = lane.slots
        self._last_number = index << _LANE_BITS
        self.permitted = self._last_number
        self.waiting: dict[str, HeldTask] = {}  # by id, in the order of their numbers
        self.ended_count = 0

    def has_free(self, count: int) -> bool:
        """Whether so many need no numbers: slots are free for them, or all are over in a moment."""
        return self._lane.is_brief or count <= max(0, self._lane.slots - self._lane.in_flight)

    def number(self, starts: int) -> tuple[int, int, int]:
        """For a claim of so many: free slots, the first number behind them, and what to permit."""
        lane = self._lane
        free = starts if self.has_free(starts) else max(0, lane.slots - lane.in_flight)
        ahead = starts - free
        first = self._last_number + 1
        self._last_number += ahead
        if self.waiting or not ahead:
            return free, first, self.due()
        return free, first, first - 1 + max(0, min(ahead, self._room() - free))

    def learn(self) -> None:
        """A write begins: what ended since the last one says how far the next must reach."""
        ended, self.ended_count = self.ended_count, 0
        shrunk = self._reach - self._reach // _SHRINKS_BY
        self._reach = max(self._lane.slots, _WRITES_AHEAD * ended, shrunk)

    def due(self) -> int:
        """Up to which number a permit should reach now."""
        room = self._room()
        if not self.waiting or 2 * room < self._reach:
            return self.permitted
        room = min(room, len(self.waiting))
        return next(islice(self.waiting.values(), room - 1, None)).ahead_number or self.permitted

    def _room(self) -> int:
        """How many may still be handed to the executor, which has the others."""
        return self._lane.slots + self._reach - self._handed_count()

    def _handed_count(self) -> int:
        return self._lane.in_flight - len(self.waiting)

    def is_idle(self) -> bool:
        """Whether slots are free while tasks wait: no end need come that would bring a permit."""
        return bool(self.waiting) and self._handed_count() < self._lane.slots

    def admit(self, permitted: int, voided: int) -> Admitted:
        admitted = Admitted([], [])
        self.permitted = max(self.permitted, permitted)
        for task in list(self.waiting.values()):
            number = task.ahead_number or 0
            if number <= voided:
                admitted.voided.append(task)
            elif number <= self.permitted:
                admitted.permitted.append(task)
            else:
                break
            del self.waiting[task.task_id]
        return admitted


class _Series:
    """The permits that one connection writes: each replaces the one before."""

    def __init__(self, granted_by: str) -> None:
        self._granted_by = granted_by
        self._number = 0
        self.granted_number = 0

    def next(self, permitted: Sequence[int]) -> PermitRequest:
        self._number += 1
        return PermitRequest(self._granted_by, self._number, self.granted_number, permitted)


class Permits:
    """The permits of a worker: two connections write them, each lane has its own numbers."""

    def __init__(self, lanes: Sequence[Lane]) -> None:
        self._lanes = [_LanePermits(lane, index) for index, lane in enumerate(lanes)]
        self._series = {name: _Series(name) for name in ("claim", "finish")}

    def for_claim(
        self, requests: Sequence[LaneRequest]
    ) -> tuple[list[LaneRequest], PermitRequest | None]:
        """Number what the lanes of a claim may take ahead, and make its permit, if they may."""
        if all(lane.has_free(one.starts) for lane, one in zip(self._lanes, requests, strict=True)):
            return list(requests), None
        numbered: list[LaneRequest] = []
        permitted: list[int] = []
        for lane, request in zip(self._lanes, requests, strict=True):
            free_slots, ahead_from, number = lane.number(request.starts)
            numbered.append(replace(request, free_slots=free_slots, ahead_from=ahead_from))
            permitted.append(number)
        series = self._series["claim"]
        is_known = series.granted_number > 0 and permitted == [one.permitted for one in self._lanes]
        return numbered, None if is_known else series.next(permitted)

    def for_ends(self) -> PermitRequest | None:
        """The permit that a write of ends carries, if something waits for one."""
        for lane in self._lanes:
            lane.learn()
        return self.for_waiting()

    def for_waiting(self) -> PermitRequest | None:
        """The permit for what waits, if there is any and more of it may be handed out."""
        permitted = [lane.due() for lane in self._lanes]
        if permitted == [lane.permitted for lane in self._lanes]:
            return None
        return self._series["finish"].next(permitted)

    def are_urgent(self) -> bool:
        """Whether a permit must not wait for the next write of ends: there may be none."""
        return any(lane.is_idle() for lane in self._lanes)

    def may_begin(self, task: HeldTask) -> bool:
        """Whether a task that was just taken may begin; if not, it waits here for its permit."""
        lane = self._lanes[task.lane - 1]
        if task.ahead_number is None or task.ahead_number <= lane.permitted:
            return True
        lane.waiting[task.task_id] = task
        return False

    def grant(self, request: PermitRequest, voided: Sequence[int | None]) -> Admitted:
        """A permit is committed; up to the numbers `voided`, recovery has taken rows back."""
        series = self._series[request.granted_by]
        series.granted_number = max(series.granted_number, request.number)
        admitted = Admitted([], [])
        for index, lane in enumerate(self._lanes):
            limit = voided[index] if index < len(voided) else None
            lane_admitted = lane.admit(request.permitted[index], -1 if limit is None else limit)
            admitted.permitted.extend(lane_admitted.permitted)
            admitted.voided.extend(lane_admitted.voided)
        return admitted

    def ended(self, task: HeldTask) -> None:
        """User code of this task has ended."""
        self._lanes[task.lane - 1].ended_count += 1

    def is_waiting(self, task: HeldTask) -> bool:
        return task.task_id in self._lanes[task.lane - 1].waiting

    def withdraw(self, task: HeldTask) -> bool:
        """Whether this task waited for its permit; it does no more."""
        return self._lanes[task.lane - 1].waiting.pop(task.task_id, None) is not None

    def withdraw_all(self) -> list[HeldTask]:
        """All that waits for a permit; it does no more."""
        tasks = [task for lane in self._lanes for task in lane.waiting.values()]
        for lane in self._lanes:
            lane.waiting.clear()
        return tasks
