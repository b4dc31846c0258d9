"""Runs our statements on the user's own connection inside a savepoint.

A statement that fails would leave the whole transaction aborted, and its COMMIT a silent ROLLBACK.
What it costs is measured in docs/contract/tasks.md, 8.9.
"""

from collections.abc import Sequence
from contextlib import (
    AbstractAsyncContextManager,
    AbstractContextManager,
    AsyncExitStack,
    ExitStack,
    nullcontext,
)
from typing import Any, TypeVar

from psycopg import AsyncConnection, AsyncCursor, Connection, Cursor, Pipeline
from psycopg.pq import TransactionStatus
from psycopg.rows import tuple_row

from horsies.database.sql_files import query
from horsies.database.statement import Statement
from horsies.database.user_connection import (
    awaitable_kind,
    blocking_kind,
    numbered,
    qualified,
    rows_of,
    run_on,
    text_of,
)
from horsies.result import Err, Ok, Result

Row = TypeVar("Row")


def run_in_savepoint(
    connection: Any, statements: Sequence[Statement[Row]], schema: str | None, call: str
) -> Result[list[Row], Exception]:
    """Perform statements on a blocking connection, all or none.

    After an Err the transaction is as it was before. Where it cannot be restored, because the
    connection is lost, the driver's error is raised.
    """
    try:
        kind = blocking_kind(connection, call)
        if kind == "psycopg":
            is_saved = _needs_savepoint(connection)
        elif kind == "Django":
            is_saved = not connection.get_autocommit()
        else:
            connection = connection.connection() if _is_session(connection) else connection
            is_saved = not connection.connection.dbapi_connection.autocommit
        if is_saved and kind != "psycopg":
            _execute(connection, kind, "set_savepoint")
    except Exception as error:  # noqa: BLE001 - the user's own driver raises what it likes
        return Err(error)
    try:
        if kind == "psycopg":
            return Ok(_pipelined(connection, statements, schema, is_saved=is_saved))
        parts = [run_on(connection, statement, schema, call) for statement in statements]
        if is_saved:
            _execute(connection, kind, "release_savepoint")
        return Ok([row for part in parts for row in part])
    except Exception as error:  # noqa: BLE001 - as above
        if is_saved:
            _execute(connection, kind, "restore_savepoint")
        return Err(error)


async def run_in_savepoint_async(
    connection: Any, statements: Sequence[Statement[Row]], schema: str | None, call: str
) -> Result[list[Row], Exception]:
    """The awaitable twin of `run_in_savepoint`."""
    try:
        kind = awaitable_kind(connection, call)
        if kind == "asynchronous SQLAlchemy" and _is_session(connection):
            connection = await connection.connection()
    except Exception as error:  # noqa: BLE001 - as above
        return Err(error)
    if kind == "asynchronous SQLAlchemy":
        done: Result[list[Row], Exception] = await connection.run_sync(
            run_in_savepoint, statements, schema, call
        )
        return done
    if kind == "asyncpg":
        return await _run_asyncpg(connection, statements, schema)
    is_saved = _needs_savepoint(connection)
    try:
        return Ok(await _pipelined_async(connection, statements, schema, is_saved=is_saved))
    except Exception as error:  # noqa: BLE001 - as above
        if is_saved:
            async with _pipeline_async(connection):
                await connection.execute(query("database", "restore_savepoint").encode())
        return Err(error)


def _needs_savepoint(connection: Connection[Any] | AsyncConnection[Any]) -> bool:
    """Whether a transaction is open, or begins with our statement; not one that has failed."""
    status = connection.info.transaction_status
    if status == TransactionStatus.INTRANS:
        return True
    # In a pipeline of the user's own it is ACTIVE.
    may_begin = status in {TransactionStatus.IDLE, TransactionStatus.ACTIVE}
    return may_begin and not connection.autocommit


def _is_session(connection: Any) -> bool:
    return hasattr(connection, "get_bind")


def _execute(connection: Any, kind: str, name: str) -> None:
    sql = query("database", name)
    if kind == "SQLAlchemy":
        connection.execute(text_of(sql))
    elif kind == "Django":
        with connection.cursor() as cursor:
            cursor.execute(sql)
    else:
        with _pipeline(connection):  # whose end brings an error out of a pipeline of the user's own
            connection.execute(sql.encode())


def _steps(
    statements: Sequence[Statement[Row]], schema: str | None, *, is_saved: bool
) -> list[tuple[bytes, dict[str, object] | None]]:
    ours = [(qualified(one, schema).encode(), dict(one.parameters)) for one in statements]
    if not is_saved:
        return [*ours]
    first, last = (query("database", f"{word}_savepoint").encode() for word in ("set", "release"))
    return [(first, None), *ours, (last, None)]


def _pipeline(connection: Connection[Any]) -> AbstractContextManager[object]:
    return connection.pipeline() if Pipeline.is_supported() else nullcontext()


def _pipeline_async(connection: AsyncConnection[Any]) -> AbstractAsyncContextManager[object]:
    return connection.pipeline() if Pipeline.is_supported() else nullcontext()


def _pipelined(
    connection: Connection[Any],
    statements: Sequence[Statement[Row]],
    schema: str | None,
    *,
    is_saved: bool,
) -> list[Row]:
    """One round trip, where libpq can."""
    with ExitStack() as stack:
        cursors: list[Cursor[Any]] = []
        with _pipeline(connection) if is_saved else nullcontext():
            for sql, parameters in _steps(statements, schema, is_saved=is_saved):
                cursor = stack.enter_context(Cursor(connection, row_factory=tuple_row))
                cursors.append(cursor.execute(sql, parameters))
        answers = cursors[1:-1] if is_saved else cursors
        parts = zip(statements, answers, strict=True)
        return [row for one, cursor in parts for row in rows_of(one, cursor.fetchall())]


async def _pipelined_async(
    connection: AsyncConnection[Any],
    statements: Sequence[Statement[Row]],
    schema: str | None,
    *,
    is_saved: bool,
) -> list[Row]:
    """The awaitable twin of `_pipelined`."""
    async with AsyncExitStack() as stack:
        cursors: list[AsyncCursor[Any]] = []
        async with _pipeline_async(connection) if is_saved else nullcontext():
            for sql, parameters in _steps(statements, schema, is_saved=is_saved):
                cursor = AsyncCursor(connection, row_factory=tuple_row)
                cursor = await stack.enter_async_context(cursor)
                cursors.append(await cursor.execute(sql, parameters))
        answers = cursors[1:-1] if is_saved else cursors
        parts = zip(statements, answers, strict=True)
        return [row for one, cursor in parts for row in rows_of(one, await cursor.fetchall())]


async def _run_asyncpg(
    connection: Any, statements: Sequence[Statement[Row]], schema: str | None
) -> Result[list[Row], Exception]:
    # By statements of ours: its own transaction() refuses a transaction begun by hand.
    is_saved = False
    try:
        if connection.is_in_transaction():
            await connection.execute(query("database", "set_savepoint"))
            is_saved = True
        rows: list[Row] = []
        for statement in statements:
            sql, values = numbered(statement, schema)
            rows += rows_of(statement, await connection.fetch(sql, *values))
        if is_saved:
            await connection.execute(query("database", "release_savepoint"))
    except Exception as error:  # noqa: BLE001 - as above
        if is_saved:
            await connection.execute(query("database", "restore_savepoint"))
        return Err(error)
    return Ok(rows)
