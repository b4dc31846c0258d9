"""`horsies workers`: who is alive, and what each runs."""

import click

from horsies.app import Horsies
from horsies.cli.console import make_console
from horsies.cli.operating import as_json, print_json, read_age, takes_app, value_of
from horsies.cli.task_view import print_workers


@click.command("workers")
@takes_app
@click.option("--seen", default="1h", show_default=True, help="Workers seen in this time.")
@as_json
def command(app: Horsies, seen: str, *, is_json: bool) -> None:
    """Show workers with their load and what each runs.

    A worker is silent without a sign of life for 30 seconds, and gone when its session has ended.
    """
    workers = value_of(app.operations.workers(window=read_age("--seen", seen)))
    print_json(workers) if is_json else print_workers(make_console(), workers)
