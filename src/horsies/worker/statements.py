"""The statements of a worker: claim, start, end, and show signs of life."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from operator import attrgetter
from typing import Any, NamedTuple

from horsies.database.functions import call
from horsies.database.sql_files import query
from horsies.database.statement import Receipt, Scalar, Statement
from horsies.executors.base import Progress
from horsies.worker.claim_request import (
    ClaimRequest,
    ClaimRow,
    Counts,
    CutShort,
    Granted,
    PermitRequest,
    ScanPosition,
)
from horsies.worker.held_task import Completion, HeldTask
from horsies.worker.identity import WorkerIdentity

_TASK_COLUMNS = 15  # of a claimed row: the parameters of HeldTask


class FailReceipt(NamedTuple):
    task_id: str
    outcome: str
    retry_after_s: float | None


def claim_tasks(request: ClaimRequest) -> Statement[HeldTask | ClaimRow]:
    """T2, and T4 at once for what has a free slot."""
    return call(
        "claim_tasks_v2",
        _claim_row,
        owner_id=request.identity.worker_id,
        hostname=request.identity.hostname,
        own_pid=request.identity.pid,
        lease=request.lease,
        queues=_queues_with_marks(request),
        lanes=request.lanes,
        limits=request.limits,
        is_full_scan=request.is_full_scan,
        permit=request.permit,
    )


def in_claim_order(rows: Sequence[HeldTask | ClaimRow]) -> list[HeldTask]:
    """The tasks that a claim has answered; it answers them in no order."""
    return sorted((row for row in rows if isinstance(row, HeldTask)), key=attrgetter("position"))


def _queues_with_marks(request: ClaimRequest) -> list[dict[str, object]]:
    """The queues with their marks by priority, the priorities in order."""
    marks: dict[str, dict[int, dict[int, object]]] = {queue.name: {} for queue in request.queues}
    for (queue_name, priority, lane), mark in request.marks.items():
        if queue_name in marks:
            marks[queue_name].setdefault(priority, {})[lane] = {
                "enqueued_at": mark.enqueued_at,
                "id": mark.id,
            }
    return [
        {
            "name": queue.name,
            "cap": queue.cap,
            "marks": [
                {"priority": priority, "lanes": by_lane}
                for priority, by_lane in sorted(marks[queue.name].items())
            ],
        }
        for queue in request.queues
    ]


def _claim_row(*columns: Any) -> HeldTask | ClaimRow:
    """Only tasks have an id; tasks and positions have a queue, a priority and a lane."""
    task_id, queue_name, counts, voided = columns[0], columns[1], columns[-2], columns[-1]
    if task_id is not None:
        return HeldTask(*columns[:_TASK_COLUMNS])
    if queue_name is not None:
        return ScanPosition(*columns[1:4], *columns[_TASK_COLUMNS:-2])
    if voided is not None:
        return Granted(voided)
    return CutShort() if counts is None else Counts(counts)


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


def start_one(task_id: str, identity: WorkerIdentity) -> Statement[HeldTask]:
    """T2 and T4 for one task by its id."""
    return call(
        "start_one",
        HeldTask,
        wanted_id=task_id,
        owner_id=identity.worker_id,
        hostname=identity.hostname,
        own_pid=identity.pid,
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
    return call(
        "complete_tasks", Receipt, owner_id=owner_id, **_claims(completions), results=results
    )


class Ended(NamedTuple):
    """What the database answered for a batch of ends."""

    fail_task_ids: Sequence[str]
    lost_ids: Sequence[str] | None
    verdicts: Sequence[str] | None
    retry_afters: Sequence[float | None] | None
    voided: Sequence[int | None] | None

    def receipts(self) -> list[FailReceipt]:
        """Of plain successes it says nothing."""
        lost = [FailReceipt(task_id, "claim_lost", None) for task_id in self.lost_ids or ()]
        failed = zip(self.fail_task_ids, self.verdicts or (), self.retry_afters or (), strict=True)
        return lost + [FailReceipt(*one) for one in failed]


def end_tasks(
    owner_id: str,
    completed: Sequence[Completion],
    failed: Sequence[Completion],
    permit: PermitRequest | None,
) -> Statement[Ended]:
    """T6, T7 and T8 in a transaction of their own, and a permit for what comes next."""
    of_failed = {f"fail_{name}": values for name, values in _failures(failed).items()}
    results = [c.result for c in completed]
    return call(
        "end_tasks",
        Ended,
        owner_id=owner_id,
        **_claims(completed),
        results=results,
        **of_failed,
        permit=permit,
    )


def grant_permit(owner_id: str, permit: PermitRequest) -> Statement[Granted]:
    """What was taken ahead may begin as far as the permit reaches."""
    return call("grant_permit", Granted, owner_id=owner_id, permit=permit)


def fail_tasks(owner_id: str, completions: Sequence[Completion]) -> Statement[FailReceipt]:
    """T7 or T8; the database's clock decides about the retry."""
    return call("fail_tasks", FailReceipt, owner_id=owner_id, **_failures(completions))


