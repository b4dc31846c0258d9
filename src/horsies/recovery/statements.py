"""The statements of recovery and retention, for the reaper, the death watch and manual calls."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from horsies.database.functions import call
from horsies.database.sql_files import query
from horsies.database.statement import Receipt, Scalar, Statement

# 1,000 rows a statement: short enough that no claim waits for it, long enough to be cheap per row.
BATCH = 1_000
_WORKFLOWS = 200


class LostRun(NamedTuple):
    """A RUNNING row without a sign of life, with what the decision about its retry needs."""

    id: str
    task_name: str
    owner_id: str | None
    claim: str | None
    attempt: int
    task_options: str | None
    worker_hostname: str | None
    worker_pid: int | None
    worker_process_name: str | None
    started_at: datetime | None
    last_heartbeat: datetime | None
    now_at: datetime
    host_key: str | None


@dataclass(frozen=True, slots=True)
class LostRunEnding:
    """How a lost run is to end."""

    run: LostRun
    result: str
    message: str
    reason: str
    retry_delay_s: float | None


class WorkerWithoutLock(NamedTuple):
    """A worker that is gone from the database, and how to recognize its process on its host."""

    worker_id: str
    hostname: str
    pid: int
    pid_started_at: float | None
    host_key: str | None


class RecoveredWorkflows(NamedTuple):
    """What a look for stuck workflows changed, and to which id it looked; None: to the end."""

    recovered: int
    looked_to: str | None
    failure: str | None


class Unheld(NamedTuple):
    """How many rows that nobody held went back, and how many remain locked by another session."""

    returned: int
    remaining: int


class NamedTask(NamedTuple):
    task_id: str
    task_name: str
    queue_name: str


class ExpiredTask(NamedTuple):
    id: str
    task_name: str
    queue_name: str
    priority: int
    sent_at: datetime | None
    enqueued_at: datetime
    good_until: datetime
    expired_for: timedelta


class WorkerStats(NamedTuple):
    worker_hostname: str | None
    worker_pid: int | None
    worker_process_name: str | None
    active_tasks: int
    oldest_task_start: datetime | None
    latest_heartbeat: datetime | None


def take_duties(worker_id: str, intervals: Mapping[str, timedelta]) -> Statement[Scalar]:
    """Those of these duties that are due, by name; nobody else gets them meanwhile."""
    return call(
        "take_duties",
        Scalar,
        worker_id=worker_id,
        duties=intervals,
        intervals=intervals.values(),
    )


def finish_duty(worker_id: str, duty: str, failure: str | None) -> Statement[Scalar]:
    return call("finish_duty", Scalar, worker_id=worker_id, duty=duty, reason=failure)


def prune(what: str, older_than: timedelta) -> Statement[Scalar]:
    """One batch of retention: heartbeats, worker_states, workflows, events or schedule_runs."""
    return call(f"prune_{what}", Scalar, older_than=older_than, batch_limit=BATCH)


def prune_tasks(status: str, older_than: timedelta) -> Statement[Scalar]:
    """One batch of ended tasks with their attempts and logs."""
    return call(
        "prune_tasks", Scalar, ended_status=status, older_than=older_than, batch_limit=BATCH
    )


def recover_workflows(after_id: str) -> Statement[RecoveredWorkflows]:
    """Make up for what did not follow in workflows; no row while another worker does it."""
    return call("recover_workflows", RecoveredWorkflows, after_id=after_id, batch_limit=_WORKFLOWS)


def expire_tasks() -> Statement[NamedTask]:
    """T10 for a batch; answers which tasks they were."""
    return call("expire_tasks_v2", NamedTask, batch_limit=BATCH)


def named_tasks(task_ids: Sequence[str]) -> Statement[NamedTask]:
    """What hooks are told of tasks beside their ids."""
    return Statement(query("recovery", "named_tasks"), {"task_ids": list(task_ids)}, NamedTask)


def requeue_stale_claims(stale_after: timedelta, dead_owners: Sequence[str]) -> Statement[Scalar]:
    """T12 for one batch; return how many."""
    return call(
        "requeue_stale_claims",
        Scalar,
        stale_after=stale_after,
        dead_owners=dead_owners,
        batch_limit=BATCH,
    )


def lost_runs(silent_for: timedelta) -> Statement[LostRun]:
    """RUNNING rows without a sign of life for that long."""
    return call("lost_runs", LostRun, silent_for=silent_for, batch_limit=BATCH)


def running_tasks_of_worker(owner_id: str) -> Statement[LostRun]:
    """RUNNING rows of one worker, whatever signs of life they show."""
    return call("running_tasks_of_worker", LostRun, owner=owner_id, batch_limit=BATCH)


def fail_lost_runs(silent_for: timedelta, endings: Sequence[LostRunEnding]) -> Statement[Receipt]:
    """T9 or T8, judged again under the row lock; T17 for what was taken ahead and never begun."""
    return call(
        "fail_lost_runs",
        Receipt,
        silent_for=silent_for,
        task_ids=[ending.run.id for ending in endings],
        owner_ids=[ending.run.owner_id for ending in endings],
        claims=[ending.run.claim for ending in endings],
        attempts=[ending.run.attempt for ending in endings],
        results=[ending.result for ending in endings],
        error_messages=[ending.message for ending in endings],
        failed_reasons=[ending.reason for ending in endings],
        retry_delays=[ending.retry_delay_s for ending in endings],
    )


def return_unheld_tasks(owner_id: str, held_ids: Sequence[str]) -> Statement[Unheld]:
    """T13 or T17 for rows of a worker that nobody holds: their user code never began."""
    return call("return_unheld_tasks_v2", Unheld, owner_id=owner_id, held_ids=held_ids)


def return_unpermitted_runs(owner_id: str) -> Statement[Scalar]:
    """T17 for one batch of what a dead worker had taken ahead and could not begin; how many."""
    return call("return_unpermitted_runs", Scalar, owner_id=owner_id, batch_limit=BATCH)


def watch_workers(
    office: str | None, seen_within: timedelta | None
) -> Statement[WorkerWithoutLock | None]:
    """Workers whose session lock is free although they have held it.

    With an office, only the one session that holds it gets them, and a new holder all ever seen;
    any other gets None.
    """
    return call("watch_workers", _watched, office=office, seen_within=seen_within)


def _watched(worker_id: str | None, *rest: Any) -> WorkerWithoutLock | None:
    return None if worker_id is None else WorkerWithoutLock(worker_id, *rest)


def expired_tasks() -> Statement[ExpiredTask]:
    return Statement(query("recovery", "expired_tasks"), {}, ExpiredTask)


def worker_stats() -> Statement[WorkerStats]:
    return Statement(query("recovery", "worker_stats"), {}, WorkerStats)


def record_history() -> Statement[Scalar]:
    """Whether the history of queues reaches the present."""
    return call("record_history", Scalar)
