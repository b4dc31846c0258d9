"""Steering schedules at run time: see, pause, resume, run now, backfill, add, change, remove.

Each action is written once, as steps that yield statements; `schedules.py` performs the steps in
one transaction, for blocking and async callers. What cannot be done is raised as `RefusedError`.
"""

from collections.abc import Generator, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, TypeVar

from horsies.codes import BrokerErrorCode
from horsies.config.schedules import AnySchedule, IntervalSchedule, TaskSchedule
from horsies.database.operation import FAILURES, describe
from horsies.database.statement import Statement
from horsies.scheduling.next_run import calculate_next_run
from horsies.scheduling.sending import ScheduleSendingApp, slot_statement
from horsies.scheduling.slots import config_hash, first_slot, slot_id
from horsies.scheduling.statements import (
    ScheduleRun,
    SlotRun,
    StoredSchedule,
    add_schedule,
    change_schedule,
    current_time,
    init_schedules,
    pause_schedule,
    read_schedules,
    record_firing,
    remove_schedule,
    resume_schedule,
    schedule_history,
    sent_slots,
)
from horsies.scheduling.stored import read_definition, stored_definition
from horsies.scheduling.validate import schedule_problems
from horsies.scheduling.words import in_words

T = TypeVar("T")
Steps = Generator[Statement[Any], list[Any], T]

MAX_LISTED = 100_000
MAX_BACKFILL = 10_000
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class RefusedError(Exception):
    """What was asked for cannot be done."""

    def __init__(self, code: BrokerErrorCode, message: str) -> None:
        super().__init__(message)
        self.code = code


@dataclass(frozen=True, slots=True)
class ScheduleInfo:
    """A schedule and how it stands. `words` and `timezone` say when it runs."""

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


@dataclass(frozen=True, slots=True)
class Backfill:
    """The slots of a range: those to be sent, or sent now, and those that were sent before."""

    slots: list[datetime]
    sent_before: list[datetime]
    is_preview: bool


def list_steps(app: ScheduleSendingApp) -> Steps[list[ScheduleInfo]]:
    """All schedules of the app, by name."""
    stored = {row.name: row for row in (yield read_schedules(owner_of(app), None, MAX_LISTED))}
    configured = _configured(app)
    infos = [_info(app, name, row, configured.get(name)) for name, row in stored.items()]
    infos += [
        _info(app, name, None, schedule)
        for name, schedule in configured.items()
        if name not in stored
    ]
    return sorted(infos, key=lambda info: info.name)


def next_runs_steps(app: ScheduleSendingApp, name: str, count: int) -> Steps[list[datetime]]:
    """The next runs of a schedule; none while it is paused."""
    schedule, row = yield from _find(app, name)
    if row.paused_at is not None:
        return []
    found: list[datetime] = []
    following = row.next_run_at
    while following is not None and len(found) < count:
        found.append(following)
        following = calculate_next_run(schedule.pattern, following, schedule.timezone)
        if schedule.end_at is not None and following > schedule.end_at:
            break
    return found


def pause_steps(app: ScheduleSendingApp, name: str, reason: str | None) -> Steps[None]:
    yield from _find(app, name)
    yield pause_schedule(owner_of(app), name, reason)


def resume_steps(app: ScheduleSendingApp, name: str) -> Steps[bool]:
    """Go on from now, or from where it stopped if the schedule catches up; False if not paused."""
    schedule, row = yield from _find(app, name)
    ((now,),) = yield current_time()
    has_waited = row.next_run_at is not None and row.next_run_at <= now
    renewed = has_waited and not schedule.catch_up_missed
    next_at = first_slot(schedule, now) if renewed else row.next_run_at
    ((is_resumed,),) = yield resume_schedule(owner_of(app), name, next_at)
    return bool(is_resumed)


def run_now_steps(app: ScheduleSendingApp, name: str) -> Steps[str]:
    """Send one run at once, also while it is paused; the next slot stays. The id of the run."""
    schedule, _ = yield from _find(app, name)
    ((now,),) = yield current_time()
    run = yield from _send(app, schedule, now, "run by hand")
    yield record_firing(name, None, [run], keeps_next=True)
    return slot_id(name, now)


def backfill_steps(
    app: ScheduleSendingApp, name: str, start: datetime, end: datetime, *, preview: bool
) -> Steps[Backfill]:
    """Send the slots of a range that were not sent yet, the end excluded."""
    schedule, _ = yield from _find(app, name)
    ((now,),) = yield current_time()
    slots = _slots_between(schedule, start, end, now)
    ids = [slot_id(name, slot) for slot in slots]
    before = {row.value for row in (yield sent_slots(name, slots, ids))}
    fresh = [slot for slot in slots if slot not in before]
    if fresh and not preview:
        runs: list[SlotRun] = []
        for slot in fresh:
            runs += [(yield from _send(app, schedule, slot, "backfilled"))]
        yield record_firing(name, None, runs, keeps_next=True)
    return Backfill(fresh, sorted(before), preview)


def add_steps(app: ScheduleSendingApp, schedule: AnySchedule) -> Steps[None]:
    """Store a schedule beside those in code; running schedulers take it up at once."""
    if schedule.name in _configured(app):
        raise _refused(f"{schedule.name!r} is a schedule in code; choose another name")
    outcome = yield from _put(app, schedule, is_new=True)
    if outcome == "exists":
        raise _refused(f"there is a schedule {schedule.name!r} already; change it")
    if outcome == "taken":
        raise _refused(f"another owner has a schedule {schedule.name!r}; choose another name")


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
    return (yield schedule_history(name, limit))


