"""The statements of a worker: claim, start, end, and show signs of life."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import NamedTuple

from horsies.database.functions import call
from horsies.database.sql_files import query
from horsies.database.statement import Receipt, Scalar, Statement
from horsies.worker.held_task import Completion, HeldTask
from horsies.worker.identity import WorkerIdentity


class FailReceipt(NamedTuple):
    task_id: str
    outcome: str
    retry_after_s: float | None


@dataclass(frozen=True, slots=True)
class Mark:
    """Where a worker's claims have come to in one queue, priority and lane."""

    enqueued_at: datetime
    id: str


@dataclass(frozen=True, slots=True)
class ClaimRequest:
    """What one claim pass may take.

    Lanes are numbered from 1; lane 1 runs in children with these pids.
    """

    identity: WorkerIdentity
    lease: timedelta
    queues: Sequence[str]
    queue_caps: Sequence[int | None]
    cluster_cap: int | None
    task_lanes: dict[str, int]
    lane_starts: Sequence[int]
    lane_claims: Sequence[int]
    sparse_lanes: Sequence[bool]
    child_pids: Sequence[int]
    batch_limit: int
    is_full_scan: bool
    counts_claims: bool
    marks: dict[tuple[str, int, int], Mark]


def claim_tasks(request: ClaimRequest) -> Statement[HeldTask]:
    """T2, and T4 at once for what has a free slot; rows in claim order."""
    keys, starts = _in_order(request)
    marks = [request.marks[key] for key in keys]
    return call(
        "claim_tasks",
        HeldTask,
        owner_id=request.identity.worker_id,
        hostname=request.identity.hostname,
        own_pid=request.identity.pid,
        lease=request.lease,
        is_full_scan=request.is_full_scan,
        counts_claims=request.counts_claims,
        batch_limit=request.batch_limit,
        queues=request.queues,
        queue_caps=request.queue_caps,
        cluster_cap=request.cluster_cap,
        task_names=request.task_lanes,
        task_lanes=request.task_lanes.values(),
        lane_starts=request.lane_starts,
        lane_claims=request.lane_claims,
        sparse_lanes=request.sparse_lanes,
        child_pids=request.child_pids,
        mark_starts=starts,
        mark_priorities=[priority for _, priority, _ in keys],
        mark_lanes=[lane for _, _, lane in keys],
        mark_times=[mark.enqueued_at for mark in marks],
        mark_ids=[mark.id for mark in marks],
    )


def _in_order(request: ClaimRequest) -> tuple[list[tuple[str, int, int]], list[int]]:
    """The marks' keys queue by queue, and where each queue's begin; the end is one more start."""
    by_queue: dict[str, list[tuple[str, int, int]]] = {queue: [] for queue in request.queues}
    for key in request.marks:
        by_queue[key[0]].append(key)
    keys: list[tuple[str, int, int]] = []
    starts = [1]
    for queue in request.queues:
        keys += sorted(by_queue[queue])
        starts.append(len(keys) + 1)
    return keys, starts


def next_due(queues: Sequence[str]) -> Statement[Scalar]:
    """Seconds until a waiting row of these queues becomes claimable, or `None`."""
    return call("next_due", Scalar, queues=queues)


def start_tasks(
    identity: WorkerIdentity, tasks: Sequence[HeldTask], pids: Sequence[int]
) -> Statement[Receipt]:
    """T4 (or T11) for claims from the buffer."""
    return call(
        "start_tasks",
        Receipt,
        owner_id=identity.worker_id,
        hostname=identity.hostname,
        task_ids=[task.task_id for task in tasks],
        claims=[task.claim for task in tasks],
        attempts=[task.attempt for task in tasks],
        pids=pids,
    )


def return_tasks(owner_id: str, tasks: Sequence[HeldTask]) -> Statement[Receipt]:
    """T13: claims given back unstarted."""
    ordered = sorted(tasks, key=lambda task: task.task_id)
    return call(
        "return_tasks",
        Receipt,
        owner_id=owner_id,
        task_ids=[task.task_id for task in ordered],
        claims=[task.claim for task in ordered],
    )


def complete_tasks(owner_id: str, completions: Sequence[Completion]) -> Statement[Receipt]:
    """T6; only refusals come back."""
    results = [c.result for c in completions]
    return call("complete_tasks", Receipt, **_claims(owner_id, completions), results=results)


