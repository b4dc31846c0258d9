"""`horsies schedule`: see and steer the schedules of an app."""

import json
import sys
from collections.abc import Callable
from datetime import UTC, datetime
from functools import wraps
from typing import Any, TypeVar
from zoneinfo import ZoneInfo

import click
from pydantic_core import to_jsonable_python

from horsies.app import Horsies
from horsies.cli.schedule_patterns import read_pattern, takes_pattern
from horsies.cli.schedule_tables import print_history, print_list, print_slots, show_instant
from horsies.config.schedules import AnySchedule, TaskSchedule, WorkflowSchedule
from horsies.locator import load_app
from horsies.result import Err
from horsies.result.broker import BrokerResult
from horsies.scheduling.next_run import read_zone

T = TypeVar("T")
Command = Callable[..., object]
_AS_JSON = click.option("--json", "as_json", is_flag=True, help="Print JSON.")
_YES = click.option("--yes", is_flag=True, help="Do not ask for confirmation.")
_MODULE = click.option("-m", "--module", help="The app: shop.queue:app or shop/queue.py:app.")
_TIMES = ["%Y-%m-%d", "%Y-%m-%dT%H:%M", "%Y-%m-%d %H:%M", "%Y-%m-%dT%H:%M:%S"]


def _takes_name(function: Command) -> Command:
    """Add [MODULE] NAME and -m; the command gets `app` and `name`."""

    @click.argument("places", nargs=-1, required=True, metavar="[MODULE] NAME")
    @_MODULE
    @wraps(function)
    def command(places: tuple[str, ...], module: str | None, **rest: Any) -> object:
        *before, name = places
        if len(before) > (module is None):
            raise click.UsageError(f"one schedule at a time, not {' '.join(places)}")
        return function(app=_load(module or next(iter(before), None)), name=name, **rest)

    return command


def _takes_zone(function: Command) -> Command:
    """Add --tz; the command gets `zone`: the reader's, this machine's unless one is named."""

    @click.option("--tz", help="Show times in this zone, such as Europe/Berlin.  [default: local]")
    @wraps(function)
    def command(tz: str | None, **rest: Any) -> object:
        try:
            zone = None if tz is None else read_zone(tz)
        except ValueError as error:
            raise click.BadParameter(str(error), param_hint="--tz") from error
        return function(zone=zone, **rest)

    return command


@click.group("schedule")
def command() -> None:
    """See and steer schedules while schedulers run: no deploy, no restart."""


@command.command("list")
@click.argument("place", required=False, metavar="[MODULE]")
@_MODULE
@_takes_zone
@_AS_JSON
def list_all(place: str | None, module: str | None, zone: ZoneInfo | None, as_json: bool) -> None:
    """List all schedules with their next run."""
    infos = _value(_load(module or place).schedules.list())
    if as_json:
        _print_json(infos)
    else:
        print_list(infos, zone)


@command.command("show")
@_takes_name
@click.option("--count", type=click.IntRange(1, 1000), default=5, show_default=True)
@_takes_zone
@_AS_JSON
def show(app: Horsies, name: str, count: int, zone: ZoneInfo | None, as_json: bool) -> None:
    """Show one schedule and its next runs."""
    runs = _value(app.schedules.next_runs(name, count))
    (info,) = (one for one in _value(app.schedules.list()) if one.name == name)
    if as_json:
        _print_json({"schedule": info, "next_runs": runs})
        return
    click.echo(f"{info.name}: {info.target}, {info.words} ({info.timezone})")
    if info.problem:
        click.echo(f"  problem: {info.problem}")
    if info.paused_at is not None:
        reason = f": {info.pause_reason}" if info.pause_reason else ""
        click.echo(f"  paused since {show_instant(info.paused_at, zone)}{reason}")
    elif not runs:
        click.echo("  has ended: no further runs")
    for run in runs:
        click.echo(f"  next  {show_instant(run, zone)}")
    if info.last_run_at is not None:
        last = show_instant(info.last_run_at, zone)
        click.echo(f"  last  {last}  {info.last_task_id}  ({info.run_count} runs)")


@command.command("pause")
@_takes_name
@click.option("--reason", help="Shown to whoever wonders why nothing runs.")
def pause(app: Horsies, name: str, reason: str | None) -> None:
    """Send no runs until the schedule is resumed."""
    _value(app.schedules.pause(name, reason=reason))
    click.echo(f"{name} is paused")


@command.command("resume")
@_takes_name
@_takes_zone
def resume(app: Horsies, name: str, zone: ZoneInfo | None) -> None:
    """Go on with a paused schedule."""
    if not _value(app.schedules.resume(name)):
        click.echo(f"{name} was not paused")
        sys.exit(1)
    runs = _value(app.schedules.next_runs(name, 1))
    following = f", next run {show_instant(runs[0], zone)}" if runs else ""
    click.echo(f"{name} goes on{following}")


