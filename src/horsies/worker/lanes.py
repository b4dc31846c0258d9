"""Lanes: the execution kinds of an app, as the claim statement sees them.

The first is `process`, the kind of every name this worker does not know. An app whose only kind is
another has that one lane and no names to compare: an unknown name never runs, so it holds a slot
of whatever kind for one statement only.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from horsies.app import Horsies
from horsies.executors.base import Call, CaptureSettings, Done, Executor
from horsies.executors.in_loop import InLoopExecutor
from horsies.executors.processes import ProcessExecutor
from horsies.executors.threads import ThreadExecutor
from horsies.recovery.begun_slots import BegunSlots
from horsies.tasks.checks import EXECUTIONS, Execution
from horsies.worker.child_main import AppDefinitions, child_command
from horsies.worker.claim_request import MAX_BYTES
from horsies.worker.settings import WorkerConfig

# Adaptive prefetch: a slot is handed about this much work, and never more calls than this; the
# lanes of a worker together never hold more than a thousand beside those their slots are at, since
# brief ones count as begun when their host is lost (decision 0011).
HORIZON_S = 0.05
_MAX_DEPTH = 64
_MAX_AHEAD = 1_000
_WORTH_A_CLAIM = 0.25
# How quickly the measured duration and size follow: about the last twenty tasks count.
_WEIGHT = 0.05
_MAX_NAMES = 1_000


class Lane:
    """One kind's executor, and how much it may take now."""

    def __init__(
        self, kind: Execution, executor: Executor, slots: int, *, ahead_limit: int = _MAX_AHEAD
    ) -> None:
        self.kind = kind
        self.slots = slots
        self._ahead_limit = ahead_limit
        self.executor = executor
        self.is_started = False
        self.in_flight = 0
        # Its slots were busy for too long: nothing is taken ahead until one of them is free again,
        # else what was handed back is claimed once more before an idle worker has woken.
        self.is_stuck = False
        self._mean_s: dict[str, float] = {}  # by task name
        self._slowest_s: float | None = None
        self._mean_bytes = 1.0

    async def start(self) -> None:
        """Have its executor ready; until then nothing of its kind may wait here."""
        await self.executor.start()
        self.is_started = True

    def room(self, *, may_prefetch: bool) -> int:
        """How many more tasks may start now: free slots, and what they do within the horizon."""
        depth = self._depth() if may_prefetch and not self.is_stuck else 1
        if isinstance(self.executor, ProcessExecutor):
            self.executor.depth = depth
        capacity = min(self.slots * depth, self.slots + self._ahead_limit)
        room = capacity - self.in_flight
        # Slots are busy and have work waiting: a claim for a few rows costs as much as for many.
        if self.in_flight > self.slots and room < capacity * _WORTH_A_CLAIM:
            return 0
        return max(0, room)

    def _depth(self) -> int:
        if self._slowest_s is None:
            return 1
        by_time = HORIZON_S / max(self._slowest_s, 1e-6)
        # Large arguments and results are not taken ahead.
        by_size = MAX_BYTES / (self.slots * self._mean_bytes)
        return max(1, int(min(_MAX_DEPTH, by_time, by_size)))

    @property
    def is_brief(self) -> bool:
        """Whether its tasks take so little time that not even a full slot lasts for the horizon."""
        return self._slowest_s is not None and self._slowest_s * _MAX_DEPTH <= HORIZON_S

    def may_wait(self, task_name: str) -> bool:
        """Whether a task of this name may wait behind others: only if it is known to be short."""
        return self._mean_s.get(task_name, HORIZON_S + 1) <= HORIZON_S

    def measure(self, task_name: str, duration_s: float, size: int) -> None:
        """Learn from a task that ended: how long it ran, how many bytes it carried."""
        known = self._mean_s.get(task_name, duration_s)
        if len(self._mean_s) >= _MAX_NAMES:  # the one not seen for longest is forgotten
            self._mean_s.pop(task_name if task_name in self._mean_s else next(iter(self._mean_s)))
        mean = self._mean_s[task_name] = known + _WEIGHT * (duration_s - known)
        # What is long or large counts at once, and is forgotten by and by.
        slowest = mean if self._slowest_s is None else self._slowest_s
        self._slowest_s = mean if mean >= slowest else slowest + _WEIGHT * (mean - slowest)
        largest = self._mean_bytes
        self._mean_bytes = size if size >= largest else largest + _WEIGHT * (size - largest)

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


