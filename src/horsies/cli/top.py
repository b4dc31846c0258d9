"""`horsies top`: the system in a terminal, live, or once as text."""

import os
import sys

import click

from horsies.app import Horsies
from horsies.cli.console import make_console
from horsies.cli.operating import value_of
from horsies.cli.task_view import print_status, print_workers
from horsies.cli.viewed_app import takes_viewed_app
from horsies.drawing.workflow_text import status_text


@click.command("top")
@takes_viewed_app
@click.option(
    "-t",
    "--tick-rate",
    type=click.FloatRange(0.1, 60),
    default=4.0,
    show_default=True,
    help="Reads per second, at most.",
)
@click.option(
    "-f",
    "--frame-rate",
    type=click.FloatRange(1, 240),
    default=60.0,
    show_default=True,
    help="Redraws per second, at most.",
)
@click.option("--once", is_flag=True, help="Print a snapshot and exit.")
def command(app: Horsies, tick_rate: float, frame_rate: float, *, once: bool) -> None:
    """Watch and steer the system in a terminal: workers, tasks, workflows.

    \b
    Example:  horsies top shop:app
              horsies top -d postgresql://localhost/shop
              horsies top --once

    Press ? for all keys. Without MODULE, the database is the one in HORSIES_DATABASE_URL,
    DATABASE_URL or a .env file.
    """
    if once:
        print_once(app)
        return
    os.environ["TEXTUAL_FPS"] = str(int(frame_rate))  # Textual reads it when it is imported
    try:
        from horsies.tui.app import Top
        from horsies.tui.background import is_terminal_dark
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != "textual":
            raise
        message = "horsies top needs Textual: pip install 'horsies[tui]' (--once works without)"
        raise click.ClickException(message) from error
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise click.ClickException("horsies top needs a terminal; --once prints a snapshot")
    Top(app, tick_rate=tick_rate, is_dark=is_terminal_dark()).run()


def print_once(app: Horsies) -> None:
    """The same figures as text; a database that is away ends the command with exit code 1."""
    look = app.operations
    totals, status = value_of(look.totals()), value_of(look.status())
    console = make_console()
    print_status(console, status)
    for title, counts in (("Tasks", totals.tasks), ("Workflows", totals.workflows)):
        console.print(f"\n{title}", style="bold")
        for name, count in counts.items():
            console.print(status_text(f"{name:<9}").append(f"  {count!s:>8}", "not dim default"))
    if totals.stale_claims.number:
        console.print(f"stale claims: {totals.stale_claims}", style="red")
    console.print()
    print_workers(console, status.workers)
