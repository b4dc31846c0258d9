"""`horsies cancel`: cancel one task, or all tasks that match."""

from typing import Unpack

import click

from horsies.cli.matching import FilterOptions, change_matching, report_one, takes_filter
from horsies.cli.operating import find_app
from horsies.result import Err
from horsies.result.broker import Cancellation

_TOLD = {
    (True, Cancellation.WAITING): "cancelled",
    (True, Cancellation.RUNNING): "running: its worker was asked to end it",
    (False, Cancellation.RUNNING): "not cancelled: it is running; add --running to end it",
    (False, Cancellation.ENDED): "not cancelled: it has ended",
    (False, Cancellation.UNKNOWN): "not cancelled: no such task",
    (False, Cancellation.IN_WORKFLOW): "not cancelled: it belongs to a workflow; cancel that",
}


@click.command("cancel")
@takes_filter
@click.option("--running", is_flag=True, help="Also end tasks that are running.")
def command(locator: str | None, *, running: bool, **wanted: Unpack[FilterOptions]) -> None:
    """Cancel waiting tasks of the app in MODULE; --running also ends tasks that are running."""
    app = find_app(locator)
    broker = app.get_broker()
    if task_id := wanted["task_id"]:
        result = broker.cancel_task_sync(task_id, running=running)
        if isinstance(result, Err):
            raise click.ClickException(result.err_value.message)
        report_one(result.ok_value, _TOLD[result.ok_value, result.found])
        return
    states = ("PENDING", "CLAIMED", "RUNNING") if running else ("PENDING", "CLAIMED")
    change_matching(
        app, states, wanted, "cancel", lambda f: broker.cancel_tasks(f, running=running)
    )
