"""`horsies cancel`: withdraw one task, or all that match."""

from typing import Any

import click

from horsies.cli.matching import change_matching, report_one, takes_filter
from horsies.locator import load_app


@click.command("cancel")
@takes_filter
@click.option("--running", is_flag=True, help="Also end tasks that are running.")
def command(locator: str | None, *, running: bool, **wanted: Any) -> None:
    """Withdraw waiting tasks of the app in MODULE; with --running also those being executed."""
    broker = load_app(locator).get_broker()
    if task_id := wanted["task_id"]:
        report_one(broker.cancel_task_sync(task_id, running=running), "cancelled")
        return
    states = ("PENDING", "CLAIMED", "RUNNING") if running else ("PENDING", "CLAIMED")
    change_matching(
        broker, states, wanted, "cancel", lambda f: broker.cancel_tasks(f, running=running)
    )
