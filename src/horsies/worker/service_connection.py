"""A service's own database connection: reopened when it breaks, with the configured back-off.

All connections of a worker share what they learn of the server: the first that gets through wakes
the others from their waits.
"""

import asyncio
import logging
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any, TypeVar

from psycopg import AsyncConnection
from psycopg.errors import ReadOnlySqlTransaction
from psycopg.rows import TupleRow

from horsies.clock import jittered
from horsies.config import WorkerResilienceConfig
from horsies.database.connection import Address
from horsies.database.functions import call
from horsies.database.statement import Scalar, Statement, run, run_pipelined
from horsies.database.verdict import is_connection_failure, is_outdated_plan, is_transient
from horsies.database.watchdog import hang_up

Row = TypeVar("Row")
T = TypeVar("T")

_logger = logging.getLogger("horsies.worker")
# Far longer than any statement of ours takes; a server that is silent for so long has gone.
CLIENT_LIMIT_S = 60.0
# The server gives up before the client does, so that the client learns what became of a statement.
SERVER_LIMIT_S = 50.0
_ASK_AGAIN_S = 0.05


def end_backend(lost_pid: int, session_name: str) -> Statement[Scalar]:
    """Whether a session whose client has hung up is gone; it is told to go."""
    return call("end_backend", Scalar, lost_pid=lost_pid, session_name=session_name)


class DatabaseLostError(Exception):
    """The database stayed away for `db_retry_max_attempts` tries in a row."""


class Outage:
    """What the connections of one worker know together: whether the server has come back."""

    def __init__(self) -> None:
        self._ended = asyncio.Event()
        self.on_read_only: Callable[[], None] = _nothing

    def end(self) -> None:
        """A connection got through: whoever waits tries again at once."""
        self._ended.set()
        self._ended = asyncio.Event()

    async def wait(self, seconds: float, stopping: asyncio.Event) -> None:
        """Until it ends, the worker stops or the time is over."""
        events = (self._ended, stopping)
        waits = [asyncio.ensure_future(event.wait()) for event in events]
        try:
            await asyncio.wait(waits, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for one in waits:
                one.cancel()


def _nothing() -> None:
    """Nobody else has to know."""


class ServiceConnection:
    """One connection, one statement at a time."""

    def __init__(
        self,
        address: Address,
        name: str,
        resilience: WorkerResilienceConfig,
        *,
        outage: Outage | None = None,
        lock_limit_s: float = 10.0,
    ) -> None:
        self._address = address.limited(SERVER_LIMIT_S, lock_limit_s)
        self._name = self._session_name = name
        self._resilience = resilience
        self._outage = outage or Outage()
        self._connection: AsyncConnection[TupleRow] | None = None
        self._failures = 0
        self._lock = asyncio.Lock()
        self._backend_pid = 0
        self._lost_pid: int | None = None

    async def run(self, statement: Statement[Row]) -> list[Row]:
        """Perform a statement in its own transaction."""
        async with self._lent() as connection:
            return await run(connection, statement)

    async def run_together(self, statements: Sequence[Statement[Any]]) -> list[list[Any]]:
        """Perform statements in one transaction."""
        async with self._lent() as connection:
            return await run_pipelined(connection, statements)

    async def end_lost_backend(self) -> bool:
        """Wait until the server's side of the last broken connection is gone, if that can be known.

        It may have gone on without us: what it did is certain only when it can do no more. Behind a
        pooler its pid means nothing here; there its statement may go on as long as any may.
        """
        if self._address.is_pooled:
            return False
        while self._lost_pid is not None:
            rows = await self.run(end_backend(self._lost_pid, self._session_name))
            if rows[0].value:
                self._lost_pid = None
            else:
                await asyncio.sleep(_ASK_AGAIN_S)
        return True

    @property
    def is_failing(self) -> bool:
        """Whether the last tries did not reach the database."""
        return self._failures > 0

    async def persistently(self, what: str, work: Callable[[], Awaitable[T]]) -> T:
        """Repeat `work` until the database answers; give up as the resilience settings say."""
        done = await self.persistently_until(asyncio.Event(), what, work)
        assert done is not None, "only an event ends the tries"
        return done[0]

    async def persistently_until(
        self, end: asyncio.Event, what: str, work: Callable[[], Awaitable[T]]
    ) -> tuple[T] | None:
        """As `persistently`, but try no more once `end` is set: then there is no answer."""
        while True:
            try:
                done = await work()
            except Exception as error:  # the service loop: transient failures are waited out here
                if not is_transient(error):
                    raise
                await self._wait_after(what, error, end)
                if end.is_set():
                    return None
            else:
                if self._failures:
                    _logger.info("%s: the database is back", what)
                    self._failures = 0
                    self._outage.end()
                return (done,)

    async def _wait_after(self, what: str, error: BaseException, end: asyncio.Event) -> None:
        """Back off; not after the first failure, which may have been this connection's alone."""
        settings = self._resilience
        self._failures += 1
        limit = settings.db_retry_max_attempts
        if limit and self._failures >= limit and is_connection_failure(error):
            raise DatabaseLostError(f"{what} failed {limit} times in a row: {error}") from error
        if self._failures == 1 and is_connection_failure(error):
            _logger.warning("%s failed, trying again: %s", what, error)
            return
        growth: int = 2 ** min(self._failures - 1, 20)
        wait_ms = min(settings.db_retry_max_ms, settings.db_retry_initial_ms * growth)
        wait_s = max(0.1, jittered(wait_ms / 1000))
        _logger.warning("%s failed, trying again in %.1f s: %s", what, wait_s, error)
        await self._outage.wait(wait_s, end)

    @asynccontextmanager
    async def _lent(self) -> AsyncGenerator[AsyncConnection[TupleRow], None]:
        """The connection, for one user at a time and within the limit of a statement."""
        async with self._lock:
            connection = await self._open()
            timer = asyncio.get_running_loop().call_later(CLIENT_LIMIT_S, hang_up, connection)
            try:
                yield connection
            except BaseException as error:
                await self._discard_if_unusable(error)
                raise
            finally:
                timer.cancel()

    async def _open(self) -> AsyncConnection[TupleRow]:
        if self._connection is None or self._connection.closed:
            self._connection = await self._address.connect_async(self._name)
            info = self._connection.info
            self._backend_pid = info.backend_pid
            # The URL may have given it another than ours.
            self._session_name = info.parameter_status("application_name") or self._name
        return self._connection

    async def _discard_if_unusable(self, error: BaseException) -> None:
        connection = self._connection
        if connection is None:
            return
        is_read_only = isinstance(error, ReadOnlySqlTransaction)
        if is_read_only:  # a primary no more: the next connection looks for the one that is
            self._outage.on_read_only()
        is_idle = connection.pgconn.transaction_status == 0
        is_useless = is_read_only or is_outdated_plan(error)
        if connection.closed or connection.broken or not is_idle or is_useless:
            self._connection = None
            self._lost_pid = self._backend_pid
            await connection.close()

    async def close(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            await connection.close()
