"""`horsies requeue`: put one failed task, or all that match, back into their queues."""

from typing import Unpack

import click

from horsies.cli.matching import (
    FilterOptions,
    change_matching,
    report_one,
    takes_filter,
)
from horsies.cli.operating import find_app, value_of


@click.command("requeue")
@takes_filter
def command(locator: str | None, **wanted: Unpack[FilterOptions]) -> None:
    """Put failed tasks of the app in MODULE back into their queues."""
    app = find_app(locator)
    broker = app.get_broker()
    if task_id := wanted["task_id"]:
        is_done = value_of(broker.requeue_task_sync(task_id))
        refusal = "not requeued: no such task, or not in a state that allows it"
        report_one(is_done, "requeued" if is_done else refusal)
        return
    change_matching(app, ("FAILED",), wanted, "requeue", broker.requeue_tasks)
