"""`horsies requeue`: put one failed task, or all that match, back into their queues."""

from typing import Unpack

import click

from horsies.cli.matching import FilterOptions, change_matching, report_one, takes_filter
from horsies.cli.operating import find_app


@click.command("requeue")
@takes_filter
def command(locator: str | None, **wanted: Unpack[FilterOptions]) -> None:
    """Put failed tasks of the app in MODULE back into their queues."""
    broker = find_app(locator).get_broker()
    if task_id := wanted["task_id"]:
        report_one(broker.requeue_task_sync(task_id), "requeued")
        return
    change_matching(broker, ("FAILED",), wanted, "requeue", broker.requeue_tasks)
