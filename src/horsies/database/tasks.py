"""One function per statement about tasks: what goes in, what comes out.

Performing them is `statement.run`.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from horsies.database.arrays import plain_array, quoted_array
from horsies.database.functions import call_sql
from horsies.database.rows import (
    FailReceipt,
    NewTask,
    Receipt,
    Scalar,
    StoredAttempt,
    StoredResult,
    StoredTask,
)
from horsies.database.sql_files import query
from horsies.database.statement import Statement
from horsies.tasks.claims import ClaimedTask, Completion


def enqueue_tasks(tasks: Sequence[NewTask]) -> Statement[Receipt]:
    """T1 for a batch; receipts in input order."""
    columns = list(zip(*tasks, strict=True))
    plain = {3, 8, 10, 14}
    names = (
        "task_ids", "task_names", "queue_names", "priorities", "args_texts", "kwargs_texts",
        "sent_ats", "enqueued_ats", "delays", "good_untils", "retry_limits", "options_texts",
        "shas", "unique_keys", "stored_keys", "tag_texts",
    )  # fmt: skip
    parameters: dict[str, object] = {
        name: plain_array(column) if position in plain else quoted_array(column)
        for position, (name, column) in enumerate(zip(names, columns, strict=True))
    }
    return Statement(call_sql("enqueue_tasks"), parameters, Receipt)


def insert_task(task: NewTask) -> Statement[Scalar]:
    """T1 for one task without unique key or tags; UniqueViolation when the id is taken."""
    return Statement(query("tasks", "insert_task"), task._asdict(), Scalar)


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

    owner_id: str
    hostname: str
    own_pid: int
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
    is_full_look: bool
    counts_claims: bool
    marks: dict[tuple[str, int, int], Mark]


def claim_tasks(request: ClaimRequest) -> Statement[ClaimedTask]:
    """T2, and T4 at once for what has a free slot; rows in claim order."""
    keys, starts = _in_order(request)
    marks = [request.marks[key] for key in keys]
    return Statement(
        call_sql("claim_tasks"),
        {
            "owner_id": request.owner_id,
            "hostname": request.hostname,
            "own_pid": request.own_pid,
            "lease": request.lease,
            "is_full_look": request.is_full_look,
            "counts_claims": request.counts_claims,
            "batch_limit": request.batch_limit,
            "queues": quoted_array(request.queues),
            "queue_caps": plain_array(request.queue_caps),
            "cluster_cap": request.cluster_cap,
            "task_names": quoted_array(request.task_lanes),
            "task_lanes": plain_array(request.task_lanes.values()),
            "lane_starts": plain_array(request.lane_starts),
            "lane_claims": plain_array(request.lane_claims),
            "sparse_lanes": plain_array(request.sparse_lanes),
            "child_pids": plain_array(request.child_pids),
            "mark_starts": plain_array(starts),
            "mark_priorities": plain_array([priority for _, priority, _ in keys]),
            "mark_lanes": plain_array([lane for _, _, lane in keys]),
            "mark_times": quoted_array([mark.enqueued_at for mark in marks]),
            "mark_ids": quoted_array([mark.id for mark in marks]),
        },
        ClaimedTask,
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
    return Statement(call_sql("next_due"), {"queues": quoted_array(queues)}, Scalar)


def start_tasks(
    owner_id: str, hostname: str, tasks: Sequence[ClaimedTask], pids: Sequence[int]
) -> Statement[Receipt]:
    """T4 (or T11) for claims from the buffer."""
    return Statement(
        call_sql("start_tasks"),
        {
            "owner_id": owner_id,
            "hostname": hostname,
            "task_ids": quoted_array([task.id for task in tasks]),
            "claims": quoted_array([task.claim for task in tasks]),
            "attempts": plain_array([task.attempt for task in tasks]),
            "pids": plain_array(pids),
        },
        Receipt,
    )


def return_tasks(owner_id: str, tasks: Sequence[ClaimedTask]) -> Statement[Receipt]:
    """T13: claims given back unstarted."""
    ordered = sorted(tasks)
    return Statement(
        call_sql("return_tasks"),
        {
            "owner_id": owner_id,
            "task_ids": quoted_array([task.id for task in ordered]),
            "claims": quoted_array([task.claim for task in ordered]),
        },
        Receipt,
    )


def complete_tasks(owner_id: str, completions: Sequence[Completion]) -> Statement[Receipt]:
    """T6; only refusals come back."""
    return Statement(
        call_sql("complete_tasks"),
        {
            **_claims(owner_id, completions),
            "results": quoted_array([c.result for c in completions]),
        },
        Receipt,
    )


def fail_tasks(owner_id: str, completions: Sequence[Completion]) -> Statement[FailReceipt]:
    """T7 or T8; the database's clock decides about the retry."""
    return Statement(
        call_sql("fail_tasks"),
        {
            **_claims(owner_id, completions),
            "results": quoted_array([c.result for c in completions]),
            "error_codes": quoted_array([c.error_code for c in completions]),
            "error_messages": quoted_array([c.error_message for c in completions]),
            "failed_reasons": quoted_array([c.failed_reason for c in completions]),
            "outcomes": quoted_array([c.attempt_outcome for c in completions]),
            "retry_delays": plain_array([c.retry_delay_s for c in completions]),
        },
        FailReceipt,
    )


