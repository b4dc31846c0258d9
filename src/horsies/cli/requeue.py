"""`horsies requeue`: put one failed task, or all that match, back into their queues."""

from typing import Unpack

import click

from horsies.cli.matching import Change, ChangeOptions, change_tasks, takes_filter

_REQUEUE = Change("requeue", "requeued", ("FAILED", "CANCELLED"), usual=("FAILED",))


@click.command("requeue")
@takes_filter
def command(locator: str | None, **wanted: Unpack[ChangeOptions]) -> None:
    """Put failed tasks of the app in MODULE back into their queues.

    Cancelled ones too if you ask for them: status:cancelled.
    """
    change_tasks(locator, _REQUEUE, wanted, lambda app: app.operations.requeue)
