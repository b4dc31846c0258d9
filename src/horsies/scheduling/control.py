"""Steering schedules at run time: see, pause, resume, add, change, remove.

Each action is a sequence of steps, as `finding.py` explains; `by_hand.py` has those that send.
"""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from horsies.config.schedules import AnySchedule, TaskSchedule
from horsies.database.operation import describe
from horsies.scheduling.finding import (
    OTHER_PATTERN,
    RefusedError,
    Steps,
    configured,
    find,
    find_or_make,
    is_other_pattern,
    is_out_of_reach,
    owner_of,
    refused,
    unknown_schedule,
)
from horsies.scheduling.sending import ScheduleSendingApp
from horsies.scheduling.slots import config_hash, first_slot, following_slot
from horsies.scheduling.statements import (
    ScheduleRun,
    SlotRun,
    StoredSchedule,
    add_schedule,
    change_schedule,
    current_time,
    pause_schedule,
    read_schedules,
    record_firing,
    remove_schedule,
    resume_schedule,
    schedule_history,
)
from horsies.scheduling.stored import read_definition, stored_definition
from horsies.scheduling.validate import schedule_problems
from horsies.scheduling.words import in_words

MAX_LISTED = 100_000


@dataclass(frozen=True, slots=True)
class ScheduleInfo:
    """A schedule and how it stands. `words` and `timezone` say when it runs.

    `definition` is the schedule itself; None if it is neither in this code nor readable.
    """

    name: str
    target: str
    words: str
    timezone: str
    is_dynamic: bool
    is_enabled: bool
    next_run_at: datetime | None
    last_run_at: datetime | None
    last_task_id: str | None
    run_count: int
    paused_at: datetime | None
    pause_reason: str | None
    problem: str | None = None
    definition: AnySchedule | None = None


def list_steps(app: ScheduleSendingApp) -> Steps[list[ScheduleInfo]]:
    """All schedules of the app, by name."""
    stored = {row.name: row for row in (yield read_schedules(owner_of(app), None, MAX_LISTED))}
    in_code = configured(app)
    infos = [_info(app, name, row, in_code.get(name)) for name, row in stored.items()]
    infos += [
        _info(app, name, None, schedule) for name, schedule in in_code.items() if name not in stored
    ]
    return sorted(infos, key=lambda info: info.name)


def next_runs_steps(app: ScheduleSendingApp, name: str, count: int) -> Steps[list[datetime]]:
    """The next runs of a schedule; none while it is paused."""
    schedule, row = yield from find(app, name)
    if row.paused_at is not None:
        return []
    found: list[datetime] = []
    following = row.next_run_at
    while following is not None and len(found) < count:
        found.append(following)
        following = following_slot(schedule, following)
    return found


def pause_steps(app: ScheduleSendingApp, name: str, reason: str | None) -> Steps[None]:
    yield from find_or_make(app, name)
    yield pause_schedule(owner_of(app), name, reason)


def resume_steps(app: ScheduleSendingApp, name: str) -> Steps[bool]:
    """Go on from now, or from where it stopped if the schedule catches up; False if not paused."""
    schedule, row = yield from find_or_make(app, name)
    if row.paused_at is None:
        return False
    ((now,),) = yield current_time()
    has_waited = row.next_run_at is not None and row.next_run_at <= now
    renewed = is_out_of_reach(row) or (has_waited and not schedule.catch_up_missed)
    if renewed and is_other_pattern(schedule, row):
        raise refused(f"{OTHER_PATTERN}; resume {name!r} with the code that runs")
    next_at = first_slot(schedule, now) if renewed else row.next_run_at
    ((is_resumed,),) = yield resume_schedule(owner_of(app), name, next_at)
    if is_resumed and renewed and has_waited and row.next_run_at is not None:
        why = "paused" if row.pause_reason is None else f"paused: {row.pause_reason}"
        missed = SlotRun(row.next_run_at, "missed", reason=why)
        yield record_firing(name, None, [missed], keeps_next=True)
    return bool(is_resumed)


