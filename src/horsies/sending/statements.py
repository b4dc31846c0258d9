"""The statements that store new tasks (T1)."""

import re
from collections.abc import Sequence
from functools import cache

from horsies.database.functions import call
from horsies.database.sql_files import query
from horsies.database.statement import Receipt, Scalar, Statement
from horsies.sending.rows import NewTask


def enqueue_tasks(tasks: Sequence[NewTask]) -> Statement[Receipt]:
    """Any rows, as one batch; receipts in input order."""
    columns = dict(zip(NewTask._fields, zip(*tasks, strict=True), strict=True))
    return call("enqueue_tasks", Receipt, **columns)


def insert_task(task: NewTask) -> Statement[Scalar]:
    """One task without unique key or tags; UniqueViolation when the id is taken."""
    return Statement(query("sending", "insert_task"), task._asdict(), Scalar)


def copy_tasks() -> str:
    """COPY of plain rows: new, due at once, without unique key or tags."""
    return query("sending", "copy_tasks")


@cache
def copied_columns() -> tuple[str, ...]:
    """The columns of that COPY, in its order."""
    listed = re.search(r"\((.*)\)", copy_tasks(), re.DOTALL)
    assert listed is not None
    return tuple(name.strip() for name in listed[1].split(","))
