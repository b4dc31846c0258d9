"""The statements of schedules: their state, their slots, and those added at run time."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple

from horsies.database.functions import call
from horsies.database.sql_files import query
from horsies.database.statement import Receipt, Scalar, Statement


class DueSchedules(NamedTuple):
    """Due schedules, with the definitions of those that were added at run time; when the last of
    them was, the seconds until the next, and the time.
    """

    names: list[str]
    definitions: list[Any]  # of foreign hands, as the one below
    last_run_at: datetime | None
    next_after_s: float | None
    now_at: datetime


class LockedSchedule(NamedTuple):
    """The state of a due schedule, held by this transaction."""

    next_run_at: datetime
    definition: Any
    now_at: datetime


class StoredSchedule(NamedTuple):
    """The state of a schedule, and its definition if it was added at run time."""

    name: str
    next_run_at: datetime | None
    last_run_at: datetime | None
    last_task_id: str | None
    run_count: int
    paused_at: datetime | None
    pause_reason: str | None
    definition: Any
    config_hash: str | None


class ScheduleRun(NamedTuple):
    """What became of a slot, and how its task or workflow stands now."""

    slot_at: datetime
    outcome: str
    task_id: str | None
    workflow_id: str | None
    reason: str | None
    created_at: datetime
    status: str | None


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
    owner: str, first_runs: Sequence[tuple[str, datetime | None, str]], *, syncs: bool
) -> Statement[Receipt]:
    """Make the state of these schedules (name, first run, hash) where it is missing.

    To sync is also to renew that of changed ones, and to delete the owner's others, except those
    that were added at run time.
    """
    return call(
        "init_schedules",
        Receipt,
        schedule_owner=owner,
        names=[name for name, _, _ in first_runs],
        next_runs=[at for _, at, _ in first_runs],
        hashes=[text for _, _, text in first_runs],
        syncs=syncs,
    )


def due_schedules(
    owner: str, after: tuple[datetime, str], batch_limit: int
) -> Statement[DueSchedules]:
    """Due schedules of an owner that come after this one, by their slots and names."""
    return call(
        "due_schedules",
        DueSchedules,
        schedule_owner=owner,
        after_run_at=after[0],
        after_name=after[1],
        batch_limit=batch_limit,
    )


def has_missing_schedules(names: Sequence[str]) -> Statement[Scalar]:
    return call("has_missing_schedules", Scalar, names=names)


def current_time() -> Statement[Scalar]:
    """The database's time, which decides what is due."""
    return Statement(query("scheduling", "current_time"), {}, Scalar)


def lock_schedule(owner: str, name: str) -> Statement[LockedSchedule]:
    return call("lock_schedule", LockedSchedule, name=name, schedule_owner=owner)


def open_runs(name: str) -> Statement[OpenRuns]:
    return call("open_runs", OpenRuns, name=name)


def record_firing(
    name: str, next_at: datetime | None, runs: Sequence[SlotRun], *, keeps_next: bool = False
) -> Statement[Scalar]:
    """What became of slots, and the next one; a run by hand leaves that alone."""
    columns: dict[str, Any] = {
        "slots": [run.slot_at for run in runs],
        "outcomes": [run.outcome for run in runs],
        "task_ids": [run.task_id for run in runs],
        "workflow_ids": [run.workflow_id for run in runs],
        "reasons": [run.reason for run in runs],
    }
    return call(
        "record_firing", Scalar, name=name, next_at=next_at, keeps_next=keeps_next, **columns
    )


def read_schedules(owner: str, name: str | None, row_limit: int) -> Statement[StoredSchedule]:
    return call(
        "read_schedules",
        StoredSchedule,
        schedule_owner=owner,
        wanted_name=name,
        row_limit=row_limit,
    )


def schedule_history(name: str, row_limit: int) -> Statement[ScheduleRun]:
    return call("schedule_history", ScheduleRun, wanted_name=name, row_limit=row_limit)


def sent_slots(name: str, slots: Sequence[datetime], run_ids: Sequence[str]) -> Statement[Scalar]:
    return call("sent_slots", Scalar, wanted_name=name, slots=slots, run_ids=run_ids)


def pruned_until(name: str) -> Statement[Scalar]:
    return call("pruned_until", Scalar, wanted_name=name)


def add_schedule(
    owner: str, name: str, definition: object, next_at: datetime | None, config_hash: str
) -> Statement[Scalar]:
    return call(
        "add_schedule",
        Scalar,
        added_name=name,
        schedule_owner=owner,
        new_definition=definition,
        next_at=next_at,
        hash=config_hash,
    )


def change_schedule(
    owner: str, name: str, definition: object, next_at: datetime | None, config_hash: str
) -> Statement[Scalar]:
    return call(
        "change_schedule",
        Scalar,
        changed_name=name,
        schedule_owner=owner,
        new_definition=definition,
        next_at=next_at,
        hash=config_hash,
    )


def remove_schedule(owner: str, name: str) -> Statement[Scalar]:
    return call("remove_schedule", Scalar, removed_name=name, schedule_owner=owner)


def pause_schedule(owner: str, name: str, reason: str | None) -> Statement[Scalar]:
    return call("pause_schedule", Scalar, paused_name=name, schedule_owner=owner, reason=reason)


def resume_schedule(owner: str, name: str, next_at: datetime | None) -> Statement[Scalar]:
    return call("resume_schedule", Scalar, paused_name=name, schedule_owner=owner, next_at=next_at)
