"""A statement is described once and performed by async code, by blocking code or by the user's own.

The failures of performing one are judged here too: which are worth another try.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, NamedTuple, TypeVar

import psycopg
from psycopg import AsyncConnection, AsyncCursor, Connection, Cursor
from psycopg.rows import RowMaker, TupleRow

Row = TypeVar("Row")


@dataclass(frozen=True, slots=True)
class Statement(Generic[Row]):
    """SQL with its parameters and what a row it gives is made by: mostly the row's type."""

    sql: str
    parameters: Mapping[str, object]
    row: Callable[..., Row]

    def make_row(self, cursor: object) -> RowMaker[Row]:
        """A psycopg row factory: columns become positional arguments."""
        row = self.row

        def make(values: Sequence[Any]) -> Row:
            return row(*values)

        return make


class Scalar(NamedTuple):
    """One column, whatever it is."""

    value: Any


class Receipt(NamedTuple):
    """What the database answered for one input of a batch."""

    task_id: str
    outcome: str


async def run(connection: AsyncConnection[TupleRow], statement: Statement[Row]) -> list[Row]:
    """Perform a statement and give its rows."""
    async with connection.cursor(row_factory=statement.make_row) as cursor:
        await cursor.execute(statement.sql.encode(), statement.parameters)
        return await cursor.fetchall() if _has_rows(cursor) else []


async def run_pipelined(
    connection: AsyncConnection[TupleRow], statements: Sequence[Statement[Any]]
) -> list[list[Any]]:
    """Perform statements in one transaction and one round trip."""
    cursors = [connection.cursor(row_factory=statement.make_row) for statement in statements]
    async with connection.pipeline(), connection.transaction():
        for cursor, statement in zip(cursors, statements, strict=True):
            await cursor.execute(statement.sql.encode(), statement.parameters)
    return [await cursor.fetchall() for cursor in cursors]


def run_blocking(connection: Connection[TupleRow], statement: Statement[Row]) -> list[Row]:
    """The blocking twin of `run`."""
    with connection.cursor(row_factory=statement.make_row) as cursor:
        cursor.execute(statement.sql.encode(), statement.parameters)
        return cursor.fetchall() if _has_rows(cursor) else []


def _has_rows(cursor: AsyncCursor[Any] | Cursor[Any]) -> bool:
    """Whether there is an answer to fetch; asked of `description`, it describes every column."""
    return cursor.pgresult is not None and cursor.pgresult.nfields > 0


# What a refused log-in says; libpq gives no SQLSTATE for it.
_REFUSALS = ("authentication failed", "does not exist", "no pg_hba.conf entry", "permission denied")


def is_connection_failure(error: BaseException) -> bool:
    """Whether the database was unreachable, so that the same call may succeed later."""
    if isinstance(error, psycopg.OperationalError) and error.sqlstate is None:
        return not any(refusal in str(error) for refusal in _REFUSALS)
    return isinstance(error, _UNREACHABLE)


def is_transient(error: BaseException) -> bool:
    """Whether a service should back off and retry: the database is away, or busy for now."""
    if isinstance(error, psycopg.errors.ProgramLimitExceeded):
        return "NOTIFY" in str(error)  # its queue is full; the other limits are a row's own
    if is_outdated_plan(error):
        return True
    if isinstance(error, psycopg.errors.InternalError_):
        return "cache lookup failed for function" in str(error)  # a migration has replaced it
    return is_connection_failure(error) or isinstance(error, _TEMPORARY)


def is_outdated_plan(error: BaseException) -> bool:
    """Whether a migration has changed what a prepared statement returns; a new session knows."""
    is_feature = isinstance(error, psycopg.errors.FeatureNotSupported)
    return is_feature and "cached plan" in str(error)


_UNREACHABLE = (
    psycopg.InterfaceError,
    psycopg.errors.AdminShutdown,
    psycopg.errors.CrashShutdown,
    psycopg.errors.CannotConnectNow,
    psycopg.errors.TooManyConnections,
    psycopg.errors.ConnectionException,
    psycopg.errors.IdleSessionTimeout,
    psycopg.errors.ReadOnlySqlTransaction,  # the server that takes writes is another one by now
    TimeoutError,
    ConnectionError,
)
_TEMPORARY = (
    psycopg.errors.DeadlockDetected,
    psycopg.errors.SerializationFailure,
    psycopg.errors.LockNotAvailable,
    psycopg.errors.QueryCanceled,
    psycopg.errors.InsufficientResources,
    psycopg.errors.DiskFull,  # the driver's classes do not follow PostgreSQL's: named by itself
)
