"""The options of `horsies schedule add` and `change` that say when: --cron, --daily and so on."""

import re
from collections.abc import Callable, Mapping
from datetime import time

import click
from pydantic import ValidationError

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
from horsies.errors import HorsiesError

_UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days"}


def takes_pattern(function: Callable[..., object]) -> Callable[..., object]:
    """Add the options to a command, which gets them by their names."""
    for option in (
        click.option("--monthly", metavar="DAY@HH:MM", help="Each month on this day."),
        click.option("--weekly", metavar="DAYS@HH:MM", help="On these days: mon,fri@09:00."),
        click.option("--daily", metavar="HH:MM", help="Each day at this time."),
        click.option("--hourly", metavar="MM", help="Each hour at this minute."),
        click.option("--every", metavar="90s|10m|2h|1d", help="At this interval."),
        click.option("--cron", metavar="EXPRESSION", help="Such as '30 9 * * mon-fri'."),
    ):
        function = option(function)
    return function


def read_pattern(options: Mapping[str, str | None]) -> SchedulePattern | None:
    """The pattern of the one option that is given; None if none is."""
    given = [(kind, text) for kind, text in options.items() if text is not None]
    if not given:
        return None
    if len(given) > 1:
        raise click.UsageError(f"give only one of {', '.join(f'--{kind}' for kind, _ in given)}")
    ((kind, text),) = given
    try:
        return _READERS[kind](text)
    except HorsiesError as error:
        raise click.BadParameter(error.message, param_hint=f"--{kind}") from error
    except ValidationError as error:
        problem = error.errors()[0]["msg"]
        raise click.BadParameter(f"{text!r}: {problem}", param_hint=f"--{kind}") from error
    except ValueError as error:
        raise click.BadParameter(str(error), param_hint=f"--{kind}") from error


def _read_interval(text: str) -> SchedulePattern:
    found = re.fullmatch(r"(\d+)([smhd])", text.strip())
    if found is None:
        raise ValueError(f"{text!r} is no interval; write 90s, 10m, 2h or 1d")
    return IntervalSchedule.model_validate({_UNITS[found[2]]: int(found[1])})


def _read_cron(text: str) -> SchedulePattern:
    return CronSchedule(expression=text)


def _read_hourly(text: str) -> SchedulePattern:
    if not re.fullmatch(r":?\d{1,2}", text):
        raise ValueError(f"{text!r} is no minute; write 0 to 59")
    return HourlySchedule(minute=int(text.removeprefix(":")))


def _read_daily(text: str) -> SchedulePattern:
    return DailySchedule(time=_read_time(text))


def _read_weekly(text: str) -> SchedulePattern:
    names, _, clock = text.rpartition("@")
    days = [_find_day(name) for name in names.split(",")]
    return WeeklySchedule(days=days, time=_read_time(clock))


def _read_monthly(text: str) -> SchedulePattern:
    day, _, clock = text.rpartition("@")
    if not day.isdecimal():
        raise ValueError(f"{text!r} has no day; write such as 15@09:00")
    return MonthlySchedule(day=int(day), time=_read_time(clock))


def _find_day(name: str) -> Weekday:
    wanted = name.strip().lower()
    for day in Weekday:
        if len(wanted) >= 3 and day.value.startswith(wanted):
            return day
    raise ValueError(f"{name!r} is no day of the week; write such as mon,fri@09:00")


def _read_time(text: str) -> time:
    if not re.fullmatch(r"\d{1,2}:\d{2}(:\d{2})?", text):
        raise ValueError(f"{text!r} is no time; write such as 09:00")
    hour, minute, second = map(int, [*text.split(":"), "0"][:3])
    try:
        return time(hour, minute, second)
    except ValueError as error:
        raise ValueError(f"{text!r} is no time: {error}") from error


_READERS: dict[str, Callable[[str], SchedulePattern]] = {
    "cron": _read_cron,
    "every": _read_interval,
    "hourly": _read_hourly,
    "daily": _read_daily,
    "weekly": _read_weekly,
    "monthly": _read_monthly,
}
