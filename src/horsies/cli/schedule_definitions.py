"""The options of `horsies schedule add` and `change`: everything that a stored schedule has."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime, tzinfo
from functools import wraps
from typing import Any
from zoneinfo import ZoneInfo

import click
from pydantic import ValidationError

from horsies.cli.schedule_patterns import read_pattern, takes_pattern
from horsies.config.schedules import (
    AnySchedule,
    Overlap,
    SchedulePattern,
    TaskSchedule,
    WorkflowSchedule,
)
from horsies.errors import HorsiesError
from horsies.scheduling.next_run import read_zone

Command = Callable[..., object]
PATTERNS = ("cron", "every", "hourly", "daily", "weekly", "monthly")
_FIELDS = {
    "task_name": "--task",
    "definition_key": "--workflow",
    "timezone": "--timezone",
    "args": "--args",
    "kwargs": "--kwargs",
    "queue_name": "--queue",
    "catch_up_missed": "--catch-up",
    "max_catch_up_runs": "--max-catch-up-runs",
    "overlap": "--overlap",
    "jitter_seconds": "--jitter",
    "start_at": "--start",
    "end_at": "--end",
    "deadline_seconds": "--deadline",
}
_OPTIONAL = {"queue_name", "start_at", "end_at", "deadline_seconds"}
_NONE = "none"


@dataclass(frozen=True, slots=True)
class DefinitionOptions:
    """What was given: the pattern, and fields of a schedule as texts, flags and numbers."""

    pattern: SchedulePattern | None
    fields: Mapping[str, Any]


_OPTIONS = (
    click.option("--task", "task_name", help="The task to send."),
    click.option("--workflow", "definition_key", help="The definition_key of a workflow to start."),
    takes_pattern,
    click.option("--timezone", help="The zone of its clock.  [default: UTC]"),
    click.option("--args", help="Arguments by position, as a JSON array."),
    click.option("--kwargs", help="Arguments by name, as a JSON object."),
    click.option("--queue", "queue_name", help="Another queue than the task's; none: the task's."),
    click.option("--catch-up/--no-catch-up", "catch_up_missed", default=None, help="Missed slots."),
    click.option("--max-catch-up-runs", type=int, metavar="N", help="At most so many per tick."),
    click.option(
        "--overlap",
        type=click.Choice([one.value for one in Overlap]),
        help="While the last run has not ended: run beside it, skip the slot, let one wait.",
    ),
    click.option("--jitter", "jitter_seconds", type=int, metavar="S", help="Delay runs up to S s."),
    click.option("--start", "start_at", metavar="TIME", help="No slot before; none: from now on."),
    click.option("--end", "end_at", metavar="TIME", help="No slot after; none: without end."),
    click.option(
        "--deadline", "deadline_seconds", metavar="S", help="Expire runs S s after; none: never."
    ),
)


def takes_definition(function: Command) -> Command:
    """Add the options; the command gets them as `options`."""

    @wraps(function)
    def command(**given: Any) -> object:
        pattern = read_pattern({kind: given.pop(kind) for kind in PATTERNS})
        fields = {name: given.pop(name) for name in _FIELDS}
        present = {name: value for name, value in fields.items() if value is not None}
        return function(options=DefinitionOptions(pattern, _read_json(present)), **given)

    decorated: Command = command
    for option in reversed(_OPTIONS):
        decorated = option(decorated)
    return decorated


def new_schedule(name: str, options: DefinitionOptions) -> AnySchedule:
    """The schedule that these options describe."""
    if ("task_name" in options.fields) == ("definition_key" in options.fields):
        raise click.UsageError("give one of --task and --workflow")
    if options.pattern is None:
        raise click.UsageError(f"give one of {', '.join(f'--{kind}' for kind in PATTERNS)}")
    kind = TaskSchedule if "task_name" in options.fields else WorkflowSchedule
    return _make(kind, {"name": name, "pattern": options.pattern, **options.fields})


def changed_schedule(old: AnySchedule, options: DefinitionOptions) -> AnySchedule:
    """The same schedule, with what these options name."""
    if not options.fields and options.pattern is None:
        raise click.UsageError("say what to change, such as --daily 09:00")
    pattern = options.pattern or old.pattern
    return _make(type(old), {**old.model_dump(), "pattern": pattern, **options.fields})


def _make(kind: type[AnySchedule], fields: dict[str, Any]) -> AnySchedule:
    unfit = [name for name in fields if name not in kind.model_fields]
    if unfit:
        what = "a task" if kind is TaskSchedule else "a workflow"
        hints = ", ".join(_FIELDS[name] for name in unfit)
        raise click.UsageError(f"{hints}: not for the schedule of {what}")
    zone = _read_zone(str(fields.get("timezone", "UTC")))
    for name in _OPTIONAL & fields.keys():
        if fields[name] == _NONE:
            fields[name] = None
        elif name in ("start_at", "end_at") and isinstance(fields[name], str):
            fields[name] = read_instant(_FIELDS[name], fields[name], zone)
    try:
        return kind.model_validate(fields)
    except HorsiesError as error:
        raise click.ClickException(error.message) from error
    except ValidationError as error:
        first = error.errors()[0]
        hint = _FIELDS.get(str(first["loc"][0]), str(first["loc"][0]))
        raise click.BadParameter(str(first["msg"]), param_hint=hint) from error


def _read_json(fields: dict[str, Any]) -> dict[str, Any]:
    for name, kind, called in (("args", list, "array"), ("kwargs", dict, "object")):
        if name not in fields:
            continue
        try:
            fields[name] = json.loads(fields[name])
        except ValueError as error:
            raise click.BadParameter(f"not JSON: {error}", param_hint=f"--{name}") from error
        if not isinstance(fields[name], kind):
            raise click.BadParameter(f"not a JSON {called}", param_hint=f"--{name}")
    return fields


def _read_zone(name: str) -> ZoneInfo:
    try:
        return read_zone(name)
    except ValueError as error:
        raise click.BadParameter(str(error), param_hint="--timezone") from error


def read_instant(option: str, text: str, zone: tzinfo | None) -> datetime:
    """An instant; without an offset it is on the clock of the zone, None being this machine's."""
    try:
        read = datetime.fromisoformat(text)
    except ValueError as error:
        problem = f"{text!r} is no time: {error}; write such as 2030-01-31T09:00"
        raise click.BadParameter(problem, param_hint=option) from error
    if read.tzinfo is not None:
        return read
    return read.astimezone() if zone is None else read.replace(tzinfo=zone)
