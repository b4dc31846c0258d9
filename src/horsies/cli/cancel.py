"""`horsies cancel`: cancel one task, or all tasks that match."""

from functools import partial
from typing import Unpack

import click

from horsies.cli.matching import Change, ChangeOptions, change_tasks, takes_filter


@click.command("cancel")
@takes_filter
@click.option("--running", is_flag=True, help="Also end tasks that are running.")
def command(locator: str | None, *, running: bool, **wanted: Unpack[ChangeOptions]) -> None:
    """Cancel waiting tasks of the app in MODULE; --running also ends tasks that are running."""
    states = ("PENDING", "CLAIMED", "RUNNING") if running else ("PENDING", "CLAIMED")
    change_tasks(
        locator,
        Change("cancel", "cancelled", states),
        wanted,
        lambda app: partial(app.operations.cancel, running=running),
    )
