"""Lanes: the execution kinds of an app, as the claim statement sees them.

Lane 1 is `process`, the kind of every name this worker does not know. An app whose only kind is
another has that one lane and no names to compare: an unknown name never runs, so it holds a slot
of whatever kind for one statement only.
"""

from collections.abc import Mapping
from typing import Literal, TypeAlias

from horsies.executors.base import Call, Done, Executor
from horsies.executors.processes import ProcessExecutor

Kind: TypeAlias = Literal["process", "async", "blocking"]
_ORDER: tuple[Kind, ...] = ("process", "async", "blocking")

# Adaptive prefetch: a slot is handed about this much work, and never more calls than this.
_HORIZON_S = 0.05
_MAX_DEPTH = 64
# Large arguments and results are not taken ahead: about so many bytes beside those of the slots.
_MAX_BYTES = 64_000_000
_WORTH_A_CLAIM = 0.25
# How quickly the measured duration and size follow: about the last twenty tasks count.
_WEIGHT = 0.05


class Lane:
    """One kind's executor, and how much it may take now."""

    def __init__(self, kind: Kind, executor: Executor, slots: int) -> None:
        self.kind = kind
        self.slots = slots
        self.executor = executor
        self.in_flight = 0
        self._mean_s: float | None = None
        self._mean_bytes = 1.0

    def room(self, *, may_prefetch: bool) -> int:
        """How many more tasks may start now: the free slots.

        And what they work off within the horizon.
        """
        depth = self._depth() if may_prefetch else 1
        if isinstance(self.executor, ProcessExecutor):
            self.executor.depth = depth
        capacity = self.slots * depth
        room = capacity - self.in_flight
        # Slots are busy and have work waiting: a claim for a few rows costs as much as for many.
        if self.in_flight > self.slots and room < capacity * _WORTH_A_CLAIM:
            return 0
        return max(0, room)

    def _depth(self) -> int:
        if self._mean_s is None:
            return 1
        by_time = _HORIZON_S / max(self._mean_s, 1e-6)
        by_size = _MAX_BYTES / (self.slots * self._mean_bytes)
        return max(1, int(min(_MAX_DEPTH, by_time, by_size)))

    def measure(self, duration_s: float, size: int) -> None:
        """Learn from a task that ended: how long it ran, how many bytes it carried."""
        mean = self._mean_s
        self._mean_s = duration_s if mean is None else mean + _WEIGHT * (duration_s - mean)
        self._mean_bytes = max(size, self._mean_bytes + _WEIGHT * (size - self._mean_bytes))

    def pids(self, count: int, own_pid: int) -> list[int]:
        """Where the next tasks will run: pids of children, or the worker itself."""
        if isinstance(self.executor, ProcessExecutor):
            return self.executor.plan(count)
        return [own_pid] * count

    def submit(self, call: Call, done: Done, pid: int | None) -> None:
        if isinstance(self.executor, ProcessExecutor):
            self.executor.submit(call, done, pid)
        else:
            self.executor.submit(call, done)


def lane_names(kinds: Mapping[str, Kind]) -> tuple[list[Kind], dict[str, int]]:
    """The kinds in lane order, and the lane of each name that is not of lane 1."""
    present: list[Kind] = [kind for kind in _ORDER if kind in set(kinds.values())]
    if len(present) <= 1:
        return present or ["async"], {}
    if "process" not in present:
        present.insert(0, "process")
    numbers = {kind: number for number, kind in enumerate(present, start=1)}
    return present, {
        name: numbers[kind] for name, kind in sorted(kinds.items()) if numbers[kind] != 1
    }
