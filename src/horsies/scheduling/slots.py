"""Pure: which slots of a schedule are due, what follows them, and their ids."""

import hashlib
import random
import uuid
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from pydantic_core import to_json

from horsies.config.schedules import AnySchedule
from horsies.scheduling.next_run import calculate_next_run

# Fixed for good: the ids of slots are derived from it.
_NAMESPACE = uuid.UUID("6f6b5c1e-3c0c-5d7b-9a55-0d3d1c9b7a11")


@dataclass(frozen=True, slots=True)
class Due:
    """Slots to fire now, the slot after them, and the first of those that were missed for good."""

    slots: list[datetime]
    next_run_at: datetime | None
    missed_from: datetime | None = None


def first_slot(schedule: AnySchedule, now: datetime) -> datetime | None:
    """When a schedule that is new, or has changed, runs first; None after its end."""
    start = now
    if schedule.start_at is not None and schedule.start_at > now:
        start = schedule.start_at - timedelta(microseconds=1)
    return following_slot(schedule, start)


def due_slots(schedule: AnySchedule, next_run_at: datetime, now: datetime) -> Due:
    """What a schedule that was due at `next_run_at` owes now."""
    if schedule.end_at is not None and next_run_at > schedule.end_at:
        return Due([], None)
    if schedule.start_at is not None and next_run_at < schedule.start_at:
        return Due([], first_slot(schedule, now))  # its start was put off
    if not schedule.catch_up_missed:
        following = following_slot(schedule, next_run_at)
        missed = following if following is not None and following <= now else None
        return Due([next_run_at], following_slot(schedule, now), missed)
    slots = [next_run_at]
    following = following_slot(schedule, next_run_at)
    while following is not None and following <= now and len(slots) < schedule.max_catch_up_runs:
        slots.append(following)
        following = following_slot(schedule, following)
    return Due(slots, following)


def slot_id(schedule_name: str, slot: datetime) -> str:
    """The id of the task or workflow of a slot: the same whoever works it out, and whenever."""
    return str(uuid.uuid5(_NAMESPACE, f"{schedule_name}:{slot.astimezone(UTC).isoformat()}"))


def jitter_s(schedule_name: str, slot: datetime, limit_s: int) -> float:
    """By how much a slot is delayed, the same whenever it is worked out."""
    if not limit_s:
        return 0.0
    return random.Random(slot_id(schedule_name, slot)).uniform(0, limit_s)  # noqa: S311 - no secret


def config_hash(schedule: AnySchedule) -> str:
    """Tells whether pattern and zone are what they were; nothing else counts."""
    text = to_json([schedule.pattern.model_dump(mode="json"), schedule.timezone])
    return hashlib.sha256(text).hexdigest()


def following_slot(schedule: AnySchedule, instant: datetime) -> datetime | None:
    """The first slot after an instant; None after the end of the schedule."""
    try:
        found = calculate_next_run(schedule.pattern, instant, schedule.timezone)
    except OverflowError:  # it would be after the year 9999: never
        return None
    return None if schedule.end_at is not None and found > schedule.end_at else found
