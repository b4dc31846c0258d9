"""Knows the user's own connection and runs a statement on it, in whatever transaction it is in.

psycopg, SQLAlchemy (also its sessions), Django and asyncpg connections are told apart by their
class's name, so that none of them has to be installed.
"""

import re
from collections.abc import Sequence
from typing import Any, TypeVar

from psycopg import Cursor
from psycopg.rows import tuple_row

from horsies.database.statement import Statement

Row = TypeVar("Row")

_PARAMETER = re.compile(r"%\((\w+)\)s")
_OWN_NAME = re.compile(r"(?<= )(horsies_\w+)")
# By package and class name, so that no library is imported to recognise its objects.
_KINDS = {
    ("psycopg", "Connection"): "psycopg",
    ("psycopg", "AsyncConnection"): "asynchronous psycopg",
    ("sqlalchemy", "Connection"): "SQLAlchemy",
    ("sqlalchemy", "Session"): "SQLAlchemy",
    ("sqlalchemy", "scoped_session"): "SQLAlchemy",
    ("sqlalchemy", "AsyncConnection"): "asynchronous SQLAlchemy",
    ("sqlalchemy", "AsyncSession"): "asynchronous SQLAlchemy",
    ("sqlalchemy", "async_scoped_session"): "asynchronous SQLAlchemy",
    ("asyncpg", "Connection"): "asyncpg",
    ("asyncpg", "PoolConnectionProxy"): "asyncpg",
    ("django", "BaseDatabaseWrapper"): "Django",
    ("django", "ConnectionProxy"): "Django",
}
_BLOCKING = ("psycopg", "SQLAlchemy", "Django")
_AWAITABLE = ("asynchronous psycopg", "asynchronous SQLAlchemy", "asyncpg")


class UnusableConnectionError(Exception):
    """The object cannot carry our statements; the message says why, and what to do."""


def run_on(connection: Any, statement: Statement[Row], schema: str | None, call: str) -> list[Row]:
    """Perform a statement on a blocking connection; `call` is the method the user called."""
    kind = blocking_kind(connection, call)
    sql, parameters = qualified(statement, schema), dict(statement.parameters)
    if kind == "SQLAlchemy":
        return rows_of(statement, connection.execute(text_of(sql), parameters).fetchall())
    if kind == "Django":
        with connection.cursor() as cursor:
            cursor.execute(sql, parameters)
            return rows_of(statement, cursor.fetchall())
    # Not by connection.cursor(): the user's own kind of cursor may want other placeholders.
    with Cursor(connection, row_factory=tuple_row) as cursor:
        return rows_of(statement, cursor.execute(sql.encode(), parameters).fetchall())


def blocking_kind(connection: Any, call: str) -> str:
    """Which library the connection is of, if `call` can use it."""
    kind = _kind(connection)
    if kind not in _BLOCKING:
        raise _refusal(connection, kind, f"{call}()", f"{call}_async()")
    return kind


def awaitable_kind(connection: Any, call: str) -> str:
    """The same for an awaitable connection."""
    kind = _kind(connection)
    if kind not in _AWAITABLE:
        raise _refusal(connection, kind, f"{call}_async()", f"{call}()")
    return kind


def qualified(statement: Statement[Any], schema: str | None) -> str:
    """The user's search_path need not lead to our tables and functions."""
    if schema is None:
        return statement.sql
    quoted = '"' + schema.replace('"', '""') + '"'
    return _OWN_NAME.sub(rf"{quoted}.\1", statement.sql)


def _kind(connection: Any) -> str | None:
    """Engines, pools and session makers are none of these: they carry no transaction."""
    for cls in type(connection).__mro__:
        package = cls.__module__.partition(".")[0]
        kind = _KINDS.get((package, cls.__name__))
        if kind == "Django" and connection.vendor != "postgresql":
            return None
        if kind is not None:
            return kind
    return None


def _refusal(connection: Any, kind: str | None, call: str, other: str) -> UnusableConnectionError:
    if kind is None:
        given = f"{type(connection).__module__}.{type(connection).__qualname__}"
        return UnusableConnectionError(
            f"connection={given} is not a "
            "PostgreSQL connection or session of psycopg, SQLAlchemy, asyncpg or Django"
        )
    return UnusableConnectionError(f"{call} cannot use this {kind} connection; use {other}")


def text_of(sql: str) -> Any:
    """Our SQL as SQLAlchemy takes it."""
    from sqlalchemy import text

    # As text: a driver that asks the server for the type would want lists instead of literals.
    return text(_PARAMETER.sub(r"cast(:\1 as text)", sql))


def numbered(statement: Statement[Any], schema: str | None) -> tuple[str, list[object]]:
    """Our SQL as asyncpg takes it, and its parameters in their order."""
    sql = qualified(statement, schema)
    names = list(dict.fromkeys(_PARAMETER.findall(sql)))
    places = {name: f"${number}::text" for number, name in enumerate(names, start=1)}
    by_number = _PARAMETER.sub(lambda found: places[found[1]], sql)
    return by_number, [statement.parameters[name] for name in names]


def rows_of(statement: Statement[Row], rows: Sequence[Any]) -> list[Row]:
    """The statement's own rows, of what a driver gave."""
    return [statement.row(*row) for row in rows]
