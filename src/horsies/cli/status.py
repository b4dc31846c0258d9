"""`horsies status`: the whole system at a glance."""

import click

from horsies.app import Horsies
from horsies.cli.console import make_console
from horsies.cli.operating import as_json, print_json, read_age, takes_app, value_of
from horsies.cli.task_view import print_status


@click.command("status")
@takes_app
@click.option("--window", default="1h", show_default=True, help="Rates of this time: 10m, 1h, 1d.")
@as_json
def command(app: Horsies, window: str, *, is_json: bool) -> None:
    """Show workers, backlog, what ended lately, and each queue."""
    status = value_of(app.operations.status(window=read_age("--window", window)))
    print_json(status) if is_json else print_status(make_console(), status)
