"""The statements by which users steer stored tasks and ask whether the server is there."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import NamedTuple

from horsies.database.functions import call
from horsies.database.sql_files import query
from horsies.database.statement import Receipt, Scalar, Statement
from horsies.operations.filters import TaskFilter

_PAGE = 1_000


class Ping(NamedTuple):
    database_time: datetime
    server_version: str


def cancel_tasks(task_ids: Sequence[str]) -> Statement[Receipt]:
    """T14."""
    return call("cancel_tasks", Receipt, task_ids=sorted(task_ids))


def request_cancel(task_ids: Sequence[str]) -> Statement[Receipt]:
    """T14 for waiting tasks; for running ones the wish is stored and their worker told."""
    return call("request_cancel", Receipt, task_ids=sorted(task_ids))


def requeue_tasks(task_ids: Sequence[str], *, include_completed: bool) -> Statement[Receipt]:
    """T15."""
    return call(
        "requeue_tasks", Receipt, task_ids=sorted(task_ids), include_completed=include_completed
    )


def rerun_task(
    task_id: str, new_id: str, sent_at: datetime, good_until: datetime | None
) -> Statement[Scalar]:
    """A new row with the input of an ended one."""
    return call(
        "rerun_task",
        Scalar,
        ended_id=task_id,
        new_id=new_id,
        sent_at=sent_at,
        good_until=good_until,
    )


def prune_tasks(status: str, older_than: timedelta, batch: int) -> Statement[Scalar]:
    """A batch of ended tasks in this state that ended so long ago."""
    return call(
        "prune_tasks", Scalar, ended_status=status, older_than=older_than, batch_limit=batch
    )


def matching_ids(wanted: TaskFilter, *, after: str) -> Statement[Scalar]:
    """The next thousand ids that match."""
    parameters = {**wanted.parameters(), "after": after, "batch": _PAGE}
    return Statement(query("operations", "matching_ids"), parameters, Scalar)


def count_matching(wanted: TaskFilter) -> Statement[Scalar]:
    return Statement(query("operations", "count_matching"), wanted.parameters(), Scalar)


def ping() -> Statement[Ping]:
    return Statement(query("operations", "ping"), {}, Ping)
