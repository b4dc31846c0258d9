"""How queues, task names and workers are doing: backlog, rates, latencies, who runs what."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from horsies.operations.listing import COUNT_LIMIT, TaskCount, bounded
from horsies.operations.reading import (
    ALIVE_WITHIN,
    Backlog,
    InFlightCount,
    InFlightTask,
    QueueControl,
    RecentEnds,
    WorkerRow,
    controls,
    in_flight_by_queue,
    queue_backlogs,
    recent_ends,
    tasks_in_flight,
    workers,
    workflow_counts,
)
from horsies.operations.steps import Steps

HOUR = timedelta(hours=1)
HALF_MINUTE = timedelta(seconds=30)
_IN_FLIGHT_READ = 20_000
# Of each ended state; 10,000 rows are read in about 20 ms.
_ENDS_READ = 10_000


@dataclass(frozen=True, slots=True)
class Pace:
    """How tasks ended within the window, or the part of it that the last ones fill.

    Latencies and run times are seconds at 50, 95 and 99 %; empty where none was measured.
    """

    completed_count: int
    failed_count: int
    expired_count: int
    per_minute: float
    start_latencies: list[float]
    run_times: list[float]


IDLE = Pace(0, 0, 0, 0.0, [], [])


@dataclass(frozen=True, slots=True)
class QueueInfo:
    """A queue: what is due, what waits for its time, what runs, who serves it."""

    name: str
    due: TaskCount
    later: TaskCount
    oldest_due_at: datetime | None
    next_due_at: datetime | None
    running_count: int
    claimed_count: int
    worker_count: int
    max_concurrency: int | None
    pace: Pace
    read_at: datetime | None
    control: QueueControl | None = None

    @property
    def waiting_for(self) -> timedelta | None:
        """How long the oldest due task has waited."""
        if self.oldest_due_at is None or self.read_at is None:
            return None
        return self.read_at - self.oldest_due_at


@dataclass(frozen=True, slots=True)
class TaskStats:
    """How the tasks of one name ended lately."""

    name: str
    pace: Pace


@dataclass(frozen=True, slots=True)
class WorkerInfo:
    """A worker by its last snapshot. `state` is alive, silent (no snapshot for 30 s) or gone."""

    snapshot: WorkerRow
    state: str
    tasks: list[InFlightTask] = field(default_factory=list[InFlightTask])


@dataclass(frozen=True, slots=True)
class SystemStatus:
    """The whole system at a glance."""

    queues: list[QueueInfo]
    workers: list[WorkerInfo]
    active_workflows: dict[str, int]
    pace: Pace


def queues_steps(window: timedelta, configured: Sequence[str]) -> Steps[list[QueueInfo]]:
    """All queues that the app, a worker or a task knows, by name."""
    backlogs: list[Backlog] = yield queue_backlogs(COUNT_LIMIT + 1)
    in_flight: list[InFlightCount] = yield in_flight_by_queue(_IN_FLIGHT_READ)
    ends: list[RecentEnds] = yield recent_ends("queue", window, _ENDS_READ)
    seen: list[WorkerRow] = yield workers(ALIVE_WITHIN)
    controlled: list[QueueControl] = yield controls()
    control = {row.queue_name: row for row in controlled}
    waiting = {row.queue_name: row for row in backlogs}
    held = {row.queue_name: row for row in in_flight}
    paces = {row.name: _pace(row) for row in ends}
    alive = [row for row in seen if not row.is_gone]
    served = {name for row in alive for name in row.queues}
    names = {*configured, *waiting, *held, *paces, *served, *control}
    found = (
        _queue(name, waiting.get(name), held.get(name), alive, paces.get(name, IDLE))
        for name in sorted(names)
    )
    return [_controlled(queue, control.get(queue.name)) for queue in found]


def task_stats_steps(window: timedelta) -> Steps[list[TaskStats]]:
    ends: list[RecentEnds] = yield recent_ends("task", window, _ENDS_READ)
    return [TaskStats(row.name, _pace(row)) for row in ends]


def workers_steps(window: timedelta) -> Steps[list[WorkerInfo]]:
    """Workers that were seen within the window, with what each holds."""
    rows: list[WorkerRow] = yield workers(max(window, ALIVE_WITHIN))
    held: list[InFlightTask] = yield tasks_in_flight(_IN_FLIGHT_READ)
    tasks: dict[str | None, list[InFlightTask]] = {}
    for task in held:
        tasks.setdefault(task.worker_id, []).append(task)
    return [WorkerInfo(row, state_of(row), tasks.get(row.worker_id, [])) for row in rows]


def status_steps(window: timedelta, configured: Sequence[str]) -> Steps[SystemStatus]:
    found = yield from queues_steps(window, configured)
    seen = yield from workers_steps(timedelta(minutes=5))
    counts: list[tuple[str, int]] = yield workflow_counts()
    paces = [queue.pace for queue in found]
    total = Pace(
        sum(pace.completed_count for pace in paces),
        sum(pace.failed_count for pace in paces),
        sum(pace.expired_count for pace in paces),
        sum(pace.per_minute for pace in paces),
        [],
        [],
    )
    return SystemStatus(found, seen, dict(counts), total)


def state_of(row: WorkerRow) -> str:
    if row.is_gone:
        return "gone"
    return "alive" if row.read_at - row.snapshot_at <= ALIVE_WITHIN else "silent"


def _queue(
    name: str,
    waiting: Backlog | None,
    held: InFlightCount | None,
    alive: Sequence[WorkerRow],
    pace: Pace,
) -> QueueInfo:
    serving = [row for row in alive if name in row.queues]
    caps = [(row.queue_max_concurrency or {}).get(name) for row in serving]
    return QueueInfo(
        name,
        bounded(waiting.due_count if waiting else 0),
        bounded(waiting.later_count if waiting else 0),
        waiting and waiting.oldest_due_at,
        waiting and waiting.next_due_at,
        held.running_count if held else 0,
        held.claimed_count if held else 0,
        len(serving),
        min((cap for cap in caps if cap is not None), default=None),
        pace,
        waiting and waiting.read_at,
    )


def _controlled(queue: QueueInfo, control: QueueControl | None) -> QueueInfo:
    if control is None:
        return queue
    cap = queue.max_concurrency if control.max_concurrency is None else control.max_concurrency
    return replace(queue, control=control, max_concurrency=cap)


def _pace(row: RecentEnds) -> Pace:
    return Pace(
        row.completed_count,
        row.failed_count,
        row.expired_count,
        row.per_minute,
        row.start_latencies or [],
        row.run_times or [],
    )
