"""The statements of schedules: their state, their slots, and those added at run time."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple

from horsies.database.functions import call
from horsies.database.statement import Receipt, Scalar, Statement


class DueNames(NamedTuple):
    """Due schedules, the seconds until the next one is, and the database's time."""

    names: list[str]
    next_after_s: float | None
    now_at: datetime
    known_count: int


class LockedSchedule(NamedTuple):
    """The state of a due schedule, held by this transaction."""

    next_run_at: datetime
    last_task_id: str | None
    now_at: datetime


class OpenRuns(NamedTuple):
    """Runs of a schedule that have not ended, and those of them that have not begun."""

    open_count: int
    waiting_count: int


@dataclass(frozen=True, slots=True)
class SlotRun:
    """What became of a slot."""

    slot_at: datetime
    outcome: str
    task_id: str | None = None
    workflow_id: str | None = None
    reason: str | None = None


def init_schedules(
    owner: str, first_runs: Sequence[tuple[str, datetime | None, str]], known: Sequence[str]
) -> Statement[Receipt]:
    """Make or keep the state of these schedules (name, first run, hash); delete unknown ones."""
    return call(
        "init_schedules",
        Receipt,
        schedule_owner=owner,
        names=[name for name, _, _ in first_runs],
        next_runs=[at for _, at, _ in first_runs],
        hashes=[text for _, _, text in first_runs],
        known_names=known,
    )


def due_schedules(owner: str, batch_limit: int) -> Statement[DueNames]:
    return call("due_schedules", DueNames, schedule_owner=owner, batch_limit=batch_limit)


def lock_schedule(owner: str, name: str) -> Statement[LockedSchedule]:
    return call("lock_schedule", LockedSchedule, name=name, schedule_owner=owner)


def open_runs(name: str) -> Statement[OpenRuns]:
    return call("open_runs", OpenRuns, name=name)


def record_firing(
    name: str, next_at: datetime | None, runs: Sequence[SlotRun]
) -> Statement[Scalar]:
    columns: dict[str, Any] = {
        "slots": [run.slot_at for run in runs],
        "outcomes": [run.outcome for run in runs],
        "task_ids": [run.task_id for run in runs],
        "workflow_ids": [run.workflow_id for run in runs],
        "reasons": [run.reason for run in runs],
    }
    return call("record_firing", Scalar, name=name, next_at=next_at, **columns)
