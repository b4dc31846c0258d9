"""One database as a process uses it: address, connections for all callers, listener, schema."""

import asyncio
import logging
import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, TypeVar

from psycopg import Connection
from psycopg.rows import TupleRow

from horsies.clock import monotonic
from horsies.config.database import PostgresConfig, to_psycopg_url
from horsies.database.connection import Address
from horsies.database.direct import DirectCall
from horsies.database.listener import Listener
from horsies.database.migrate import SchemaState, migrate, outdated, resolve_schema, state_of
from horsies.database.operation import FAILURES, Operation, operation_error
from horsies.database.pool import Pool, PoolLimits, PoolTimeoutError
from horsies.database.server_check import check_server
from horsies.database.statement import Statement, run, run_blocking
from horsies.database.verdict import is_connection_failure
from horsies.database.watchdog import Watchdog, limited
from horsies.locks import ForkSafeLock
from horsies.result import Err, Ok, Result
from horsies.result.broker import BrokerOperationError

if TYPE_CHECKING:
    from horsies.embedded_postgres import EmbeddedServer  # imported only where one is used

Row = TypeVar("Row")
T = TypeVar("T")

_logger = logging.getLogger("horsies.database")
# The server gives up before the client does, so that the client learns what became of a statement.
_SERVER_SHARE = 0.8
# A migration may have to rewrite a large table; a server that is silent for so long has gone.
_MIGRATION_LIMIT_S = 3600.0


