"""Failures that are alike: one line for each thing that goes wrong, however often it does."""

from datetime import datetime, timedelta
from typing import NamedTuple

from horsies.database.sql_files import query
from horsies.database.statement import Scalar, Statement
from horsies.operations.actions import act_steps, requeue
from horsies.operations.control import Note
from horsies.operations.listing import TaskCount
from horsies.operations.steps import Steps

# Results are read and their tracebacks compared: 2,000 take about 80 ms.
FAILURES_READ = 2_000
_GROUPS_SHOWN = 200


class FailureGroup(NamedTuple):
    """Failures of one task with one code and one traceback, but for numbers and addresses.

    `message`, `traceback` and `last_id` are those of the latest. Only the last 2,000 failures are
    looked at, so `number` and `first_at` may leave out earlier ones.
    """

    key: str
    task_name: str
    error_code: str | None
    number: int
    first_at: datetime
    last_at: datetime
    last_id: str
    message: str | None
    traceback: str | None
    read_at: datetime


def failure_steps(window: timedelta) -> Steps[list[FailureGroup]]:
    """The groups with the latest failures first."""
    parameters = {"window": window, "row_limit": FAILURES_READ, "limit": _GROUPS_SHOWN}
    rows: list[FailureGroup] = yield Statement(
        query("operations", "failure_groups"), parameters, FailureGroup
    )
    return rows


def requeue_steps(key: str, window: timedelta, note: Note, *, dry_run: bool) -> Steps[TaskCount]:
    """Put the tasks of a group back in their queues; how many."""
    parameters = {"window": window, "row_limit": FAILURES_READ, "group_key": key}
    rows: list[Scalar] = yield Statement(query("operations", "failure_ids"), parameters, Scalar)
    ids = [row.value for row in rows]
    return (yield from act_steps(requeue(include_completed=False), ids, note, dry_run=dry_run))
