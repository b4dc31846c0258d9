"""Pure: when a pattern runs next, on the wall clock of its zone."""

from collections.abc import Iterator
from datetime import UTC, date, datetime, time, timedelta
from typing import assert_never
from zoneinfo import ZoneInfo

from horsies.config.cron import CronTimes, read_cron
from horsies.config.schedules import (
    CronSchedule,
    DailySchedule,
    HourlySchedule,
    IntervalSchedule,
    MonthlySchedule,
    SchedulePattern,
    Weekday,
    WeeklySchedule,
)

# Leap days may be eight years apart; a pattern without a match until then has none.
_HORIZON = timedelta(days=9 * 366)
# Every zone changes its clock at a quarter of an hour.
_QUARTER = timedelta(minutes=15)
_WEEKDAYS = list(Weekday)


def calculate_next_run(
    pattern: SchedulePattern, from_time: datetime, tz_str: str = "UTC"
) -> datetime:
    """The first planned instant strictly after `from_time`, in UTC.

    A local time that a clock change skips runs once, right after the gap; one that occurs twice
    runs at the first. Hourly patterns, and cron patterns whose hour is `*` or `*/n`, follow real
    time: each instant with that minute counts.
    """
    if from_time.tzinfo is None or from_time.utcoffset() is None:
        raise ValueError("from_time must be timezone-aware")
    zone = read_zone(tz_str)
    start = from_time.astimezone(UTC)
    match pattern:
        case IntervalSchedule():
            return start + timedelta(seconds=pattern.total_seconds())
        case HourlySchedule():
            return _next_hourly(pattern, start, zone)
        case CronSchedule():
            times = read_cron(pattern.expression)
            find = _next_cron if times.has_any_hour else _next_cron_by_day
            return find(times, start, zone)
        case DailySchedule() | WeeklySchedule() | MonthlySchedule():
            return _next_by_day(pattern, start, zone)
        case never:  # pyright: ignore[reportUnnecessaryComparison]  # proof that none is left
            assert_never(never)


def should_run_now(next_run_at: datetime | None, check_time: datetime) -> bool:
    """Whether a schedule is due."""
    return next_run_at is None or next_run_at <= check_time


def read_zone(name: str) -> ZoneInfo:
    """The zone of an IANA name; ValueError if there is none."""
    try:
        return ZoneInfo(name)
    except (KeyError, OSError, ValueError) as error:
        raise ValueError(f"unknown timezone {name!r}") from error


def _next_by_day(
    pattern: DailySchedule | WeeklySchedule | MonthlySchedule, start: datetime, zone: ZoneInfo
) -> datetime:
    for day in _days_from(start.astimezone(zone).date()):
        if _runs_on(pattern, day):
            found = _instant(day, pattern.time, zone)
            if found > start:
                return found
    raise ValueError("the pattern has no next run")


def _runs_on(pattern: DailySchedule | WeeklySchedule | MonthlySchedule, day: date) -> bool:
    match pattern:
        case DailySchedule():
            return True
        case WeeklySchedule():
            return _WEEKDAYS[day.weekday()] in pattern.days
        case MonthlySchedule():
            return day.day == pattern.day


def _days_from(first: date) -> Iterator[date]:
    # From the day before: where the clock goes back over midnight, its times come again.
    for number in range(-1, _HORIZON.days):
        yield first + timedelta(days=number)


def _instant(day: date, at: time, zone: ZoneInfo) -> datetime:
    """The instant of a local time: the earlier of two; the end of the gap if one skips it."""
    local = datetime.combine(day, at.replace(tzinfo=None, fold=0), zone)
    instant = local.astimezone(UTC)
    if instant.astimezone(zone).replace(tzinfo=None) == local.replace(tzinfo=None):
        return instant
    # Read with the offset after the gap it lies before the gap's end, with the one before after it.
    early = _floor(local.replace(fold=1).astimezone(UTC))
    after = instant.astimezone(zone).utcoffset()
    while early.astimezone(zone).utcoffset() != after:
        early += _QUARTER
    return early


def _next_cron_by_day(times: CronTimes, start: datetime, zone: ZoneInfo) -> datetime:
    minutes = sorted(times.minutes)
    for day in _days_from(start.astimezone(zone).date()):
        if not times.matches_day(day):
            continue
        for hour in sorted(times.hours):
            if _instant(day, time(hour, minutes[-1]), zone) > start:
                found = (_instant(day, time(hour, minute), zone) for minute in minutes)
                return next(instant for instant in found if instant > start)
    raise ValueError("the pattern has no next run")


def _next_hourly(pattern: HourlySchedule, start: datetime, zone: ZoneInfo) -> datetime:
    wanted = (pattern.minute, pattern.second)
    # Where the offset changes by half an hour, the next one is up to an hour and a half away.
    for quarter in _quarters_from(start):
        for minute in range(15):
            instant = quarter + timedelta(minutes=minute, seconds=pattern.second)
            local = instant.astimezone(zone)
            if instant > start and (local.minute, local.second) == wanted:
                return instant
    raise ValueError("the pattern has no next run")


def _next_cron(times: CronTimes, start: datetime, zone: ZoneInfo) -> datetime:
    end = start + _HORIZON
    instant = (start + timedelta(minutes=1)).replace(second=0, microsecond=0)
    while instant < end:
        local = instant.astimezone(zone)
        if not times.matches_day(local.date()):
            instant = _next_midnight(instant, local, zone)
        elif local.hour not in times.hours:
            instant = _floor(instant) + _QUARTER
        elif local.minute not in times.minutes:
            instant += timedelta(minutes=1)
        else:
            return instant
    raise ValueError("the pattern has no next run")


def _next_midnight(instant: datetime, local: datetime, zone: ZoneInfo) -> datetime:
    midnight = datetime.combine(local.date() + timedelta(days=1), time(), zone).astimezone(UTC)
    return midnight if midnight > instant else _floor(instant) + _QUARTER


def _quarters_from(start: datetime) -> Iterator[datetime]:
    for number in range(16):
        yield _floor(start) + number * _QUARTER


def _floor(instant: datetime) -> datetime:
    return instant.replace(minute=instant.minute // 15 * 15, second=0, microsecond=0)