@command.command("run")
@_takes_name
def run_now(app: Horsies, name: str) -> None:
    """Send one run at once, beside those that are planned."""
    click.echo(f"sent {_value(app.schedules.run_now(name))}")


@command.command("backfill")
@_takes_name
@click.option("--from", "start", type=click.DateTime(_TIMES), required=True, help="First instant.")
@click.option("--to", "end", type=click.DateTime(_TIMES), required=True, help="End, excluded.")
@_takes_zone
@_YES
@_AS_JSON
def backfill(
    app: Horsies,
    name: str,
    start: datetime,
    end: datetime,
    zone: ZoneInfo | None,
    yes: bool,
    as_json: bool,
) -> None:
    """Send the slots of a range that were not sent.

    It shows them and asks first. --from and --to are times in the zone of --tz. To repeat it
    sends nothing twice.
    """
    first, last = _in_zone(start, zone), _in_zone(end, zone)
    preview = _value(app.schedules.backfill(name, first, last))
    if as_json and not yes:
        _print_json(preview)
        return
    if not as_json:
        print_slots(preview, zone)
    if preview.slots and not yes:
        click.confirm(f"Send {len(preview.slots)} run(s)?", abort=True)
    sent = _value(app.schedules.backfill(name, first, last, preview=False))
    if as_json:
        _print_json(sent)
    else:
        click.echo(f"{len(sent.slots)} run(s) sent")


@command.command("history")
@_takes_name
@click.option("--limit", type=click.IntRange(1, 10_000), default=20, show_default=True)
@_takes_zone
@_AS_JSON
def history(app: Horsies, name: str, limit: int, zone: ZoneInfo | None, as_json: bool) -> None:
    """Show what became of the last slots, and why some sent nothing."""
    runs = _value(app.schedules.history(name, limit))
    if as_json:
        _print_json([run._asdict() for run in runs])
    else:
        print_history(runs, zone)


@command.command("add")
@_takes_name
@click.option("--task", help="The task to send.")
@click.option("--workflow", help="The definition_key of the workflow to start.")
@takes_pattern
@click.option("--timezone", default="UTC", show_default=True, help="The zone of its clock.")
@click.option("--kwargs", default="{}", help="Arguments by name, as a JSON object.")
@click.option("--catch-up", is_flag=True, help="Send missed slots too.")
def add(
    app: Horsies,
    name: str,
    task: str | None,
    workflow: str | None,
    timezone: str,
    kwargs: str,
    catch_up: bool,
    **pattern: str | None,
) -> None:
    """Add a schedule at run time.

    It is stored in the database; running schedulers take it up at once.
    """
    if (task is None) == (workflow is None):
        raise click.UsageError("give one of --task and --workflow")
    fields: dict[str, Any] = {
        "name": name,
        "pattern": read_pattern(pattern),
        "timezone": timezone,
        "kwargs": _read_object(kwargs),
        "catch_up_missed": catch_up,
    }
    made: AnySchedule = (
        WorkflowSchedule(definition_key=workflow, **fields)
        if workflow is not None
        else TaskSchedule(task_name=task or "", **fields)
    )
    _value(app.schedules.add(made))
    runs = _value(app.schedules.next_runs(name, 1))
    shown = f"next run {show_instant(runs[0], None)}" if runs else "it has no run"
    click.echo(f"{name} is added, {shown}")


@command.command("remove")
@_takes_name
@_YES
def remove(app: Horsies, name: str, yes: bool) -> None:
    """Remove a schedule that was added at run time; its history stays."""
    if not yes:
        click.confirm(f"Remove {name}?", abort=True)
    _value(app.schedules.remove(name))
    click.echo(f"{name} is removed")


def _load(locator: str | None) -> Horsies:
    app = load_app(locator)
    app.import_task_modules()
    return app


def _value(result: BrokerResult[T]) -> T:
    if isinstance(result, Err):
        raise click.ClickException(result.err_value.message)
    return result.ok_value


def _print_json(value: object) -> None:
    click.echo(json.dumps(to_jsonable_python(value), indent=2))


def _in_zone(wall: datetime, zone: ZoneInfo | None) -> datetime:
    return (wall.astimezone() if zone is None else wall.replace(tzinfo=zone)).astimezone(UTC)


def _read_object(text: str) -> dict[str, Any]:
    try:
        value = json.loads(text)
    except ValueError as error:
        raise click.BadParameter(f"not JSON: {error}", param_hint="--kwargs") from error
    if not isinstance(value, dict):
        raise click.BadParameter("not a JSON object", param_hint="--kwargs")
    return value
