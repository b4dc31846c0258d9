"""A statement described once and performed by async code, blocking code or the user's own transaction."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import psycopg
from psycopg import AsyncConnection, Connection
from psycopg.rows import RowMaker

Row = TypeVar("Row")


@dataclass(frozen=True, slots=True)
class Statement(Generic[Row]):
    """SQL with its parameters and the shape of the rows it gives."""

    sql: str
    parameters: Mapping[str, object]
    row: type[Row]

    def make_row(self, cursor: object) -> RowMaker[Row]:
        """A psycopg row factory: columns become the positional fields of the row type."""
        row: Any = self.row

        def make(values: Sequence[Any]) -> Row:
            made: Row = row(*values)
            return made

        return make


async def run(connection: AsyncConnection[Any], statement: Statement[Row]) -> list[Row]:
    """Perform a statement and give its rows."""
    async with connection.cursor(row_factory=statement.make_row) as cursor:
        await cursor.execute(statement.sql.encode(), statement.parameters)
        return await cursor.fetchall() if cursor.description else []


def run_blocking(connection: Connection[Any], statement: Statement[Row]) -> list[Row]:
    """The blocking twin of `run`."""
    with connection.cursor(row_factory=statement.make_row) as cursor:
        cursor.execute(statement.sql.encode(), statement.parameters)
        return cursor.fetchall() if cursor.description else []


def is_passing(error: BaseException) -> bool:
    """Whether an error is the database being away (or busy with itself), so that trying again makes sense."""
    if isinstance(error, psycopg.errors.ReadOnlySqlTransaction | psycopg.errors.DiskFull):
        return True
    if isinstance(
        error, psycopg.errors.InvalidPassword | psycopg.errors.InvalidAuthorizationSpecification
    ):
        return False
    return isinstance(
        error, psycopg.OperationalError | psycopg.InterfaceError | TimeoutError | OSError
    )
