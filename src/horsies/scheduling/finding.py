"""What steering needs first: a schedule with its state, and how steps and refusals are written.

Each action is written once, as steps that yield statements; `schedules.py` performs the steps in
one transaction, for blocking and async callers. User code is yielded as `Outside`: it ends the
transaction before it runs. What cannot be done is raised as `RefusedError`.
"""

from collections.abc import Callable, Generator
from dataclasses import dataclass
from datetime import datetime
from typing import Any, TypeVar

from horsies.codes import BrokerErrorCode
from horsies.config.schedules import AnySchedule
from horsies.database.loading import EARLIEST, LATEST
from horsies.database.statement import Statement
from horsies.scheduling.sending import ScheduleSendingApp
from horsies.scheduling.slots import config_hash, first_slot
from horsies.scheduling.statements import (
    StoredSchedule,
    current_time,
    init_schedules,
    read_schedules,
)
from horsies.scheduling.stored import read_definition

T = TypeVar("T")
Steps = Generator["Statement[Any] | Outside", Any, T]

OTHER_PATTERN = "the scheduler runs with another pattern or timezone than this code has"


@dataclass(frozen=True, slots=True)
class Outside:
    """A call to be made outside any transaction, and in a thread if the caller is async."""

    function: Callable[[], Any]


class RefusedError(Exception):
    """What was asked for cannot be done."""

    def __init__(self, code: BrokerErrorCode, message: str) -> None:
        super().__init__(message)
        self.code = code


def find(app: ScheduleSendingApp, name: str) -> Steps[tuple[AnySchedule, StoredSchedule]]:
    """A schedule and its state; before a scheduler has made it, as it would be."""
    schedule = configured(app).get(name)
    if schedule is not None and not schedule.enabled:
        raise refused(f"schedule {name!r} is disabled in code")
    rows = yield read_schedules(owner_of(app), name, 1)
    if not rows:
        if schedule is None:
            raise unknown_schedule(name)
        ((now,),) = yield current_time()
        return schedule, _new_state(schedule, now)
    row: StoredSchedule = rows[0]
    if schedule is None:
        if row.definition is None:
            raise refused(f"schedule {name!r} is not in this app's code")
        schedule = _read(name, row.definition)
    return schedule, row


def find_or_make(app: ScheduleSendingApp, name: str) -> Steps[tuple[AnySchedule, StoredSchedule]]:
    """The same; a state that is missing is made, one that is there stays as it is."""
    schedule, row = yield from find(app, name)
    if name in configured(app):
        firsts = [(name, row.next_run_at, config_hash(schedule))]
        ((_, outcome),) = yield init_schedules(owner_of(app), firsts, syncs=False)
        if outcome == "taken":
            raise refused(f"another owner has a schedule {name!r}")
    return schedule, row


def _new_state(schedule: AnySchedule, now: datetime) -> StoredSchedule:
    return StoredSchedule(
        schedule.name,
        next_run_at=first_slot(schedule, now),
        last_run_at=None,
        last_task_id=None,
        run_count=0,
        paused_at=None,
        pause_reason=None,
        definition=None,
        config_hash=config_hash(schedule),
    )


def is_other_pattern(schedule: AnySchedule, row: StoredSchedule) -> bool:
    return row.config_hash is not None and row.config_hash != config_hash(schedule)


def is_out_of_reach(row: StoredSchedule) -> bool:
    """Whether it waits for an instant that never comes, or that lies before all calendars."""
    return row.next_run_at in (EARLIEST, LATEST)


def _read(name: str, definition: Any) -> AnySchedule:
    try:
        return read_definition(name, definition)
    except ValueError as error:
        raise refused(str(error)) from error


def owner_of(app: ScheduleSendingApp) -> str:
    return "default" if app.config.schedule is None else app.config.schedule.owner


def configured(app: ScheduleSendingApp) -> dict[str, AnySchedule]:
    config = app.config.schedule
    return {} if config is None else {schedule.name: schedule for schedule in config.schedules}


def refused(message: str) -> RefusedError:
    return RefusedError(BrokerErrorCode.SCHEDULE_REFUSED, message)


def unknown_schedule(name: str) -> RefusedError:
    return RefusedError(BrokerErrorCode.SCHEDULE_NOT_FOUND, f"there is no schedule {name!r}")
