"""What `why` needs to know of a task or a node, and what it says."""

from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple

from horsies.database.sql_files import query
from horsies.database.statement import Statement

AHEAD_LIMIT = 10_000


@dataclass(frozen=True, slots=True)
class Reason:
    """A rule that holds a task back, or what became of it, and what can be done about it."""

    rule: str
    text: str
    cure: str | None = None


class WhyTask(NamedTuple):
    id: str
    task_name: str
    queue_name: str
    status: str
    priority: int
    enqueued_at: datetime | None
    next_retry_at: datetime | None
    retry_count: int
    max_retries: int
    good_until: datetime | None
    is_held: bool
    claimed_at: datetime | None
    worker_id: str | None
    claim_expires_at: datetime | None
    started_at: datetime | None
    ended_at: datetime
    error_code: str | None
    failed_reason: str | None
    worker_hostname: str | None
    worker_pid: int | None
    cancel_requested_at: datetime | None
    workflow_id: str | None
    workflow_name: str | None
    workflow_status: str | None
    read_at: datetime


class Ahead(NamedTuple):
    better_count: int
    earlier_count: int


class KnownNames(NamedTuple):
    worker_id: str
    task_names: list[str]


class WhyNode(NamedTuple):
    workflow_id: str
    workflow_name: str
    workflow_status: str
    task_index: int
    node_id: str | None
    task_name: str
    kind: str
    status: str
    task_id: str | None
    dependencies: list[int]
    join_type: str
    wait_until: datetime | None
    event_name: str | None
    event_key: str | None
    sub_workflow_id: str | None
    sub_workflow_name: str | None
    sub_workflow_status: str | None
    max_in_flight: int | None
    read_at: datetime


def why_task(task_id: str) -> Statement[WhyTask]:
    return Statement(query("operations", "why_task"), {"task_id": task_id}, WhyTask)


def tasks_ahead(task: WhyTask) -> Statement[Ahead]:
    parameters = {
        "queue": task.queue_name,
        "priority": task.priority,
        "enqueued_at": task.enqueued_at,
        "task_id": task.id,
        "limit": AHEAD_LIMIT + 1,
    }
    return Statement(query("operations", "tasks_ahead"), parameters, Ahead)


def known_names(worker_ids: list[str]) -> Statement[KnownNames]:
    return Statement(query("operations", "known_names"), {"worker_ids": worker_ids}, KnownNames)


def why_node(workflow_id: str, node_id: str | None, indexes: list[int]) -> Statement[WhyNode]:
    parameters = {"workflow_id": workflow_id, "node_id": node_id, "indexes": indexes}
    return Statement(query("operations", "why_node"), parameters, WhyNode)
