"""Statements of recovery and retention, for the reaper and for the broker's manual calls."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta

from horsies.database.arrays import plain_array, quoted_array
from horsies.database.functions import call_sql
from horsies.database.rows import (
    AbsentWorker,
    ExpiredTask,
    Receipt,
    Scalar,
    StaleRun,
    SweptStep,
    WorkerStats,
)
from horsies.database.sql_files import query
from horsies.database.statement import Statement

# 1,000 rows a statement: short enough that no claim waits for it, long enough to be cheap per row.
BATCH = 1_000


def sweep(steps: Mapping[str, timedelta | None]) -> Statement[SweptStep]:
    """One batch of each step, from its age on; no rows while another worker sweeps."""
    parameters = {
        "steps": quoted_array(steps),
        "ages": quoted_array(steps.values()),
        "batch_limit": BATCH,
    }
    return Statement(call_sql("sweep"), parameters, SweptStep)


def expire_tasks() -> Statement[Scalar]:
    """T10 for one batch; how many."""
    return Statement(call_sql("expire_tasks"), {"batch_limit": BATCH}, Scalar)


def requeue_stale_claims(stale_after: timedelta, gone_owners: Sequence[str]) -> Statement[Scalar]:
    """T12 for one batch; how many."""
    parameters = {
        "stale_after": stale_after,
        "gone_owners": quoted_array(gone_owners),
        "batch_limit": BATCH,
    }
    return Statement(call_sql("requeue_stale_claims"), parameters, Scalar)


def stale_runs(stale_after: timedelta) -> Statement[StaleRun]:
    parameters = {"stale_after": stale_after, "batch_limit": BATCH}
    return Statement(call_sql("stale_runs"), parameters, StaleRun)


@dataclass(frozen=True, slots=True)
class LostRun:
    """A run to give up, with the decision about its retry."""

    run: StaleRun
    result: str
    message: str
    reason: str
    retry_delay_s: float | None


def fail_lost_tasks(stale_after: timedelta, lost: Sequence[LostRun]) -> Statement[Receipt]:
    """T9 or T8, judged again under the row lock."""
    return Statement(
        call_sql("fail_lost_tasks"),
        {
            "stale_after": stale_after,
            "task_ids": quoted_array([item.run.id for item in lost]),
            "owner_ids": quoted_array([item.run.owner_id for item in lost]),
            "claims": quoted_array([item.run.claim for item in lost]),
            "attempts": plain_array([item.run.attempt for item in lost]),
            "results": quoted_array([item.result for item in lost]),
            "error_messages": quoted_array([item.message for item in lost]),
            "failed_reasons": quoted_array([item.reason for item in lost]),
            "retry_delays": plain_array([item.retry_delay_s for item in lost]),
        },
        Receipt,
    )


def expired_tasks() -> Statement[ExpiredTask]:
    return Statement(query("tasks", "expired_tasks"), {}, ExpiredTask)


def worker_stats() -> Statement[WorkerStats]:
    return Statement(query("tasks", "worker_stats"), {}, WorkerStats)


def absent_workers(seen_within: timedelta | None) -> Statement[AbsentWorker]:
    """Workers whose session lock is free although they have held it."""
    return Statement(call_sql("absent_workers"), {"seen_within": seen_within}, AbsentWorker)


def runs_of(owner_id: str) -> Statement[StaleRun]:
    parameters = {"owner_id": owner_id, "batch_limit": BATCH}
    return Statement(call_sql("runs_of"), parameters, StaleRun)