class LaneNames(NamedTuple):
    """The task names of a lane: only these, or all but these; neither for all."""

    only_names: list[str] | None = None
    except_names: list[str] | None = None


@dataclass(frozen=True, slots=True)
class Lanes:
    """The lanes of a worker, and the task names of each; the first has the unknown ones, too."""

    all: list[Lane]
    names: list[LaneNames]
    own_names: LaneNames  # of the first lane, before names were left out

    def leave_out(self, names: Collection[str]) -> None:
        """Claim all unknown names but these, from now on."""
        if self.own_names.only_names is None:
            others = sorted({*(self.own_names.except_names or ()), *names})
            self.names[0] = LaneNames(except_names=others or None)

    @property
    def has_abandoned(self) -> bool:
        """Whether a coroutine that ignores its cancellation still holds the event loop."""
        return any(
            isinstance(lane.executor, InLoopExecutor) and lane.executor.abandoned_count
            for lane in self.all
        )


def make_lanes(
    app: Horsies, settings: WorkerConfig, begun_slots: BegunSlots | None, worker_id: str
) -> Lanes:
    """A lane with its executor for each kind of task the app has."""
    kinds: dict[str, Execution] = {
        name: task.definition.execution for name, task in app.tasks.items()
    }
    present = _lane_kinds(kinds)
    if app.resolver is not None and "process" not in present:
        present = _only_present(kinds)
        present.insert(0, "process")
    config = app.config
    capture = CaptureSettings(
        config.capture_task_output, config.task_log_max_bytes, settings.echoes_output
    )
    definitions = AppDefinitions(app, begun_slots, worker_id)
    lanes: list[Lane] = []
    for kind in present:
        executor: Executor
        slots = settings.concurrency
        has_children = kind == "process" and (kind in kinds.values() or app.resolver is not None)
        if has_children and not settings.is_in_process:
            slots = settings.processes
            executor = ProcessExecutor(
                slots,
                bootstrap=child_command(
                    settings.app_locator, worker_id, has_begun_slots=begun_slots is not None
                ),
                max_tasks_per_child=settings.max_tasks_per_child,
                max_memory_per_child_mb=settings.max_memory_per_child_mb,
                capture=capture,
                grace_seconds=settings.grace_s,
                begun=begun_slots,
            )
        elif kind == "blocking" or has_children:
            slots = settings.thread_count
            executor = ThreadExecutor(definitions, slots, capture=capture)
        else:
            # Also lane 1 of an app without process tasks: unknown names only get their error here.
            executor = InLoopExecutor(definitions, slots, capture=capture)
        lanes.append(Lane(kind, executor, slots, ahead_limit=_MAX_AHEAD // len(present)))
    names = _lane_names(present, kinds)
    if config.unknown_tasks == "leave":
        names[0] = LaneNames(
            only_names=sorted(n for n, kind in kinds.items() if kind == present[0])
        )
    return Lanes(lanes, names, names[0])


def _only_present(kinds: Mapping[str, Execution]) -> list[Execution]:
    return [kind for kind in EXECUTIONS if kind in set(kinds.values())]


def _lane_kinds(kinds: Mapping[str, Execution]) -> list[Execution]:
    present = _only_present(kinds)
    if len(present) > 1 and "process" not in present:
        present.insert(0, "process")
    return present or ["async"]


def _lane_names(present: list[Execution], kinds: Mapping[str, Execution]) -> list[LaneNames]:
    if len(present) == 1:
        return [LaneNames()]
    first, *others = present
    return [
        LaneNames(except_names=sorted(name for name, kind in kinds.items() if kind != first)),
        *(
            LaneNames(only_names=sorted(name for name, kind in kinds.items() if kind == own))
            for own in others
        ),
    ]
