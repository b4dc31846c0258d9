"""When a schedule runs next: tables of clock changes, and a brute-force search beside it."""

from collections.abc import Iterator
from datetime import UTC, datetime, time, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from horsies import (
    CronSchedule,
    DailySchedule,
    HourlySchedule,
    IntervalSchedule,
    MonthlySchedule,
    SchedulePattern,
    Weekday,
    WeeklySchedule,
)
from horsies.config.cron import CronTimes, read_cron
from horsies.scheduling.next_run import calculate_next_run, should_run_now

BERLIN, NEW_YORK, LORD_HOWE = "Europe/Berlin", "America/New_York", "Australia/Lord_Howe"


def utc(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


@pytest.mark.parametrize(
    ("pattern", "zone", "start", "expected"),
    [
        pytest.param(IntervalSchedule(minutes=1, seconds=30), BERLIN, "2025-01-01T00:00:00",
                     "2025-01-01T00:01:30", id="interval"),
        pytest.param(DailySchedule(time=time(9)), BERLIN, "2025-03-29T08:30:00",
                     "2025-03-30T07:00:00", id="daily over a clock change"),
        pytest.param(DailySchedule(time=time(2, 30)), BERLIN, "2025-03-29T12:00:00",
                     "2025-03-30T01:00:00", id="skipped local time runs right after the gap"),
        pytest.param(DailySchedule(time=time(2, 30)), BERLIN, "2025-03-30T01:00:00",
                     "2025-03-31T00:30:00", id="skipped local time runs once"),
        pytest.param(DailySchedule(time=time(2, 30)), BERLIN, "2025-10-25T12:00:00",
                     "2025-10-26T00:30:00", id="first of two"),
        pytest.param(DailySchedule(time=time(2, 30)), BERLIN, "2025-10-26T00:30:00",
                     "2025-10-27T01:30:00", id="not the second of two"),
        pytest.param(DailySchedule(time=time(2, 30)), NEW_YORK, "2025-03-09T05:00:00",
                     "2025-03-09T07:00:00", id="skipped in New York"),
        pytest.param(DailySchedule(time=time(1, 30)), NEW_YORK, "2025-11-01T12:00:00",
                     "2025-11-02T05:30:00", id="first of two in New York"),
        pytest.param(DailySchedule(time=time(1, 30)), NEW_YORK, "2025-11-02T05:30:00",
                     "2025-11-03T06:30:00", id="not the second of two in New York"),
        pytest.param(DailySchedule(time=time(1, 45)), LORD_HOWE, "2025-04-05T14:45:00",
                     "2025-04-06T15:15:00", id="not the second of two half hours"),
        pytest.param(DailySchedule(time=time(2, 15)), LORD_HOWE, "2025-10-04T12:00:00",
                     "2025-10-04T15:30:00", id="half an hour skipped"),
        pytest.param(DailySchedule(time=time(1, 45)), LORD_HOWE, "2025-04-05T12:00:00",
                     "2025-04-05T14:45:00", id="half an hour twice, the first"),
        pytest.param(HourlySchedule(minute=30), BERLIN, "2025-10-26T00:30:00",
                     "2025-10-26T01:30:00", id="hourly in the hour that comes twice"),
        pytest.param(HourlySchedule(minute=15), LORD_HOWE, "2025-10-04T15:00:00",
                     "2025-10-04T16:15:00", id="hourly over half an hour"),
        pytest.param(WeeklySchedule(days=[Weekday.SUNDAY], time=time(8)), "UTC",
                     "2025-01-01T00:00:00", "2025-01-05T08:00:00", id="weekly"),
        pytest.param(MonthlySchedule(day=31, time=time(0)), "UTC", "2025-01-31T00:00:00",
                     "2025-03-31T00:00:00", id="months without the day"),
        pytest.param(CronSchedule(expression="0 12 1 * mon"), "UTC", "2025-01-01T12:00:00",
                     "2025-01-06T12:00:00", id="either day of cron"),
        pytest.param(CronSchedule(expression="0 0 29 2 *"), "UTC", "2025-01-01T00:00:00",
                     "2028-02-29T00:00:00", id="leap day"),
        pytest.param(CronSchedule(expression="@weekly"), "UTC", "2025-01-01T00:00:00",
                     "2025-01-05T00:00:00", id="abbreviation"),
        pytest.param(HourlySchedule(minute=5, second=20), "UTC", "2025-01-01T00:05:20",
                     "2025-01-01T01:05:20", id="hourly with seconds, strictly later"),
        pytest.param(DailySchedule(time=time(9, 0, 30)), "UTC", "2025-01-01T09:00:00",
                     "2025-01-01T09:00:30", id="daily with seconds"),
        pytest.param(CronSchedule(expression="@hourly"), "UTC", "2025-01-01T00:00:00",
                     "2025-01-01T01:00:00", id="@hourly"),
        pytest.param(CronSchedule(expression="@daily"), "UTC", "2025-01-01T00:00:00",
                     "2025-01-02T00:00:00", id="@daily"),
        pytest.param(CronSchedule(expression="@monthly"), "UTC", "2025-01-01T00:00:00",
                     "2025-02-01T00:00:00", id="@monthly"),
        pytest.param(CronSchedule(expression="@yearly"), "UTC", "2025-01-01T00:00:00",
                     "2026-01-01T00:00:00", id="@yearly"),
        pytest.param(CronSchedule(expression="0 0 * * 7"), "UTC", "2025-01-01T00:00:00",
                     "2025-01-05T00:00:00", id="seven is Sunday"),
        pytest.param(CronSchedule(expression="0 0 * FEB Mon"), "UTC", "2025-01-01T00:00:00",
                     "2025-02-03T00:00:00", id="names in any case"),
        pytest.param(CronSchedule(expression="0 3,10-20/5 * * *"), "UTC", "2025-01-01T10:00:00",
                     "2025-01-01T15:00:00", id="lists, and ranges with a step"),
    ],
)  # fmt: skip
def test_next_run(pattern: SchedulePattern, zone: str, start: str, expected: str) -> None:
    assert calculate_next_run(pattern, utc(start), zone) == utc(expected)


SAO_PAULO = "America/Sao_Paulo"  # until 2019 its clock changed at midnight


@pytest.mark.parametrize(
    ("expression", "zone", "start", "expected"),
    [
        pytest.param("30 2 * * *", BERLIN, "2026-10-24T12:00",
                     ["2026-10-25T00:30", "2026-10-26T01:30"], id="Berlin, autumn: once"),
        pytest.param("30 2 * * *", BERLIN, "2026-03-28T12:00",
                     ["2026-03-29T01:00", "2026-03-30T00:30"], id="Berlin, spring: after the gap"),
        pytest.param("*/20 2 * * *", BERLIN, "2026-10-25T00:00",
                     ["2026-10-25T00:20", "2026-10-25T00:40", "2026-10-26T01:00"],
                     id="Berlin, autumn: all minutes of the hour, once"),
        pytest.param("*/20 2,4 * * *", BERLIN, "2026-03-29T00:00",
                     ["2026-03-29T01:00", "2026-03-29T02:00", "2026-03-29T02:20"],
                     id="Berlin, spring: one run for all skipped minutes"),
        pytest.param("0 2,3 * * *", BERLIN, "2026-03-28T12:00",
                     ["2026-03-29T01:00", "2026-03-30T00:00", "2026-03-30T01:00"],
                     id="Berlin, spring: the skipped hour and the next are one run"),
        pytest.param("30 * * * *", BERLIN, "2026-10-25T00:00",
                     ["2026-10-25T00:30", "2026-10-25T01:30", "2026-10-25T02:30"],
                     id="Berlin, autumn: every hour runs through both"),
        pytest.param("0 */2 * * *", BERLIN, "2026-10-24T23:00",
                     ["2026-10-25T00:00", "2026-10-25T01:00", "2026-10-25T03:00"],
                     id="Berlin, autumn: a step of hours runs through both"),
        pytest.param("30 * * * *", BERLIN, "2026-03-29T00:00",
                     ["2026-03-29T00:30", "2026-03-29T01:30"], id="Berlin, spring: every hour"),
        pytest.param("30 1 * * *", NEW_YORK, "2026-11-01T04:00",
                     ["2026-11-01T05:30", "2026-11-02T06:30"], id="New York, autumn: once"),
        pytest.param("30 2 * * *", NEW_YORK, "2026-03-08T05:00",
                     ["2026-03-08T07:00", "2026-03-09T06:30"], id="New York, spring"),
        pytest.param("45 1 * * *", LORD_HOWE, "2026-04-04T12:00",
                     ["2026-04-04T14:45", "2026-04-05T15:15"], id="Lord Howe, autumn: once"),
        pytest.param("15 2 * * *", LORD_HOWE, "2026-10-03T12:00",
                     ["2026-10-03T15:30", "2026-10-04T15:15"], id="Lord Howe, spring"),
        pytest.param("45 2 * * *", LORD_HOWE, "2026-10-03T12:00",
                     ["2026-10-03T15:45", "2026-10-04T15:45"], id="Lord Howe, after the half hour"),
        pytest.param("30 0 * * *", SAO_PAULO, "2018-11-03T12:00",
                     ["2018-11-04T03:00", "2018-11-05T02:30"], id="Sao Paulo, midnight skipped"),
        pytest.param("0 0 4 11 *", SAO_PAULO, "2018-01-01T00:00",
                     ["2018-11-04T03:00", "2019-11-04T03:00"], id="Sao Paulo, a day's midnight"),
        pytest.param("30 23 * * *", SAO_PAULO, "2018-02-17T12:00",
                     ["2018-02-18T01:30", "2018-02-19T02:30"], id="Sao Paulo, autumn: once"),
    ],
)  # fmt: skip
def test_cron_with_fixed_hours_follows_the_daily_rule(
    expression: str, zone: str, start: str, expected: list[str]
) -> None:
    found, at = [], utc(start)
    for _ in expected:
        at = calculate_next_run(CronSchedule(expression=expression), at, zone)
        found.append(at)

    assert found == [utc(text) for text in expected]


INSTANTS = st.integers(1_704_067_200, 1_798_761_600).map(  # 2024 to 2027
    lambda seconds: datetime.fromtimestamp(seconds, UTC)
)
ZONES = st.sampled_from(
    ["UTC", BERLIN, NEW_YORK, LORD_HOWE, "Asia/Kathmandu", "America/Havana", "Africa/Cairo"]
)
# Half of them near a clock change of Berlin, New York, Lord Howe, Havana or Cairo.
CHANGES = [
    *("2026-03-29T00:00", "2026-10-24T23:00", "2026-03-08T05:00", "2026-11-01T04:00"),
    *("2026-04-04T13:00", "2026-10-03T13:00", "2026-04-23T20:00", "2026-10-29T19:00"),
]
NEAR = st.builds(
    lambda change, minutes: utc(change) + timedelta(minutes=minutes),
    st.sampled_from(CHANGES),
    st.integers(0, 240),
)


def brute_force(expression: str, start: datetime, zone: str) -> datetime:
    """Minute by minute: what the wall clock shows, and what it has just skipped."""
    times, local = read_cron(expression), ZoneInfo(zone)
    instant = start.replace(second=0) + timedelta(minutes=1)
    while not is_cron_minute(times, instant, local):
        instant += timedelta(minutes=1)
    return instant


def is_cron_minute(times: CronTimes, instant: datetime, zone: ZoneInfo) -> bool:
    wall = instant.astimezone(zone)
    if times.has_any_hour:
        return times.matches(wall)
    if wall.fold == 0 and times.matches(wall):
        return True
    return any(map(times.matches, skipped_before(instant, zone)))


def skipped_before(instant: datetime, zone: ZoneInfo) -> Iterator[datetime]:
    """The minutes that the wall clock jumps over to reach this instant, at a quarter if at all."""
    if instant.minute % 15:
        return
    wall = instant.astimezone(zone).replace(tzinfo=None)
    before = (instant - timedelta(minutes=1)).astimezone(zone).replace(tzinfo=None)
    while (before := before + timedelta(minutes=1)) < wall:
        yield before


@settings(max_examples=150, deadline=None)
@given(
    start=INSTANTS | NEAR,
    zone=ZONES,
    expression=st.sampled_from(
        [
            "*/7 * * * *",
            "30 2 * * *",
            "0 0 * * *",
            "59 23 * * *",
            "15 1-3 * * sun",
            "0 */5 */2 * *",
            "*/20 1,2,3 * * *",
            "45 0-2 * 3,10,11 *",
        ]
    ),
)
def test_cron_finds_what_a_search_finds(start: datetime, zone: str, expression: str) -> None:
    pattern = CronSchedule(expression=expression)

    assert calculate_next_run(pattern, start, zone) == brute_force(expression, start, zone)


TIMES = st.times().map(lambda t: t.replace(microsecond=0, second=0))
DAYS = list(Weekday)


def is_planned(pattern: SchedulePattern, local: datetime) -> bool:
    """Whether a minute of the wall clock is one of the pattern's, told from its fields alone."""
    match pattern:
        case HourlySchedule():
            return local.minute == pattern.minute
        case WeeklySchedule() if DAYS[local.weekday()] not in pattern.days:
            return False
        case MonthlySchedule() if local.day != pattern.day:
            return False
        case DailySchedule() | WeeklySchedule() | MonthlySchedule():
            return (local.hour, local.minute, local.fold) == (*hour_and_minute(pattern.time), 0)
        case _:
            raise AssertionError(pattern)


def hour_and_minute(at: time) -> tuple[int, int]:
    return at.hour, at.minute


@settings(max_examples=150, deadline=None)
@given(
    start=INSTANTS | NEAR,
    zone=ZONES,
    pattern=st.one_of(
        st.builds(HourlySchedule, minute=st.integers(0, 59)),
        st.builds(DailySchedule, time=TIMES),
        st.builds(
            WeeklySchedule,
            days=st.lists(st.sampled_from(DAYS), min_size=1, unique=True),
            time=TIMES,
        ),
        st.builds(MonthlySchedule, day=st.integers(1, 31), time=TIMES),
    ),
)
def test_every_pattern_finds_what_a_search_finds(
    start: datetime, zone: str, pattern: SchedulePattern
) -> None:
    local, instant = ZoneInfo(zone), start.replace(second=0) + timedelta(minutes=1)
    while not is_planned(pattern, instant.astimezone(local)) and not (
        not isinstance(pattern, HourlySchedule)
        and any(is_planned(pattern, wall) for wall in skipped_before(instant, local))
    ):
        instant += timedelta(minutes=1)

    assert calculate_next_run(pattern, start, zone) == instant


@pytest.mark.parametrize(
    "expression",
    ["", "* * * *", "* * * * * *", "60 * * * *", "0 0 30 2 *", "0 0 L * *", "5/15 * * * *",
     "a * * * *", "1-0 * * * *", "0 0 * * mon#2", "*/0 * * * *", "@often"],
)  # fmt: skip
def test_expressions_that_cannot_be_read_are_refused(expression: str) -> None:
    from horsies import ConfigurationError

    with pytest.raises(ConfigurationError, match="invalid cron expression") as caught:
        CronSchedule(expression=expression)

    assert caught.value.code == "HRS-205"


def test_naive_times_and_unknown_zones_are_refused() -> None:
    with pytest.raises(ValueError, match="timezone-aware"):
        calculate_next_run(HourlySchedule(minute=0), datetime(2025, 1, 1))  # noqa: DTZ001
    with pytest.raises(ValueError, match="unknown timezone"):
        calculate_next_run(HourlySchedule(minute=0), utc("2025-01-01T00:00:00"), "Mars/Olympus")


def test_what_has_no_next_run_is_due() -> None:
    now = utc("2025-01-01T00:00:00")

    assert should_run_now(None, now)
    assert should_run_now(now, now)
    assert not should_run_now(now + timedelta(seconds=1), now)


def test_workflows_cannot_be_queued() -> None:
    from horsies import ConfigurationError, Overlap, WorkflowSchedule

    with pytest.raises(ConfigurationError, match="cannot be queued"):
        WorkflowSchedule(
            name="nightly",
            definition_key="shop.nightly",
            pattern=HourlySchedule(minute=0),
            overlap=Overlap.QUEUE,
        )
