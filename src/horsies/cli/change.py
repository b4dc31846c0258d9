"""`horsies reschedule`, `reprioritise`, `delete`: change tasks that wait or have ended."""

from datetime import datetime
from functools import partial
from typing import Unpack

import click

from horsies.cli.matching import Change, ChangeOptions, change_tasks, takes_filter
from horsies.clock import utc_now
from horsies.operations.filter_words import FilterError, read_due
from horsies.operations.filters import ENDED

_RESCHEDULE = Change("reschedule", "rescheduled", ("PENDING",))
_REPRIORITISE = Change("reprioritise", "reprioritised", ("PENDING",))
_DELETE = Change("delete", "deleted", ENDED)
_PRIORITY = click.IntRange(1, 100)


@click.command("reschedule")
@takes_filter
@click.option(
    "--at",
    "when",
    required=True,
    metavar="TIME",
    help="now, 2h (from now) or 2030-01-31T09:00.",
)
def reschedule(locator: str | None, when: str, **wanted: Unpack[ChangeOptions]) -> None:
    """Let waiting tasks of the app in MODULE start at another time, retries too."""
    due_at = _due_at(when)
    change_tasks(
        locator, _RESCHEDULE, wanted, lambda app: partial(app.operations.reschedule, run_at=due_at)
    )


@click.command("reprioritise")
@takes_filter
@click.option("--priority", required=True, type=_PRIORITY, help="1 to 100; lower starts first.")
def reprioritise(locator: str | None, priority: int, **wanted: Unpack[ChangeOptions]) -> None:
    """Give waiting tasks of the app in MODULE another priority."""
    change_tasks(
        locator,
        _REPRIORITISE,
        wanted,
        lambda app: partial(app.operations.reprioritise, priority=priority),
    )


@click.command("delete")
@takes_filter
def delete(locator: str | None, **wanted: Unpack[ChangeOptions]) -> None:
    """Delete ended tasks of the app in MODULE with their attempts and output."""
    change_tasks(locator, _DELETE, wanted, lambda app: app.operations.delete)


def _due_at(when: str) -> datetime | None:
    try:
        return None if when == "now" else read_due("--at", when, utc_now())
    except FilterError as error:
        raise click.UsageError(str(error)) from error