def cancel_running_tasks(owner_id: str, completions: Sequence[Completion]) -> Statement[Receipt]:
    """T16 for runs that were stopped on request."""
    return Statement(
        call_sql("cancel_running_tasks"),
        {
            **_claims(owner_id, completions),
            "results": quoted_array([c.result for c in completions]),
            "error_messages": quoted_array([c.error_message for c in completions]),
        },
        Receipt,
    )


def interrupt_tasks(owner_id: str, completions: Sequence[Completion]) -> Statement[Receipt]:
    """T17: back to PENDING, no attempt counted."""
    return Statement(call_sql("interrupt_tasks"), _claims(owner_id, completions), Receipt)


def _claims(owner_id: str, completions: Sequence[Completion]) -> dict[str, object]:
    """The fence: who ends which claim of which attempt."""
    return {
        "owner_id": owner_id,
        "task_ids": plain_array([c.task.id for c in completions]),
        "claims": quoted_array([c.task.claim for c in completions]),
        "attempts": plain_array([c.task.attempt for c in completions]),
    }


def tell_capacity(completions: Sequence[Completion]) -> Statement[Scalar]:
    """Wake workers that wait for a place under a cap."""
    parameters = {"task_ids": plain_array([c.task.id for c in completions])}
    return Statement(call_sql("tell_capacity"), parameters, Scalar)


def store_logs(completions: Sequence[Completion]) -> Statement[Scalar]:
    """Captured output of attempts ended in this transaction."""
    return Statement(
        call_sql("store_logs"),
        {
            "task_ids": plain_array([c.task.id for c in completions]),
            "attempts": plain_array([c.task.attempt for c in completions]),
            "logs": quoted_array([c.log for c in completions]),
            "truncated": plain_array([c.log_truncated for c in completions]),
        },
        Scalar,
    )


def cancel_tasks(task_ids: Sequence[str]) -> Statement[Receipt]:
    """T14."""
    return Statement(
        call_sql("cancel_tasks"), {"task_ids": quoted_array(sorted(task_ids))}, Receipt
    )


def request_cancel(task_ids: Sequence[str]) -> Statement[Receipt]:
    """T14 for waiting tasks; for running ones the wish is stored and their worker told."""
    parameters = {"task_ids": quoted_array(sorted(task_ids))}
    return Statement(call_sql("request_cancel"), parameters, Receipt)


def requeue_tasks(task_ids: Sequence[str], *, include_completed: bool) -> Statement[Receipt]:
    """T15."""
    parameters = {
        "task_ids": quoted_array(sorted(task_ids)),
        "include_completed": include_completed,
    }
    return Statement(call_sql("requeue_tasks"), parameters, Receipt)


@dataclass(frozen=True, slots=True)
class Filter:
    """Which tasks an operation on many is about; workflow nodes never match."""

    statuses: tuple[str, ...]
    task_name: str | None = None
    queue_name: str | None = None
    tag: str | None = None

    def parameters(self) -> dict[str, object]:
        return {
            "statuses": list(self.statuses),
            "task_name": self.task_name,
            "queue_name": self.queue_name,
            "tag": self.tag,
        }


def matching_ids(wanted: Filter, *, after: str) -> Statement[Scalar]:
    """The next thousand ids that match."""
    parameters = {**wanted.parameters(), "after": after, "batch": 1_000}
    return Statement(query("tasks", "matching_ids"), parameters, Scalar)


def count_matching(wanted: Filter) -> Statement[Scalar]:
    return Statement(query("tasks", "count_matching"), wanted.parameters(), Scalar)


def rerun_task(
    task_id: str, new_id: str, sent_at: datetime, good_until: datetime | None
) -> Statement[Scalar]:
    """A new row with the input of an ended one."""
    parameters = {
        "task_id": task_id,
        "new_id": new_id,
        "sent_at": sent_at,
        "good_until": good_until,
    }
    return Statement(query("tasks", "rerun_task"), parameters, Scalar)


def read_results(task_ids: Sequence[str]) -> Statement[StoredResult]:
    """Status and result of each task that exists."""
    return Statement(query("tasks", "read_results"), {"ids": list(task_ids)}, StoredResult)


def read_task(
    task_id: str, *, with_result: bool, with_failed_reason: bool, with_log: bool
) -> Statement[StoredTask]:
    parameters = {
        "task_id": task_id,
        "with_result": with_result,
        "with_failed_reason": with_failed_reason,
        "with_log": with_log,
    }
    return Statement(query("tasks", "read_task"), parameters, StoredTask)


def read_attempts(task_id: str) -> Statement[StoredAttempt]:
    """Attempts, the latest first."""
    return Statement(query("tasks", "read_attempts"), {"task_id": task_id}, StoredAttempt)


def return_unheld_tasks(owner_id: str, held_ids: Sequence[str]) -> Statement[Scalar]:
    """Put back what a lost answer claimed for this worker."""
    parameters = {"owner_id": owner_id, "held_ids": plain_array(held_ids)}
    return Statement(call_sql("return_unheld_tasks"), parameters, Scalar)