def owner_of(app: ScheduleSendingApp) -> str:
    return "default" if app.config.schedule is None else app.config.schedule.owner


def _configured(app: ScheduleSendingApp) -> dict[str, AnySchedule]:
    config = app.config.schedule
    return {} if config is None else {schedule.name: schedule for schedule in config.schedules}


def _find(app: ScheduleSendingApp, name: str) -> Steps[tuple[AnySchedule, StoredSchedule]]:
    """A schedule and its state, which is made if no scheduler has run since it was configured."""
    owner = owner_of(app)
    schedule = _configured(app).get(name)
    if schedule is not None:
        if not schedule.enabled:
            raise _refused(f"schedule {name!r} is disabled in code")
        ((now,),) = yield current_time()
        firsts = [(name, first_slot(schedule, now), config_hash(schedule))]
        ((_, outcome),) = yield init_schedules(owner, firsts, prunes=False)
        if outcome == "taken":
            raise _refused(f"another owner has a schedule {name!r}")
    rows = yield read_schedules(owner, name, 1)
    if not rows:
        raise _unknown(name)
    row: StoredSchedule = rows[0]
    if schedule is None:
        if row.definition is None:
            raise _unknown(name)
        schedule = _read(row.definition)
    return schedule, row


def _read(definition: dict[str, Any]) -> AnySchedule:
    try:
        return read_definition(definition)
    except ValueError as error:
        raise _refused(str(error)) from error


def _info(
    app: ScheduleSendingApp,
    name: str,
    row: StoredSchedule | None,
    configured: AnySchedule | None,
) -> ScheduleInfo:
    schedule, problem = configured, None
    is_dynamic = configured is None and row is not None and row.definition is not None
    if schedule is None and row is not None and row.definition is not None:
        try:
            schedule = read_definition(row.definition)
        except ValueError as error:
            problem = str(error)
    if schedule is not None and schedule.enabled:
        problem = next((found.message for found in schedule_problems(app, schedule)), None)
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
    )


def _target(schedule: AnySchedule) -> str:
    return schedule.task_name if isinstance(schedule, TaskSchedule) else schedule.definition_key


def _put(app: ScheduleSendingApp, schedule: AnySchedule, *, is_new: bool) -> Steps[Any]:
    if not schedule.enabled:
        raise _refused("a schedule that is added at run time is paused instead of disabled")
    if problems := list(schedule_problems(app, schedule)):
        raise _refused("; ".join(describe(problem) for problem in problems))
    try:
        definition = stored_definition(schedule)
    except ValueError as error:
        raise _refused(f"its arguments cannot be stored: {error}") from error
    ((now,),) = yield current_time()
    put = add_schedule if is_new else change_schedule
    first = first_slot(schedule, now)
    ((outcome,),) = yield put(
        owner_of(app), schedule.name, definition, first, config_hash(schedule)
    )
    return outcome


def _send(
    app: ScheduleSendingApp, schedule: AnySchedule, slot: datetime, reason: str
) -> Steps[SlotRun]:
    if app.are_sends_suppressed():
        raise _refused("sends are suppressed in this process")
    try:
        statement = slot_statement(app, schedule, slot, by_hand=True)
    except FAILURES as error:
        raise _refused(describe(error)) from error
    except Exception as error:  # user code: build_with
        raise _refused(f"its run cannot be made: {describe(error)}") from error
    yield statement
    run_id = slot_id(schedule.name, slot)
    if isinstance(schedule, TaskSchedule):
        return SlotRun(slot, "sent", task_id=run_id, reason=reason)
    return SlotRun(slot, "sent", workflow_id=run_id, reason=reason)


def _slots_between(
    schedule: AnySchedule, start: datetime, end: datetime, now: datetime
) -> list[datetime]:
    if start.tzinfo is None or end.tzinfo is None:
        raise _refused("start and end need a timezone")
    if end <= start:
        raise _refused("the end must lie after the start")
    slots: list[datetime] = []
    for slot in _planned(schedule, start.astimezone(UTC)):
        if slot >= min(end, now):  # those to come are the scheduler's
            break
        if len(slots) == MAX_BACKFILL:
            raise _refused(f"more than {MAX_BACKFILL} slots: choose a shorter range")
        slots.append(slot)
    return slots


def _planned(schedule: AnySchedule, start: datetime) -> Iterator[datetime]:
    pattern = schedule.pattern
    following = start - timedelta(microseconds=1)
    if isinstance(pattern, IntervalSchedule):
        # Counted from 1970, so that overlapping ranges have the same slots.
        interval = timedelta(seconds=pattern.total_seconds())
        following = start - (start - _EPOCH) % interval
        if following == start:
            yield start
    while True:
        following = calculate_next_run(pattern, following, schedule.timezone)
        yield following


def _refused(message: str) -> RefusedError:
    return RefusedError(BrokerErrorCode.SCHEDULE_REFUSED, message)


def _unknown(name: str) -> RefusedError:
    return RefusedError(BrokerErrorCode.SCHEDULE_NOT_FOUND, f"there is no schedule {name!r}")


def _not_dynamic(app: ScheduleSendingApp, name: str) -> RefusedError:
    if name in _configured(app):
        return _refused(f"{name!r} is a schedule in code: change it there, or pause it")
    return _unknown(name)