def add_steps(app: ScheduleSendingApp, schedule: AnySchedule) -> Steps[None]:
    """Store a schedule beside those in code; running schedulers take it up at once."""
    if schedule.name in configured(app):
        raise refused(f"{schedule.name!r} is a schedule in code; choose another name")
    outcome = yield from _put(app, schedule, is_new=True)
    if outcome == "exists":
        raise refused(f"there is a schedule {schedule.name!r} already; change it")
    if outcome == "taken":
        raise refused(f"another owner has a schedule {schedule.name!r}; choose another name")


def change_steps(app: ScheduleSendingApp, schedule: AnySchedule) -> Steps[None]:
    """Replace a schedule that was added at run time."""
    if not (yield from _put(app, schedule, is_new=False)):
        raise _not_dynamic(app, schedule.name)


def remove_steps(app: ScheduleSendingApp, name: str) -> Steps[None]:
    """Remove a schedule that was added at run time; its history stays."""
    ((is_removed,),) = yield remove_schedule(owner_of(app), name)
    if not is_removed:
        raise _not_dynamic(app, name)


def history_steps(app: ScheduleSendingApp, name: str, limit: int) -> Steps[list[ScheduleRun]]:
    """What became of the last slots, the latest first; also of a schedule that was removed."""
    runs: list[ScheduleRun] = yield schedule_history(name, limit)
    is_known = runs or name in configured(app) or (yield read_schedules(owner_of(app), name, 1))
    if not is_known:
        raise unknown_schedule(name)
    return runs


def _info(
    app: ScheduleSendingApp,
    name: str,
    row: StoredSchedule | None,
    in_code: AnySchedule | None,
) -> ScheduleInfo:
    schedule, problem = in_code, None
    is_dynamic = in_code is None and row is not None and row.definition is not None
    if schedule is None and row is not None and row.definition is not None:
        try:
            schedule = read_definition(name, row.definition)
        except ValueError as error:
            problem = str(error)
    if schedule is not None and schedule.enabled:
        problem = next((found.message for found in schedule_problems(app, schedule)), None)
        if problem is None and row is not None and is_other_pattern(schedule, row):
            problem = f"{OTHER_PATTERN}; its next run is as stored"
    if problem is None and row is not None and is_out_of_reach(row):
        problem = "its stored next run is out of reach: pause and resume it"
    if schedule is None and problem is None:
        problem = "not in this app's code: the next start of its scheduler forgets it"
    return ScheduleInfo(
        name,
        "?" if schedule is None else _target(schedule),
        "?" if schedule is None else in_words(schedule.pattern),
        "?" if schedule is None else schedule.timezone,
        is_dynamic,
        schedule is not None and schedule.enabled,
        next_run_at=row and row.next_run_at,
        last_run_at=row and row.last_run_at,
        last_task_id=row and row.last_task_id,
        run_count=row.run_count if row else 0,
        paused_at=row and row.paused_at,
        pause_reason=row and row.pause_reason,
        problem=problem,
        definition=schedule,
    )


def _target(schedule: AnySchedule) -> str:
    return schedule.task_name if isinstance(schedule, TaskSchedule) else schedule.definition_key


def _put(app: ScheduleSendingApp, schedule: AnySchedule, *, is_new: bool) -> Steps[Any]:
    if not schedule.enabled:
        raise refused("a schedule that is added at run time is paused instead of disabled")
    if problems := list(schedule_problems(app, schedule)):
        raise refused("; ".join(describe(problem) for problem in problems))
    try:
        definition = stored_definition(schedule)
    except ValueError as error:
        raise refused(f"its arguments cannot be stored: {error}") from error
    ((now,),) = yield current_time()
    put = add_schedule if is_new else change_schedule
    first = first_slot(schedule, now)
    if is_new and first is None:
        raise refused(
            "it would never run: its end has passed, or comes before its first slot, "
            "or the calendar ends before that"
        )
    ((outcome,),) = yield put(
        owner_of(app), schedule.name, definition, first, config_hash(schedule)
    )
    return outcome


def _not_dynamic(app: ScheduleSendingApp, name: str) -> RefusedError:
    if name in configured(app):
        return refused(f"{name!r} is a schedule in code: change it there, or pause it")
    return unknown_schedule(name)
