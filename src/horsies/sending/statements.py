"""The statements that store new tasks (T1)."""

import re
from collections.abc import Sequence
from functools import cache

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
    return call("send_task", Scalar, **dict(zip(_plain_fields(), task, strict=False)))


@cache
def _plain_fields() -> tuple[str, ...]:
    """The first fields of a row: those that every send has."""
    names = tuple(parameters_of("send_task"))
    assert names == NewTask._fields[: len(names)]
    return names


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
