"""Cron expressions: what we accept of them, and the times they name.

The fields are read by cronsim; it also reads forms that we do not promise, which are refused here.
When a schedule runs next is decided in `scheduling/next_run.py`.
"""

import re
from dataclasses import dataclass
from datetime import date, datetime
from functools import lru_cache

_ABBREVIATIONS = {
    "@hourly": "0 * * * *",
    "@daily": "0 0 * * *",
    "@weekly": "0 0 * * 0",
    "@monthly": "0 0 1 * *",
    "@yearly": "0 0 1 1 *",
}
_TERM = re.compile(r"(\*|\w+-\w+)(/\d+)?|\w+", re.ASCII)
_ALL_DAYS = frozenset(range(1, 32))
_ALL_WEEKDAYS = frozenset(range(7))
# A leap year's months: whether a date can exist at all.
_LONGEST = (31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)


@dataclass(frozen=True, slots=True)
class CronTimes:
    """The times that an expression names; weekdays count from Sunday."""

    minutes: frozenset[int]
    hours: frozenset[int]
    days: frozenset[int]
    months: frozenset[int]
    weekdays: frozenset[int]
    words: str
    has_any_hour: bool = False  # the field begins with `*`, also with a step

    def matches_day(self, day: date) -> bool:
        """Whether it names this day: either kind of day, if both are restricted."""
        if day.month not in self.months:
            return False
        by_date, by_weekday = day.day in self.days, day.isoweekday() % 7 in self.weekdays
        if self.days != _ALL_DAYS and self.weekdays != _ALL_WEEKDAYS:
            return by_date or by_weekday
        return by_date and by_weekday

    def matches(self, wall: datetime) -> bool:
        """Whether it names this minute of the wall clock."""
        is_time = wall.minute in self.minutes and wall.hour in self.hours
        return is_time and self.matches_day(wall.date())


@lru_cache(maxsize=1024)
def read_cron(expression: str) -> CronTimes:
    """Read an expression; ValueError says what is wrong with it."""
    from cronsim import CronSim, CronSimError  # apps without cron expressions do not need it

    text = _ABBREVIATIONS.get(expression.strip().lower(), expression)
    fields = text.split()
    if len(fields) != 5:
        raise ValueError(f"it has {len(fields)} fields instead of five")
    for field in fields:
        for term in field.split(","):
            if not _TERM.fullmatch(term):
                raise ValueError(f"{term!r} is no term of it")
    try:
        read = CronSim(text, datetime(2024, 1, 1))  # noqa: DTZ001 - only read, never asked
        words = read.explain()
    except CronSimError as error:
        bad = str(error).removeprefix("Bad ")
        raise ValueError(f"its {bad} cannot be read, or does not exist") from None
    weekdays = frozenset(int(day) % 7 for day in read.weekdays if isinstance(day, int))
    days = frozenset(read.days)
    if min(days) < 1 or len(weekdays) == 0:
        raise ValueError("it uses a form that is not supported")
    times = CronTimes(
        frozenset(read.minutes),
        frozenset(read.hours),
        days,
        frozenset(read.months),
        weekdays,
        words,
        has_any_hour=fields[1].startswith("*"),
    )
    is_by_weekday = weekdays != _ALL_WEEKDAYS and days != _ALL_DAYS
    if not is_by_weekday and all(min(days) > _LONGEST[month - 1] for month in times.months):
        raise ValueError("it never matches: no such day exists")
    return times
