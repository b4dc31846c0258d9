"""`horsies schedule`: see and steer the schedules of an app."""

import json
import sys
from collections.abc import Callable
from datetime import datetime
from functools import wraps
from typing import Any, TypeVar
from zoneinfo import ZoneInfo

import click
from pydantic_core import to_jsonable_python

from horsies.app import Horsies
from horsies.cli.asking import confirm, takes_yes
from horsies.cli.printing import echo
from horsies.cli.schedule_definitions import (
    DefinitionOptions,
    changed_schedule,
    new_schedule,
    read_instant,
    takes_definition,
)
from horsies.cli.schedule_tables import (
    next_in_words,
    print_history,
    print_list,
    print_slots,
    settings_in_words,
    show_instant,
)
from horsies.locator import load_app
from horsies.result import Err
from horsies.result.broker import BrokerResult
from horsies.scheduling.next_run import read_zone

T = TypeVar("T")
Command = Callable[..., object]
Span = tuple[datetime, datetime]
_AS_JSON = click.option("--json", "as_json", is_flag=True, help="Print JSON.")
_MODULE = click.option("-m", "--module", help="The app: shop.queue:app or shop/queue.py:app.")


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


def _takes_range(function: Command) -> Command:
    """Add --from and --to; the command gets `span`, and `zone` as before."""

    @click.option("--to", "end", required=True, metavar="TIME", help="The end, excluded.")
    @click.option("--from", "start", required=True, metavar="TIME", help="2030-01-31T09:00")
    @wraps(function)
    def command(start: str, end: str, zone: ZoneInfo | None, **rest: Any) -> object:
        span = (read_instant("--from", start, zone), read_instant("--to", end, zone))
        return function(span=span, zone=zone, **rest)

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
    echo(f"{info.name}: {info.target}, {info.words} ({info.timezone})")
    if info.definition is not None and (more := settings_in_words(info.definition)):
        echo(f"  with  {more}")
    if info.problem:
        echo(f"  problem: {info.problem}")
    if info.paused_at is not None:
        reason = f": {info.pause_reason}" if info.pause_reason else ""
        echo(f"  paused since {show_instant(info.paused_at, zone)}{reason}")
    elif not runs:
        echo("  has ended: no further runs")
    for run in runs:
        echo(f"  next  {show_instant(run, zone)}")
    if info.last_run_at is not None:
        last = show_instant(info.last_run_at, zone)
        echo(f"  last  {last}  {info.last_task_id}  (runs so far: {info.run_count})")


@command.command("pause")
@_takes_name
@click.option("--reason", help="Shown to whoever wonders why nothing runs.")
def pause(app: Horsies, name: str, reason: str | None) -> None:
    """Send no runs until the schedule is resumed."""
    _value(app.schedules.pause(name, reason=reason))
    echo(f"{name} is paused")


@command.command("resume")
@_takes_name
@_takes_zone
def resume(app: Horsies, name: str, zone: ZoneInfo | None) -> None:
    """Go on with a paused schedule."""
    if not _value(app.schedules.resume(name)):
        echo(f"{name} was not paused")
        sys.exit(1)
    runs = _value(app.schedules.next_runs(name, 1))
    following = f", next run {show_instant(runs[0], zone)}" if runs else ""
    echo(f"{name} goes on{following}")


@command.command("run")
@_takes_name
def run_now(app: Horsies, name: str) -> None:
    """Send one run at once, beside those that are planned."""
    echo(f"sent {_value(app.schedules.run_now(name))}")


@command.command("backfill")
@_takes_name
@_takes_zone
@_takes_range
@click.option("--again", is_flag=True, help="Send also slots that may have been sent long ago.")
@takes_yes
@_AS_JSON
def backfill(
    app: Horsies,
    name: str,
    span: Span,
    zone: ZoneInfo | None,
    again: bool,
    yes: bool,
    as_json: bool,
) -> None:
    """Send the slots of a range that were not sent.

    It shows them and asks first. --from and --to are times in the zone of --tz. Repeating it
    sends nothing twice. Slots whose history is pruned are skipped: they may have been sent.
    """
    preview = _value(app.schedules.backfill(name, *span, again=again))
    if as_json and not yes:
        _print_json(preview)
        return
    if not as_json:
        print_slots(preview, zone)
    if preview.slots:
        confirm(f"Send {len(preview.slots)} run(s)?", yes=yes)
    sent = _value(app.schedules.backfill(name, *span, preview=False, again=again))
    if as_json:
        _print_json(sent)
    else:
        echo(f"{len(sent.slots)} run(s) sent")


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
@takes_definition
def add(app: Horsies, name: str, options: DefinitionOptions) -> None:
    """Add a schedule at run time.

    It is stored in the database; running schedulers take it up at once.
    """
    _value(app.schedules.add(new_schedule(name, options)))
    echo(f"{name} is added; next run: {_next_run(app, name)}")


@command.command("change")
@_takes_name
@takes_definition
def change(app: Horsies, name: str, options: DefinitionOptions) -> None:
    """Change a schedule that was added at run time.

    What is not named stays; `none` takes away a queue, a start, an end or a deadline. With another
    pattern, zone, start or end the next run is worked out anew from now.
    """
    found = [info for info in _value(app.schedules.list()) if info.name == name]
    if not found:
        raise click.ClickException(f"there is no schedule {name!r}")
    if not found[0].is_dynamic:
        raise click.ClickException(f"{name!r} is a schedule in code: change it there, or pause it")
    if found[0].definition is None:
        raise click.ClickException(f"{found[0].problem}; remove it and add it anew")
    _value(app.schedules.change(changed_schedule(found[0].definition, options)))
    echo(f"{name} is changed; next run: {_next_run(app, name)}")


def _next_run(app: Horsies, name: str) -> str:
    infos = [info for info in _value(app.schedules.list()) if info.name == name]
    return next_in_words(infos[0], None) if infos else "removed meanwhile"


@command.command("remove")
@_takes_name
@takes_yes
def remove(app: Horsies, name: str, yes: bool) -> None:
    """Remove a schedule that was added at run time; its history stays."""
    confirm(f"Remove {name}?", yes=yes)
    _value(app.schedules.remove(name))
    echo(f"{name} is removed")


def _load(locator: str | None) -> Horsies:
    app = load_app(locator)
    app.import_task_modules()
    return app


def _value(result: BrokerResult[T]) -> T:
    if isinstance(result, Err):
        raise click.ClickException(result.err_value.message)
    return result.ok_value


def _print_json(value: object) -> None:
    echo(json.dumps(to_jsonable_python(value), indent=2))
