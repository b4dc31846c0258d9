"""`horsies requeue`: put one failed task, or all that match, back in their queues."""

from typing import Any

import click

from horsies.cli.matching import change_matching, report_one, takes_filter
from horsies.locator import load_app


@click.command("requeue")
@takes_filter
def command(locator: str | None, **wanted: Any) -> None:
    """Put failed tasks of the app in MODULE back in their queues."""
    broker = load_app(locator).get_broker()
    if task_id := wanted["task_id"]:
        report_one(broker.requeue_task_sync(task_id), "requeued")
        return
    change_matching(broker, ("FAILED",), wanted, "requeue", broker.requeue_tasks)
