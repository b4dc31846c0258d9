"""The statements that store new tasks (T1)."""

import re
from collections.abc import Sequence
from functools import cache

from horsies.database.direct import DirectCall
from horsies.database.functions import call, parameters_of
from horsies.database.sql_files import query
from horsies.database.statement import Receipt, Scalar, Statement
from horsies.sending.rows import NewTask


def enqueue_tasks(tasks: Sequence[NewTask]) -> Statement[Receipt]:
    """Any rows, in a transaction that others may share; receipts in input order."""
    return call("enqueue_tasks", Receipt, **_columns(tasks))


def send_tasks(tasks: Sequence[NewTask]) -> Statement[list[Receipt]]:
    """Any rows, in a transaction of their own; one list of receipts, in input order."""
    return call("send_tasks", _receipts, **_columns(tasks))


def send_task(task: NewTask) -> Statement[Scalar]:
    """One task without unique key or tags; UniqueViolation when the id is taken."""
    return call("send_task", Scalar, **dict(zip(NewTask._fields, plain_fields(task), strict=False)))


def plain_fields(task: NewTask) -> Sequence[object]:
    """The parameters of `horsies_send_task`: the fields that every send has come first."""
    return task[: len(parameters_of("send_task"))]


@cache
def direct_send() -> DirectCall:
    """The same, for blocking callers."""
    return DirectCall("send_task")


def _columns(tasks: Sequence[NewTask]) -> dict[str, tuple[object, ...]]:
    return dict(zip(NewTask._fields, zip(*tasks, strict=True), strict=True))


def _receipts(found_ids: Sequence[str], outcomes: Sequence[str]) -> list[Receipt]:
    return [Receipt(*pair) for pair in zip(found_ids, outcomes, strict=True)]


def copy_tasks() -> str:
    """COPY of plain rows: new, due at once, without unique key or tags."""
    return query("sending", "copy_tasks")


@cache
def copied_columns() -> tuple[str, ...]:
    """The columns of that COPY, in its order."""
    listed = re.search(r"\((.*)\)", copy_tasks(), re.DOTALL)
    assert listed is not None
    return tuple(name.strip() for name in listed[1].split(","))
