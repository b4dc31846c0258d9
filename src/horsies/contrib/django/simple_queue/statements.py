"""The statements of the compatibility app, on Django's own connection."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from importlib.resources import files
from typing import Any

from django.db import connections

from horsies.contrib.django.conf import setting
from horsies.database.statement import Scalar, Statement
from horsies.database.user_connection import run_on

_NAMED = re.compile(r"^-- name: (\w+)$", re.MULTILINE)


@cache
def sql_file(name: str) -> str:
    return (files(__package__) / "sql" / f"{name}.sql").read_text("utf-8")


@cache
def _query(name: str) -> str:
    parts = _NAMED.split(sql_file("queries"))
    return dict(zip(parts[1::2], parts[2::2], strict=True))[name].strip().removesuffix(";")


def run(name: str, **parameters: Any) -> list[Any]:
    """Perform a statement by its name; rows of one column are values."""
    statement = Statement(_query(name), parameters, lambda *row: row)
    return run_on(connections[setting("DATABASE_ALIAS")], statement, None, "run")


def value(name: str, **parameters: Any) -> Any:
    """The only column of the first row, or `None`."""
    rows = run(name, **parameters)
    return Scalar(rows[0][0]).value if rows else None


def import_from(name: str, table: str, **parameters: Any) -> Any:
    """A statement about the old table, whatever it is called."""
    quoted = connections[setting("DATABASE_ALIAS")].ops.quote_name(table).replace("%", "%%")
    sql = _query(name).replace("django_simple_queue_task_legacy", quoted)
    statement = Statement(sql, parameters, Scalar)
    return run_on(connections[setting("DATABASE_ALIAS")], statement, None, "import")[0].value


@contextmanager
def raw_writes() -> Iterator[None]:
    """Store rows as they are given, with any status: for tests and the import."""
    run("set_raw", value="on")
    try:
        yield
    finally:
        run("set_raw", value="off")
