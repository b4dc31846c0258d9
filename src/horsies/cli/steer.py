"""`horsies pause`, `resume`, `limit`, `drain`, `audit`: steer queues and workers as they run."""

import functools
import sys
from collections.abc import Callable
from typing import Any

import click
from rich.table import Table

from horsies.app import Horsies
from horsies.cli.console import make_console
from horsies.cli.operating import (
    MODULE,
    Command,
    as_json,
    find_app,
    local,
    print_json,
    takes_app,
    takes_note,
    value_of,
)
from horsies.cli.printing import echo
from horsies.operations.control import Note


def _takes_name(metavar: str, extra: int = 0) -> Callable[[Command], Command]:
    """Add [MODULE] and the words of metavar; the command gets `app`, `words` and `note`."""

    def decorate(function: Command) -> Command:
        @click.argument("words", nargs=-1, required=True, metavar=f"[MODULE] {metavar}")
        @MODULE
        @takes_note
        @functools.wraps(function)
        def command(words: tuple[str, ...], module: str | None, **rest: Any) -> object:
            count = 1 + extra
            if not count <= len(words) <= count + (module is None):
                raise click.UsageError(f"give {metavar}, and the app before it or with -m")
            place = module or (words[0] if len(words) > count else None)
            app = find_app(place)
            return function(app=app, words=words[-count:], **rest)

        return command

    return decorate


@click.command("pause")
@_takes_name("QUEUE")
def pause(app: Horsies, words: tuple[str, ...], note: Note) -> None:
    """Start nothing of a queue until it is resumed; what runs goes on.

    Exits with 1 if the queue was paused already.
    """
    (queue,) = words
    if not value_of(app.operations.pause_queue(queue, note=note)):
        echo(f"{queue} was paused already")
        sys.exit(1)
    echo(f"{queue} is paused")
    known = {one.name: one for one in value_of(app.operations.queues())}
    if not known[queue].worker_count:
        echo(f"note: no live worker serves a queue {queue}", err=True)


@click.command("resume")
@_takes_name("QUEUE")
def resume(app: Horsies, words: tuple[str, ...], note: Note) -> None:
    """Let a paused queue go on, at once. Exits with 1 if it was not paused."""
    (queue,) = words
    if not value_of(app.operations.resume_queue(queue, note=note)):
        echo(f"{queue} was not paused")
        sys.exit(1)
    echo(f"{queue} goes on")


@click.command("limit")
@_takes_name("QUEUE NUMBER", extra=1)
def limit(app: Horsies, words: tuple[str, ...], note: Note) -> None:
    """Run at most NUMBER tasks of a queue at once, over all workers.

    `none` goes back to what the workers are configured to.
    """
    queue, number = words
    if number != "none" and not number.isdecimal():
        raise click.UsageError(f"NUMBER is a number or `none`, not {number!r}")
    cap = None if number == "none" else int(number)
    value_of(app.operations.limit_queue(queue, cap, note=note))
    said = "is limited as configured" if cap is None else f"runs at most {cap} at once"
    echo(f"{queue} {said}")


@click.command("drain")
@_takes_name("WORKER")
def drain(app: Horsies, words: tuple[str, ...], note: Note) -> None:
    """Let a worker finish what it runs and end, as after SIGTERM.

    WORKER is host:pid, or the beginning of an id that `horsies workers` shows.
    """
    worker_id = value_of(app.operations.drain_worker(words[0], note=note))
    echo(f"worker {worker_id} drains; it takes nothing new within five seconds")


@click.command("audit")
@takes_app
@click.option("--limit", "count", type=click.IntRange(1, 10_000), default=20, show_default=True)
@as_json
def audit(app: Horsies, count: int, *, is_json: bool) -> None:
    """Show who steered what, and why, the latest first."""
    entries = value_of(app.operations.audit(limit=count))
    if is_json:
        print_json(entries)
        return
    table = Table(box=None, pad_edge=False, header_style="bold")
    for column in ("when", "who", "did", "to", "why"):
        table.add_column(column, overflow="fold")
    for entry in entries:
        details = "".join(f", {name} {value}" for name, value in (entry.details or {}).items())
        target = entry.target + details
        table.add_row(local(entry.done_at), entry.done_by, entry.action, target, entry.reason or "")
    make_console().print(table)
