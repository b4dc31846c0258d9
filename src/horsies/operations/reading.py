"""The statements that show queues, workers and single tasks to people."""

from datetime import datetime, timedelta
from typing import NamedTuple

from horsies.database.sql_files import query
from horsies.database.statement import Statement


class TaskRow(NamedTuple):
    args: str | None
    kwargs: str | None
    task_options: str | None
    claimed_by_worker_id: str | None
    claim_expires_at: datetime | None
    cancel_requested_at: datetime | None
    created_at: datetime
    updated_at: datetime
    is_held: bool
    is_workflow_task: bool
    workflow_id: str | None
    node_id: str | None
    workflow_name: str | None
    workflow_status: str | None
    read_at: datetime
    schedule_name: str | None


class TaskLog(NamedTuple):
    """What one attempt wrote."""

    attempt: int
    log: str
    is_truncated: bool
    created_at: datetime


class Backlog(NamedTuple):
    queue_name: str
    due_count: int
    later_count: int
    oldest_due_at: datetime | None
    next_due_at: datetime | None
    read_at: datetime


class InFlightCount(NamedTuple):
    queue_name: str
    running_count: int
    claimed_count: int


class RecentEnds(NamedTuple):
    """How the tasks of a queue or of one name ended lately; seconds, at 50, 95 and 99 %."""

    name: str
    completed_count: int
    failed_count: int
    expired_count: int
    start_latencies: list[float] | None
    run_times: list[float] | None
    per_minute: float


class WorkerRow(NamedTuple):
    worker_id: str
    hostname: str
    pid: int
    processes: int
    queues: list[str]
    tasks_running: int
    tasks_claimed: int
    memory_usage_mb: float | None
    children_memory_mb: float | None
    cpu_percent: float | None
    worker_started_at: datetime
    snapshot_at: datetime
    cluster_wide_cap: int | None
    queue_max_concurrency: dict[str, int | None] | None
    is_gone: bool
    read_at: datetime
    is_draining: bool
    version: str | None
    slots: dict[str, dict[str, int]] | None

    @property
    def slot_count(self) -> int:
        """How many attempts it can run at once; one of release 0.2 tells only its processes."""
        return sum(k.get("slots", 0) for k in self.slots.values()) if self.slots else self.processes


class InFlightTask(NamedTuple):
    """A task that a worker holds."""

    id: str
    task_name: str
    queue_name: str
    status: str
    worker_id: str | None
    started_at: datetime | None


def task_row(task_id: str) -> Statement[TaskRow]:
    return Statement(query("operations", "task_row"), {"task_id": task_id}, TaskRow)


def task_logs(task_id: str) -> Statement[TaskLog]:
    return Statement(query("operations", "task_logs"), {"task_id": task_id}, TaskLog)


def queue_backlogs(count_limit: int) -> Statement[Backlog]:
    return Statement(query("operations", "queue_backlogs"), {"count_limit": count_limit}, Backlog)


def in_flight_by_queue(row_limit: int) -> Statement[InFlightCount]:
    return Statement(
        query("operations", "in_flight_by_queue"), {"row_limit": row_limit}, InFlightCount
    )


def recent_ends(by: str, window: timedelta, row_limit: int) -> Statement[RecentEnds]:
    parameters = {"by": by, "window": window, "row_limit": row_limit}
    return Statement(query("operations", "recent_ends"), parameters, RecentEnds)


def workers(window: timedelta) -> Statement[WorkerRow]:
    return Statement(query("operations", "workers"), {"window": window}, WorkerRow)


def tasks_in_flight(row_limit: int) -> Statement[InFlightTask]:
    return Statement(query("operations", "tasks_in_flight"), {"row_limit": row_limit}, InFlightTask)


ALIVE_WITHIN = timedelta(seconds=30)


class QueueControl(NamedTuple):
    """A queue that is paused or limited at run time."""

    queue_name: str
    paused_at: datetime | None
    paused_by: str | None
    pause_reason: str | None
    max_concurrency: int | None


def controls() -> Statement[QueueControl]:
    return Statement(query("operations", "queue_controls"), {}, QueueControl)


class WorkflowCount(NamedTuple):
    status: str
    number: int


def workflow_counts() -> Statement[WorkflowCount]:
    return Statement(query("operations", "workflow_counts"), {}, WorkflowCount)
