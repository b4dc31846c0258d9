"""`horsies queues`: backlog, rates and latencies by queue."""

import click

from horsies.app import Horsies
from horsies.cli.console import make_console
from horsies.cli.operating import as_json, print_json, read_age, takes_app, value_of
from horsies.cli.task_view import print_queues


@click.command("queues")
@takes_app
@click.option("--window", default="1h", show_default=True, help="Rates of this time: 10m, 1h, 1d.")
@as_json
def command(app: Horsies, window: str, *, is_json: bool) -> None:
    """Show what waits in each queue, since when, what runs, and how fast tasks end."""
    queues = value_of(app.operations.queues(window=read_age("--window", window)))
    print_json(queues) if is_json else print_queues(make_console(), queues)
