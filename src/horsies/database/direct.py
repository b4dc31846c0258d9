"""One procedure call of a blocking caller, sent straight through libpq.

For the one statement whose cost is the product's: a single send. The driver's cursor takes longer
to prepare and read it than the server to store the row.
"""

from collections.abc import Iterable, Sequence
from contextlib import suppress
from datetime import datetime
from weakref import WeakSet

import psycopg
from psycopg import Connection, Cursor
from psycopg.abc import Buffer
from psycopg.errors import (
    DuplicatePreparedStatement,
    InvalidSqlStatementName,
    error_from_result,
)
from psycopg.pq import ExecStatus
from psycopg.rows import TupleRow

from horsies.database.functions import parameters_of
from horsies.database.sockets import has_news

_CANCEL_S = 5.0


class DirectCall:
    """A call of `horsies_<procedure>`, prepared once per connection; it answers nothing."""

    def __init__(self, procedure: str) -> None:
        self._name = f"horsies_{procedure}"
        self._kinds = parameters_of(procedure)
        self._prepared: WeakSet[Connection[TupleRow]] = WeakSet()

    def run(self, connection: Connection[TupleRow], values: Sequence[object]) -> None:
        """Call it in a transaction of its own; Ctrl-C ends the wait, and the call."""
        # Behind a pooler nothing stays prepared, and a cursor of another kind wants to see it.
        if connection.prepare_threshold is None or connection.cursor_factory is not Cursor:
            connection.execute(self._sql("%s" for _ in values), values)
            return
        if connection not in self._prepared:
            self._prepare(connection, len(values))
        try:
            self._execute(connection, values)
        except InvalidSqlStatementName:
            # The driver answers a ROLLBACK with DEALLOCATE ALL: nothing has run, and it can again.
            self._prepare(connection, len(values))
            self._execute(connection, values)

    def _prepare(self, connection: Connection[TupleRow], count: int) -> None:
        numbered = self._sql(f"${number}" for number in range(1, count + 1))
        connection.pgconn.send_prepare(self._name.encode(), numbered)
        # Threads that send first at the same moment may each have made an instance of this.
        with suppress(DuplicatePreparedStatement):
            _finish(connection)
        self._prepared.add(connection)

    def _execute(self, connection: Connection[TupleRow], values: Sequence[object]) -> None:
        texts = [_text(value) for value in values]
        connection.pgconn.send_query_prepared(self._name.encode(), texts)
        try:
            _finish(connection)
        except KeyboardInterrupt:
            # Whatever comes of it: a connection that is still busy is not kept by its pool.
            with suppress(psycopg.Error):
                connection.cancel_safe(timeout=_CANCEL_S)
                _finish(connection)
            raise

    def _sql(self, places: Iterable[str]) -> bytes:
        arguments = [
            f"{name} => cast({place} as {kind})"
            for (name, kind), place in zip(self._kinds.items(), places, strict=True)
        ]
        return f"call {self._name}({', '.join(arguments)})".encode()


def _finish(connection: Connection[TupleRow]) -> None:
    """Wait for the answer; an error in it is raised as the driver would."""
    pgconn = connection.pgconn
    while pgconn.flush():
        pgconn.consume_input()
    failure: psycopg.Error | None = None
    while True:
        while pgconn.is_busy():
            has_news(pgconn.socket, within_s=None)
            pgconn.consume_input()
        result = pgconn.get_result()
        if result is None:
            break
        if result.status == ExecStatus.FATAL_ERROR:
            failure = error_from_result(result)
    if failure is not None:
        raise failure


def _text(value: object) -> Buffer | None:
    if value is None:
        return None
    return (value.isoformat() if isinstance(value, datetime) else str(value)).encode()
