"""`horsies cancel`: cancel one task, or all tasks that match."""

from typing import Unpack

import click

from horsies.cli.matching import FilterOptions, change_matching, report_one, takes_filter
from horsies.cli.operating import find_app


@click.command("cancel")
@takes_filter
@click.option("--running", is_flag=True, help="Also end tasks that are running.")
def command(locator: str | None, *, running: bool, **wanted: Unpack[FilterOptions]) -> None:
    """Cancel waiting tasks of the app in MODULE; --running also ends tasks that are running."""
    broker = find_app(locator).get_broker()
    if task_id := wanted["task_id"]:
        report_one(broker.cancel_task_sync(task_id, running=running), "cancelled")
        return
    states = ("PENDING", "CLAIMED", "RUNNING") if running else ("PENDING", "CLAIMED")
    change_matching(
        broker, states, wanted, "cancel", lambda f: broker.cancel_tasks(f, running=running)
    )
