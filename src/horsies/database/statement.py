"""A statement is described once and performed by async code, by blocking code or by the user's own.

`database/verdict.py` judges the failures of performing one.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, NamedTuple, TypeVar

from psycopg import AsyncConnection, AsyncCursor, Connection, Cursor
from psycopg.rows import RowMaker, TupleRow

from horsies.database.loading import container_columns, fitted

Row = TypeVar("Row")


@dataclass(frozen=True, slots=True)
class Statement(Generic[Row]):
    """SQL with its parameters and what a row it gives is made by: mostly the row's type.

    One that may not be repeated would answer otherwise the second time: when its answer is lost,
    that is an error.
    """

    sql: str
    parameters: Mapping[str, object]
    row: Callable[..., Row]
    may_repeat: bool = True

    def make_row(self, cursor: object) -> RowMaker[Row]:
        """A psycopg row factory: columns become positional arguments."""
        row = self.row
        containers = container_columns(row)
        if containers:

            def make_fitted(values: Sequence[Any]) -> Row:
                fitting = list(values)
                for place, declared in containers:
                    fitting[place] = fitted(fitting[place], declared)
                return row(*fitting)

            return make_fitted

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
