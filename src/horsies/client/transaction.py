"""Enqueue on the user's own connection: the task is stored, or not, with the user's transaction.

psycopg, SQLAlchemy (also its sessions), Django and asyncpg connections are told apart by their
module, so that none of them has to be installed.
"""

import re
from collections.abc import Sequence
from typing import Any

import psycopg

from horsies.database.rows import NewTask, Receipt
from horsies.database.tasks import enqueue_tasks

_PARAMETER = re.compile(r"%\((\w+)\)s")


class WrongConnectionError(Exception):
    """The given object cannot carry this send."""


def enqueue(connection: Any, schema: str | None, rows: Sequence[NewTask]) -> list[Receipt]:
    """Write rows on a blocking connection, inside whatever transaction it is in."""
    sql, parameters = _statement(schema, rows)
    match _kind(connection):
        case "psycopg":
            with connection.cursor(row_factory=psycopg.rows.tuple_row) as cursor:
                return _receipts(cursor.execute(sql, parameters).fetchall())
        case "django":
            with connection.cursor() as cursor:
                cursor.execute(sql, parameters)
                return _receipts(cursor.fetchall())
        case "sqlalchemy":
            result = connection.execute(_text(sql), parameters)
            return _receipts(result.fetchall())
        case other:
            raise WrongConnectionError(_refusal(connection, other, "send()"))


async def enqueue_async(
    connection: Any, schema: str | None, rows: Sequence[NewTask]
) -> list[Receipt]:
    """Write rows on an awaitable connection, inside whatever transaction it is in."""
    sql, parameters = _statement(schema, rows)
    match _kind(connection):
        case "psycopg async":
            async with connection.cursor(row_factory=psycopg.rows.tuple_row) as cursor:
                await cursor.execute(sql, parameters)
                return _receipts(await cursor.fetchall())
        case "sqlalchemy async":
            result = await connection.execute(_text(sql), parameters)
            return _receipts(result.fetchall())
        case "asyncpg":
            names = _PARAMETER.findall(sql)
            numbers = {name: f"${number}::text" for number, name in enumerate(names, start=1)}
            numbered = _PARAMETER.sub(lambda found: numbers[found[1]], sql)
            values = [parameters[name] for name in names]
            return _receipts([tuple(row) for row in await connection.fetch(numbered, *values)])
        case other:
            raise WrongConnectionError(_refusal(connection, other, "send_async()"))


def _statement(schema: str | None, rows: Sequence[NewTask]) -> tuple[str, dict[str, object]]:
    statement = enqueue_tasks(rows)
    sql = statement.sql
    if schema is not None:
        # The user's search_path need not lead to our tables.
        quoted = '"' + schema.replace('"', '""') + '"'
        sql = sql.replace(" horsies_enqueue_tasks(", f" {quoted}.horsies_enqueue_tasks(", 1)
    return sql, dict(statement.parameters)


def _kind(connection: Any) -> str:
    if isinstance(connection, psycopg.Connection):
        return "psycopg"
    if isinstance(connection, psycopg.AsyncConnection):
        return "psycopg async"
    classes = [f"{cls.__module__}.{cls.__qualname__}" for cls in type(connection).__mro__]
    if any(name.startswith("sqlalchemy.ext.asyncio.") for name in classes):
        return "sqlalchemy async"
    if any(name.startswith("sqlalchemy.") for name in classes):
        return "sqlalchemy"
    if any(name.startswith("asyncpg.") for name in classes):
        return "asyncpg"
    is_django = any(name.startswith(("django.db.", "django.utils.connection.")) for name in classes)
    return "django" if is_django else "unknown"


def _refusal(connection: Any, kind: str, call: str) -> str:
    if kind == "unknown":
        return (
            f"connection={type(connection).__module__}.{type(connection).__qualname__} is none of "
            "psycopg, SQLAlchemy, asyncpg or Django connections"
        )
    other = "send_async()" if call == "send()" else "send()"
    return f"{call} cannot use this {kind} connection; use {other}"


def _text(sql: str) -> Any:
    from sqlalchemy import text

    return text(_PARAMETER.sub(r":\1", sql))


def _receipts(rows: Sequence[Any]) -> list[Receipt]:
    return [Receipt(*row) for row in rows]
