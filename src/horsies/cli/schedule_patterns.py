"""The options of `horsies schedule add` that say when: --cron, --every, --hourly, --daily."""

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
    SchedulePattern,
)
from horsies.errors import HorsiesError

_UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days"}


def takes_pattern(function: Callable[..., object]) -> Callable[..., object]:
    """Add the options to a command, which gets them by their names."""
    for option in (
        click.option("--daily", metavar="HH:MM", help="Each day at this time."),
        click.option("--hourly", metavar="MM", help="Each hour at this minute."),
        click.option("--every", metavar="90s|10m|2h|1d", help="At this interval."),
        click.option("--cron", metavar="EXPRESSION", help="Such as '30 9 * * mon-fri'."),
    ):
        function = option(function)
    return function


def read_pattern(options: Mapping[str, str | None]) -> SchedulePattern:
    """The pattern of the one option that is given."""
    given = [(kind, text) for kind, text in options.items() if text is not None]
    if len(given) != 1:
        raise click.UsageError("give one of --cron, --every, --hourly and --daily")
    ((kind, text),) = given
    try:
        return _READERS[kind](text)
    except HorsiesError as error:
        raise click.BadParameter(error.message, param_hint=f"--{kind}") from error
    except (ValueError, ValidationError) as error:
        problem = error.errors()[0]["msg"] if isinstance(error, ValidationError) else str(error)
        raise click.BadParameter(problem, param_hint=f"--{kind}") from error


def _read_interval(text: str) -> SchedulePattern:
    found = re.fullmatch(r"(\d+)([smhd])", text.strip())
    if found is None:
        raise ValueError(f"{text!r} is no interval; write 90s, 10m, 2h or 1d")
    return IntervalSchedule.model_validate({_UNITS[found[2]]: int(found[1])})


def _read_cron(text: str) -> SchedulePattern:
    return CronSchedule(expression=text)


def _read_hourly(text: str) -> SchedulePattern:
    return HourlySchedule(minute=int(text.removeprefix(":")))


def _read_daily(text: str) -> SchedulePattern:
    return DailySchedule(time=time.fromisoformat(text))


_READERS: dict[str, Callable[[str], SchedulePattern]] = {
    "cron": _read_cron,
    "every": _read_interval,
    "hourly": _read_hourly,
    "daily": _read_daily,
}
