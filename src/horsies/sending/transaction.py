"""Enqueue on the user's own connection: the task is stored, or not, with the user's transaction.

psycopg, SQLAlchemy (also its sessions), Django and asyncpg connections are told apart by their
class's name, so that none of them has to be installed.
"""

import re
from collections.abc import Sequence
from typing import Any, TypeAlias

from psycopg import AsyncCursor, Cursor
from psycopg.rows import tuple_row

from horsies.codes import TaskSendErrorCode
from horsies.database.database import Database
from horsies.database.statement import Receipt
from horsies.result import Err, Ok, Result
from horsies.sending.enqueuer import batches, not_stored
from horsies.sending.errors import TaskSendError
from horsies.sending.rows import NewTask
from horsies.sending.statements import enqueue_tasks

_PARAMETER = re.compile(r"%\((\w+)\)s")
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


EnqueueAnswers: TypeAlias = Result[list[Receipt], TaskSendError]


def enqueue(database: Database, connection: Any, rows: Sequence[NewTask]) -> EnqueueAnswers:
    """Write rows on a blocking connection, inside whatever transaction it is in."""
    kind = _kind(connection)
    if kind not in _BLOCKING:
        return _refusal(connection, kind, "send()")
    receipts: list[Receipt] = []
    try:
        database.ensure_schema()
        for batch in batches(rows):
            sql, parameters = _statement(database.schema, batch)
            receipts += _execute(kind, connection, sql, parameters)
    except Exception as error:  # noqa: BLE001 - the user's own driver raises what it likes
        return Err(not_stored(error, rows[0] if len(rows) == 1 else None))
    return Ok(receipts)


async def enqueue_async(
    database: Database, connection: Any, rows: Sequence[NewTask]
) -> EnqueueAnswers:
    """Write rows on an awaitable connection, inside whatever transaction it is in."""
    kind = _kind(connection)
    if kind not in _AWAITABLE:
        return _refusal(connection, kind, "send_async()")
    receipts: list[Receipt] = []
    try:
        await database.ensure_schema_async()
        for batch in batches(rows):
            sql, parameters = _statement(database.schema, batch)
            receipts += await _execute_async(kind, connection, sql, parameters)
    except Exception as error:  # noqa: BLE001 - the user's own driver raises what it likes
        return Err(not_stored(error, rows[0] if len(rows) == 1 else None))
    return Ok(receipts)


def _execute(kind: str, connection: Any, sql: str, parameters: dict[str, object]) -> list[Receipt]:
    if kind == "SQLAlchemy":
        return _receipts(connection.execute(_text(sql), parameters).fetchall())
    if kind == "Django":
        with connection.cursor() as cursor:
            cursor.execute(sql, parameters)
            return _receipts(cursor.fetchall())
    # Not by connection.cursor(): the user's own kind of cursor may want other placeholders.
    with Cursor(connection, row_factory=tuple_row) as cursor:
        return _receipts(cursor.execute(sql.encode(), parameters).fetchall())


async def _execute_async(
    kind: str, connection: Any, sql: str, parameters: dict[str, object]
) -> list[Receipt]:
    if kind == "asynchronous SQLAlchemy":
        return _receipts((await connection.execute(_text(sql), parameters)).fetchall())
    if kind == "asyncpg":
        names = _PARAMETER.findall(sql)
        numbers = {name: f"${number}::text" for number, name in enumerate(names, start=1)}
        numbered = _PARAMETER.sub(lambda found: numbers[found[1]], sql)
        return _receipts(await connection.fetch(numbered, *[parameters[name] for name in names]))
    async with AsyncCursor(connection, row_factory=tuple_row) as cursor:
        await cursor.execute(sql.encode(), parameters)
        return _receipts(await cursor.fetchall())


def _statement(schema: str | None, rows: Sequence[NewTask]) -> tuple[str, dict[str, object]]:
    statement = enqueue_tasks(rows)
    sql = statement.sql
    if schema is not None:
        # The user's search_path need not lead to our tables.
        quoted = '"' + schema.replace('"', '""') + '"'
        sql = sql.replace(" horsies_enqueue_tasks(", f" {quoted}.horsies_enqueue_tasks(", 1)
    return sql, dict(statement.parameters)


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


def _refusal(connection: Any, kind: str | None, call: str) -> Err[TaskSendError]:
    if kind is None:
        given = f"{type(connection).__module__}.{type(connection).__qualname__}"
        message = (
            f"connection={given} is not a "
            "PostgreSQL connection or session of psycopg, SQLAlchemy, asyncpg or Django"
        )
    else:
        other = "send_async()" if call == "send()" else "send()"
        message = f"{call} cannot use this {kind} connection; use {other}"
    return Err(TaskSendError(TaskSendErrorCode.VALIDATION_FAILED, message, retryable=False))


def _text(sql: str) -> Any:
    from sqlalchemy import text

    # As text: a driver that asks the server for the type would want lists instead of literals.
    return text(_PARAMETER.sub(r"cast(:\1 as text)", sql))


def _receipts(rows: Sequence[Any]) -> list[Receipt]:
    return [Receipt(*row) for row in rows]
