"""Pure: schedules in plain words, for people."""

from datetime import time
from typing import assert_never

from horsies.config.cron import read_cron
from horsies.config.schedules import (
    CronSchedule,
    DailySchedule,
    HourlySchedule,
    IntervalSchedule,
    MonthlySchedule,
    SchedulePattern,
    WeeklySchedule,
)


def in_words(pattern: SchedulePattern) -> str:
    """When a pattern runs, on the clock of its own zone: `every day at 09:00`."""
    match pattern:
        case IntervalSchedule():
            return f"every {_interval(pattern)}"
        case HourlySchedule():
            return f"every hour at :{pattern.minute:02d}{_seconds(pattern.second)}"
        case DailySchedule():
            return f"every day at {_clock(pattern.time)}"
        case WeeklySchedule():
            days = [day.value.capitalize() for day in pattern.days]
            return f"every {_joined(days)} at {_clock(pattern.time)}"
        case MonthlySchedule():
            skipped = ", in months that have it" if pattern.day > 28 else ""
            return f"every month on day {pattern.day} at {_clock(pattern.time)}{skipped}"
        case CronSchedule():
            words = read_cron(pattern.expression).words
            return words[:1].lower() + words[1:]
        case never:  # pyright: ignore[reportUnnecessaryComparison]  # proof that none is left
            assert_never(never)


def _interval(pattern: IntervalSchedule) -> str:
    units = {
        "day": pattern.days,
        "hour": pattern.hours,
        "minute": pattern.minutes,
        "second": pattern.seconds,
    }
    given = {unit: count for unit, count in units.items() if count}
    if len(given) == 1:
        ((unit, count),) = given.items()
        return unit if count == 1 else f"{count} {unit}s"
    return _joined([f"{count} {unit}{'s' * (count > 1)}" for unit, count in given.items()])


def _clock(at: time) -> str:
    return f"{at:%H:%M}{_seconds(at.second)}"


def _seconds(second: int) -> str:
    return f":{second:02d}" if second else ""


def _joined(parts: list[str]) -> str:
    return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} and {parts[-1]}"
