"""Runs that are sent by hand: one at once, or the slots of a range."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from horsies.config.schedules import AnySchedule, IntervalSchedule, TaskSchedule
from horsies.database.operation import FAILURES, describe
from horsies.scheduling.finding import Outside, Steps, find, find_or_make, refused
from horsies.scheduling.next_run import calculate_next_run
from horsies.scheduling.sending import (
    ScheduleSendingApp,
    build_workflow,
    send_statement,
    start_statement,
)
from horsies.scheduling.slots import slot_id
from horsies.scheduling.statements import (
    SlotRun,
    current_time,
    pruned_until,
    record_firing,
    sent_slots,
)
from horsies.workflows.spec import WorkflowSpec

MAX_BACKFILL = 10_000
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Backfill:
    """The slots of a range: those to be sent, or sent now, and those that were sent before.

    Whether the `unknown` ones were sent cannot be told: their history is pruned.
    """

    slots: list[datetime]
    sent_before: list[datetime]
    unknown: list[datetime]
    is_preview: bool


def run_now_steps(app: ScheduleSendingApp, name: str) -> Steps[str]:
    """Send one run at once, also while it is paused; the next slot stays. The id of the run."""
    schedule, _ = yield from find_or_make(app, name)
    spec = yield from _build(app, schedule)
    ((now,),) = yield current_time()
    run = yield from _send(app, schedule, spec, now, "run by hand")
    yield record_firing(name, None, [run], keeps_next=True)
    return slot_id(name, now)


def backfill_steps(
    app: ScheduleSendingApp,
    name: str,
    start: datetime,
    end: datetime,
    *,
    preview: bool,
    again: bool,
) -> Steps[Backfill]:
    """Send the slots of a range that were not sent yet, the end excluded."""
    schedule, _ = yield from (find if preview else find_or_make)(app, name)
    ((now,),) = yield current_time()
    slots = _slots_between(schedule, start, end, now)
    spec = None if preview or not slots else (yield from _build(app, schedule))
    ids = [slot_id(name, slot) for slot in slots]
    before = {row.value for row in (yield sent_slots(name, slots, ids))}
    ((horizon,),) = yield pruned_until(name)
    unknown = [
        slot for slot in slots if horizon is not None and slot <= horizon and slot not in before
    ]
    fresh = [slot for slot in slots if slot not in before and (again or slot not in unknown)]
    if fresh and not preview:
        runs: list[SlotRun] = []
        for slot in fresh:
            runs += [(yield from _send(app, schedule, spec, slot, "backfilled"))]
        yield record_firing(name, None, runs, keeps_next=True)
    return Backfill(fresh, sorted(before), unknown, preview)


def _build(app: ScheduleSendingApp, schedule: AnySchedule) -> Steps[WorkflowSpec[Any] | None]:
    """What a workflow schedule starts; a task needs nothing."""
    if app.are_sends_suppressed():
        raise refused("sends are suppressed in this process")
    if isinstance(schedule, TaskSchedule):
        return None

    def build() -> WorkflowSpec[Any]:
        try:
            return build_workflow(app, schedule)
        except Exception as error:  # user code: build_with
            raise refused(f"its workflow cannot be built: {describe(error)}") from error

    spec: WorkflowSpec[Any] = yield Outside(build)
    return spec


def _send(
    app: ScheduleSendingApp,
    schedule: AnySchedule,
    spec: WorkflowSpec[Any] | None,
    slot: datetime,
    reason: str,
) -> Steps[SlotRun]:
    run_id = slot_id(schedule.name, slot)
    if spec is not None:
        yield start_statement(schedule.name, slot, spec)
        return SlotRun(slot, "sent", workflow_id=run_id, reason=reason)
    assert isinstance(schedule, TaskSchedule), "a workflow is built before it is started"
    try:
        statement = send_statement(app, schedule, slot, by_hand=True)
    except FAILURES as error:
        raise refused(describe(error)) from error
    yield statement
    return SlotRun(slot, "sent", task_id=run_id, reason=reason)


def _slots_between(
    schedule: AnySchedule, start: datetime, end: datetime, now: datetime
) -> list[datetime]:
    if start.tzinfo is None or end.tzinfo is None:
        raise refused("start and end need a timezone")
    if end <= start:
        raise refused("the end must lie after the start")
    slots: list[datetime] = []
    for slot in _planned(schedule, start.astimezone(UTC)):
        if slot >= min(end, now):  # those to come are the scheduler's
            break
        if len(slots) == MAX_BACKFILL:
            raise refused(f"more than {MAX_BACKFILL} slots: choose a shorter range")
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