class Database:
    """Connections are opened as needed and shared by threads and event loops."""

    def __init__(self, config: PostgresConfig) -> None:
        self.config = config
        self.schema: str | None = config.schema
        self._lock = ForkSafeLock()
        # Of its own: a look at the schema may take long, and event loops must not wait for it.
        self._schema_lock = ForkSafeLock()
        self._address: Address | None = None
        self._server: EmbeddedServer | None = None
        self.pool = Pool(lambda: self.address, _limits(config))
        self._listener: Listener | None = None
        self._is_schema_ready = False
        self.watchdog = Watchdog()

    @property
    def address(self) -> Address:
        """Where the tables are.

        Starts the embedded server when that is what the configuration says.
        """
        with self._lock:
            if self._address is None:
                config = self.config
                limit_s = max(1.0, _SERVER_SHARE * config.pool_timeout)
                self._address = Address(
                    self._url(), config.schema, config.pgbouncer_transaction_mode, config.echo
                ).limited(limit_s, limit_s)
            return self._address

    @property
    def statement_limit_s(self) -> float:
        """How long to wait for an answer; also where nobody waits for a free connection."""
        return max(1.0, self.config.pool_timeout)

    @property
    def session_address(self) -> Address | None:
        """Where LISTEN and session locks work; `None` behind a pooler without a direct URL."""
        if self.config.session_database_url is not None:
            url = to_psycopg_url(self.config.session_database_url)
            return Address(url, self.config.schema, is_echoed=self.config.echo)
        return None if self.config.pgbouncer_transaction_mode else self.address

    def _url(self) -> str:
        if not self.config.is_embedded:
            return to_psycopg_url(self.config.database_url)
        from horsies.embedded_postgres import acquire

        self._server = acquire(self.config.embedded_directory)
        return self._server.url

    def listener(self) -> Listener | None:
        """The process's one LISTEN connection, or `None` where there can be none."""
        with self._lock:
            if self._listener is None:
                address = self.session_address
                if address is None:
                    return None
                self._listener = Listener(lambda: address.connect("horsies listener"))
            return self._listener

    def ensure_schema(self) -> None:
        """Look at the tables once per broker: create them, or refuse those that are too old."""
        with self._schema_lock:
            if self._is_schema_ready:
                return
            limit_s = self.statement_limit_s
            with (
                self.pool.connection() as connection,
                self.watchdog.limit(connection, limit_s) as renew,
            ):
                check_server(connection)
                state = state_of(connection, schema=self.config.schema)
                if state.missing:
                    renew(_MIGRATION_LIMIT_S)
                    self._migrate(connection, state)
                self.schema = resolve_schema(connection, self.config.schema)
            self._is_schema_ready = True

    def _migrate(self, connection: Connection[TupleRow], state: SchemaState) -> None:
        config = self.config
        if not (state.is_new or config.is_embedded or config.auto_migrate):
            raise outdated(state.missing)
        applied = migrate(connection, schema=config.schema)
        if applied:  # another process may have been faster
            what = "created the tables" if state.is_new else "upgraded the tables"
            _logger.info("%s: %s", what, ", ".join(applied))

    def trust_schema(self) -> None:
        """Leave the tables to the one who migrates them: an integration's own migrations."""
        self._is_schema_ready = True

    async def ensure_schema_async(self) -> None:
        if not self._is_schema_ready:
            await asyncio.to_thread(self.ensure_schema)

    def perform(self, operation: Operation[Row, T]) -> Result[T, BrokerOperationError]:
        """Run an operation from a blocking caller; failures are values."""
        try:
            self.ensure_schema()
            return Ok(operation.read(self.run(operation.statement)))
        except FAILURES as error:
            return Err(operation_error(operation.failure, error))

    async def perform_async(self, operation: Operation[Row, T]) -> Result[T, BrokerOperationError]:
        """The awaitable twin of `perform`."""
        try:
            await self.ensure_schema_async()
            return Ok(operation.read(await self.run_async(operation.statement)))
        except FAILURES as error:
            return Err(operation_error(operation.failure, error))

    def run(self, statement: Statement[Row], *, within: float = math.inf) -> list[Row]:
        """Run one statement, once more on a fresh connection if the kept one had died unnoticed.

        An unresponsive server is given up after `within` seconds or `pool_timeout`, if sooner.
        """
        work = partial(run_blocking, statement=statement)
        return self._with_connection(work, within, may_repeat=statement.may_repeat)

    def call(self, procedure: DirectCall, values: Sequence[object]) -> None:
        """As `run`, for a procedure that answers nothing, the fastest way."""
        self._with_connection(partial(procedure.run, values=values), math.inf)

    def _with_connection(
        self, work: Callable[[Connection[TupleRow]], T], within: float, *, may_repeat: bool = True
    ) -> T:
        started_at, limit = monotonic(), min(within, self.statement_limit_s)
        try:
            with self.pool.connection() as connection, self.watchdog.limit(connection, limit):
                return work(connection)
        except FAILURES as error:
            if not (may_repeat and _is_worth_another(error, started_at, limit)):
                raise
        with self.pool.connection() as connection, self.watchdog.limit(connection, limit):
            return work(connection)

    async def run_async(self, statement: Statement[Row]) -> list[Row]:
        started_at = monotonic()
        try:
            return await self._run_once_async(statement)
        except FAILURES as error:
            is_worth_it = _is_worth_another(error, started_at, self.statement_limit_s)
            if not (statement.may_repeat and is_worth_it):
                raise
        return await self._run_once_async(statement)

    async def _run_once_async(self, statement: Statement[Row]) -> list[Row]:
        async with self.pool.connection_async() as connection:
            with limited(connection, self.statement_limit_s):
                return await run(connection, statement)

    async def close_async(self) -> None:
        await asyncio.to_thread(self.close)

    def close(self) -> None:
        with self._lock:
            listener, self._listener = self._listener, None
            server, self._server = self._server, None
            self._address = None
        if listener is not None:
            listener.close()
        self.pool.close()
        if server is not None:
            server.release()


def _is_worth_another(error: BaseException, started_at: float, limit: float) -> bool:
    """A kept connection had ended unnoticed, or its server takes no writes any more.

    Both are known at once, not after a timeout.
    """
    at_once = monotonic() - started_at < limit / 2
    return at_once and is_connection_failure(error) and not isinstance(error, PoolTimeoutError)


def _limits(config: PostgresConfig) -> PoolLimits:
    return PoolLimits(
        config.pool_size,
        config.pool_size + config.max_overflow,
        config.pool_timeout,
        config.pool_recycle,
        config.pool_pre_ping,
    )