def fail_tasks(owner_id: str, completions: Sequence[Completion]) -> Statement[FailReceipt]:
    """T7 or T8; the database's clock decides about the retry."""
    return call(
        "fail_tasks",
        FailReceipt,
        **_claims(owner_id, completions),
        results=[c.result for c in completions],
        error_codes=[c.error_code for c in completions],
        error_messages=[c.error_message for c in completions],
        failed_reasons=[c.failed_reason for c in completions],
        outcomes=[c.attempt_outcome for c in completions],
        retry_delays=[c.retry_delay_s for c in completions],
    )


def cancel_running_tasks(owner_id: str, completions: Sequence[Completion]) -> Statement[Receipt]:
    """T16 for runs that were stopped on request."""
    return call(
        "cancel_running_tasks",
        Receipt,
        **_claims(owner_id, completions),
        results=[c.result for c in completions],
        error_messages=[c.error_message for c in completions],
    )


def interrupt_tasks(owner_id: str, completions: Sequence[Completion]) -> Statement[Receipt]:
    """T17: back to PENDING, no attempt counted."""
    return call("interrupt_tasks", Receipt, **_claims(owner_id, completions))


def _claims(owner_id: str, completions: Sequence[Completion]) -> dict[str, object]:
    """The fence: who ends which claim of which attempt."""
    return {
        "owner_id": owner_id,
        "task_ids": [c.task.task_id for c in completions],
        "claims": [c.task.claim for c in completions],
        "attempts": [c.task.attempt for c in completions],
    }


class RenumberedAttempt(NamedTuple):
    task_id: str
    attempt: int


def renumber_attempts(
    owner_id: str, completions: Sequence[Completion]
) -> Statement[RenumberedAttempt]:
    """The next free attempt number of claims whose own is taken."""
    return call("renumber_attempts", RenumberedAttempt, **_claims(owner_id, completions))


def unlocked_tasks(task_ids: Sequence[str]) -> Statement[Scalar]:
    """Those of these tasks that nobody else has locked."""
    return call("unlocked_tasks", Scalar, task_ids=task_ids)


def notify_capacity(completions: Sequence[Completion]) -> Statement[Scalar]:
    """Wake workers that wait for a place under a cap."""
    return call("notify_capacity", Scalar, task_ids=[c.task.task_id for c in completions])


def store_logs(completions: Sequence[Completion]) -> Statement[Scalar]:
    """Captured output of attempts ended in this transaction."""
    return call(
        "store_logs",
        Scalar,
        task_ids=[c.task.task_id for c in completions],
        attempts=[c.task.attempt for c in completions],
        logs=[c.log for c in completions],
        truncated=[c.log_truncated for c in completions],
    )


@dataclass(frozen=True, slots=True)
class Beat:
    """What a worker owes signs of life for, each list sorted by id."""

    claimed_ids: Sequence[str]
    running: Sequence[tuple[str, int]]
    finalizing_ids: Sequence[str]


def beat(
    identity: WorkerIdentity, lease: timedelta, renew_age: timedelta, owed: Beat
) -> Statement[Scalar]:
    return call(
        "beat",
        Scalar,
        owner_id=identity.worker_id,
        hostname=identity.hostname,
        own_pid=identity.pid,
        lease=lease,
        renew_age=renew_age,
        claimed_ids=owed.claimed_ids,
        running_ids=[task_id for task_id, _ in owed.running],
        running_pids=[pid for _, pid in owed.running],
        finalizing_ids=owed.finalizing_ids,
    )


def insert_worker_state(columns: Mapping[str, object]) -> Statement[Scalar]:
    return Statement(query("worker", "insert_worker_state"), columns, Scalar)


def hold_worker_lock(worker_id: str) -> Statement[Scalar]:
    """Try to hold the lock that proves, as long as the session lives, that the worker does."""
    return Statement(query("worker", "hold_worker_lock"), {"worker_id": worker_id}, Scalar)


def cancel_requests(worker_id: str) -> Statement[Scalar]:
    """Running tasks of this worker that someone asked to end."""
    return Statement(query("worker", "cancel_requests"), {"worker_id": worker_id}, Scalar)