def cancel_running_tasks(owner_id: str, completions: Sequence[Completion]) -> Statement[Receipt]:
    """T16 for runs that were stopped on request."""
    return call(
        "cancel_running_tasks",
        Receipt,
        owner_id=owner_id,
        **_claims(completions),
        results=[c.result for c in completions],
        error_messages=[c.error_message for c in completions],
    )


def interrupt_tasks(owner_id: str, completions: Sequence[Completion]) -> Statement[Receipt]:
    """T17: back to PENDING, no attempt counted."""
    return call("interrupt_tasks", Receipt, owner_id=owner_id, **_claims(completions))


def _claims(completions: Sequence[Completion]) -> dict[str, Sequence[object]]:
    """The fence: which claim of which attempt ends."""
    return {
        "task_ids": [c.task.task_id for c in completions],
        "claims": [c.task.claim for c in completions],
        "attempts": [c.task.attempt for c in completions],
    }


def _failures(completions: Sequence[Completion]) -> dict[str, Sequence[object]]:
    return {
        **_claims(completions),
        "results": [c.result for c in completions],
        "error_codes": [c.error_code for c in completions],
        "error_messages": [c.error_message for c in completions],
        "failed_reasons": [c.failed_reason for c in completions],
        "outcomes": [c.attempt_outcome for c in completions],
        "retry_delays": [c.retry_delay_s for c in completions],
    }


class RenumberedAttempt(NamedTuple):
    task_id: str
    attempt: int


def renumber_attempts(
    owner_id: str, completions: Sequence[Completion]
) -> Statement[RenumberedAttempt]:
    """The next free attempt number of claims whose own is taken."""
    return call("renumber_attempts", RenumberedAttempt, owner_id=owner_id, **_claims(completions))


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


def store_progress(reports: Sequence[tuple[HeldTask, Progress]]) -> Statement[Scalar]:
    """What tasks have reported last."""
    return call(
        "store_progress",
        Scalar,
        task_ids=[task.task_id for task, _ in reports],
        attempts=[task.attempt for task, _ in reports],
        done=[progress.done for _, progress in reports],
        totals=[progress.total for _, progress in reports],
        notes=[progress.note for _, progress in reports],
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


def stored_ends(owner_id: str, completions: Sequence[Completion]) -> Statement[Receipt]:
    """Those of these ends that this worker has stored already, as their attempts say."""
    parameters = {
        "worker_id": owner_id,
        "task_ids": [completion.task.task_id for completion in completions],
        "attempts": [completion.task.attempt for completion in completions],
    }
    return Statement(query("worker", "stored_ends"), parameters, Receipt)


def names_known_to_peers(worker_id: str, names: Sequence[str]) -> Statement[Scalar]:
    """Those of these task names that another worker knows, which lives."""
    parameters = {"worker_id": worker_id, "names": list(names)}
    return Statement(query("worker", "names_known_to_peers"), parameters, Scalar)


class StoredSnapshot(NamedTuple):
    is_drained: bool
    peer_count: int
    idle_peer_count: int
    is_alone: bool


def insert_worker_state(columns: Mapping[str, object]) -> Statement[StoredSnapshot]:
    return Statement(query("worker", "insert_worker_state"), columns, StoredSnapshot)


def hold_worker_lock(worker_id: str) -> Statement[Scalar]:
    """Try to hold the lock that proves, as long as the session lives, that the worker does."""
    return Statement(query("worker", "hold_worker_lock"), {"worker_id": worker_id}, Scalar)


def cancel_requests(worker_id: str) -> Statement[Scalar]:
    """Running tasks of this worker that someone asked to end."""
    return Statement(query("worker", "cancel_requests"), {"worker_id": worker_id}, Scalar)


class WaitingName(NamedTuple):
    task_name: str
    waiting_count: int


def unknown_tasks(queues: Sequence[str], names: Sequence[str]) -> Statement[WaitingName]:
    """The names of waiting tasks that are none of these, among the first of each queue."""
    parameters = {"queues": list(queues), "names": list(names)}
    return Statement(query("worker", "unknown_tasks"), parameters, WaitingName)
