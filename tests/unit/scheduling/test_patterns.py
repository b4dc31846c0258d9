"""What a schedule may be: ranges, refusals with their cures, and what its hash tells apart."""

from datetime import UTC, datetime, time
from typing import Any

import pytest
from pydantic import ValidationError

from horsies import (
    ConfigurationError,
    CronSchedule,
    DailySchedule,
    HourlySchedule,
    IntervalSchedule,
    MonthlySchedule,
    ScheduleConfig,
    SchedulePattern,
    TaskSchedule,
    Weekday,
    WeeklySchedule,
)
from horsies.scheduling.slots import config_hash, due_slots, first_slot, slot_id
from horsies.scheduling.words import in_words

NINE = time(9)


def schedule(**fields: Any) -> TaskSchedule:
    return TaskSchedule(
        **{"name": "s", "task_name": "t", "pattern": HourlySchedule(minute=5)} | fields
    )


@pytest.mark.parametrize(
    ("model", "fields"),
    [
        *((IntervalSchedule, {unit: value}) for unit, most in
          (("seconds", 86_400), ("minutes", 1_440), ("hours", 168), ("days", 365))
          for value in (0, most + 1)),
        (HourlySchedule, {"minute": 60}),
        (HourlySchedule, {"minute": 0, "second": 60}),
        (HourlySchedule, {}),
        (WeeklySchedule, {"days": [], "time": NINE}),
        (MonthlySchedule, {"day": 0, "time": NINE}),
        (MonthlySchedule, {"day": 32, "time": NINE}),
        (DailySchedule, {}),
    ],
)  # fmt: skip
def test_fields_out_of_range_are_refused(model: type[Any], fields: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        model(**fields)


@pytest.mark.parametrize(
    ("fields", "wrong"),
    [
        ({"name": ""}, "name"),
        ({"name": "x" * 256}, "name"),
        ({"max_catch_up_runs": 0}, "max_catch_up_runs"),
        ({"max_catch_up_runs": 10_001}, "max_catch_up_runs"),
        ({"jitter_seconds": -1}, "jitter_seconds"),
        ({"jitter_seconds": 86_401}, "jitter_seconds"),
        ({"deadline_seconds": 0}, "deadline_seconds"),
        ({"start_at": datetime(2030, 1, 1)}, "start_at"),  # noqa: DTZ001  # without a zone
        ({"overlap": "sometimes"}, "overlap"),
        ({"nonsense": 1}, "nonsense"),
    ],
)
def test_schedule_fields_out_of_range_are_refused(fields: dict[str, Any], wrong: str) -> None:
    with pytest.raises(ValidationError, match=wrong):
        schedule(**fields)


@pytest.mark.parametrize(
    "fields",
    [{"check_interval_seconds": 0}, {"check_interval_seconds": 61}, {"owner": ""}],
    ids=str,
)
def test_all_schedules_have_ranges_too(fields: Any) -> None:
    with pytest.raises(ValidationError, match=next(iter(fields))):
        ScheduleConfig(**fields)


def test_interval_without_units_is_refused_with_its_cure() -> None:
    with pytest.raises(ConfigurationError, match="at least one time unit") as caught:
        IntervalSchedule()

    assert caught.value.code == "HRS-205"
    assert "all time units" in caught.value.notes[0]
    assert {"seconds", "minutes", "hours", "days"} <= set(
        str(caught.value.help_text).replace(",", " ").split()
    )


def test_repeated_days_are_refused() -> None:
    with pytest.raises(ConfigurationError, match="duplicate days"):
        WeeklySchedule(days=[Weekday.MONDAY, Weekday.MONDAY], time=NINE)


def test_repeated_names_are_refused() -> None:
    with pytest.raises(ConfigurationError, match="duplicate schedule names"):
        ScheduleConfig(schedules=[schedule(), schedule()])


def test_end_before_start_is_refused() -> None:
    day = datetime(2030, 1, 1, tzinfo=UTC)

    with pytest.raises(ConfigurationError, match="ends before it starts"):
        schedule(start_at=day, end_at=day)


def test_interval_sums_its_units() -> None:
    assert IntervalSchedule(seconds=1, minutes=2, hours=3, days=4).total_seconds() == 356_521


def test_defaults_are_those_of_the_contract() -> None:
    made, config = schedule(), ScheduleConfig()

    assert (made.args, made.kwargs, made.queue_name) == ((), {}, None)
    assert (made.enabled, made.timezone) == (True, "UTC")
    assert (made.catch_up_missed, made.max_catch_up_runs) == (False, 100)
    assert (made.overlap, made.jitter_seconds, made.deadline_seconds) == ("allow", 0, None)
    assert (made.start_at, made.end_at, config.owner) == (None, None, "default")
    assert (config.enabled, config.schedules, config.check_interval_seconds) == (True, [], 1)


def test_hash_tells_only_pattern_and_zone_apart() -> None:
    plain = config_hash(schedule())

    assert len(plain) == 64
    assert plain == config_hash(
        schedule(kwargs={"a": 1}, args=(1,), queue_name="q", catch_up_missed=True, name="other")
    )
    assert plain != config_hash(schedule(timezone="Europe/Berlin"))
    assert plain != config_hash(schedule(pattern=HourlySchedule(minute=6)))


def test_slot_ids_are_the_same_everywhere() -> None:
    slot = datetime(2030, 1, 1, tzinfo=UTC)

    # Fixed for good: a release that changed it could send a slot twice.
    assert slot_id("daily", slot) == "17bd054f-0a24-53d5-b624-2de9ca093998"


def test_start_is_a_possible_slot_and_the_end_too() -> None:
    start, end = datetime(2030, 1, 1, 0, 5, tzinfo=UTC), datetime(2030, 1, 1, 2, 5, tzinfo=UTC)
    limited = schedule(start_at=start, end_at=end, catch_up_missed=True)

    assert first_slot(limited, datetime(2029, 1, 1, tzinfo=UTC)) == start
    due = due_slots(limited, start, datetime(2030, 1, 2, tzinfo=UTC))
    assert [slot.hour for slot in due.slots] == [0, 1, 2]
    assert due.next_run_at is None


@pytest.mark.parametrize(
    "pattern",
    [IntervalSchedule(hours=5), DailySchedule(time=NINE), CronSchedule(expression="0 5 * * *")],
)
def test_a_slot_after_the_last_year_of_the_calendar_never_comes(pattern: Any) -> None:
    late = schedule(pattern=pattern, start_at=datetime(9999, 12, 31, 23, tzinfo=UTC))

    assert first_slot(late, datetime(2030, 1, 1, tzinfo=UTC)) is None


@pytest.mark.parametrize(
    ("pattern", "words"),
    [
        (IntervalSchedule(seconds=1), "every second"),
        (IntervalSchedule(minutes=10), "every 10 minutes"),
        (IntervalSchedule(hours=1, minutes=30), "every 1 hour and 30 minutes"),
        (HourlySchedule(minute=5), "every hour at :05"),
        (DailySchedule(time=NINE), "every day at 09:00"),
        (DailySchedule(time=time(9, 0, 30)), "every day at 09:00:30"),
        (WeeklySchedule(days=[Weekday.MONDAY, Weekday.FRIDAY], time=NINE),
         "every Monday and Friday at 09:00"),
        (MonthlySchedule(day=1, time=NINE), "every month on day 1 at 09:00"),
        (MonthlySchedule(day=31, time=NINE),
         "every month on day 31 at 09:00, in months that have it"),
        (CronSchedule(expression="30 9 * * mon-fri"), "at 09:30 on Monday through Friday"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)  # fmt: skip
def test_patterns_are_said_in_words(pattern: SchedulePattern, words: str) -> None:
    assert in_words(pattern) == words
