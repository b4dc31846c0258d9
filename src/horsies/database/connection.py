"""How to connect, and small pools of connections for blocking and for awaiting callers.

Why not psycopg_pool: it hides a refused connection behind its own time-out and starts threads per
pool (docs/decisions/0002). Here the caller that needs a connection opens it and sees at once why
it could not.
"""

import asyncio
import os
import select
import threading
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from typing import Any

import psycopg
from psycopg import AsyncConnection, Connection

from horsies.clock import monotonic

_SESSION: dict[str, Any] = {
    "autocommit": True,
    "connect_timeout": 10,
    # A peer that vanished without a word is noticed in about half a minute instead of hours.
    "keepalives_idle": 15,
    "keepalives_interval": 5,
    "keepalives_count": 3,
    "tcp_user_timeout": 30_000,
}


@dataclass(frozen=True, slots=True)
class Address:
    """Where the tables are and how sessions there behave."""

    url: str
    schema: str | None = None
    is_pooled: bool = False  # behind a transaction-mode pooler: nothing may outlive a transaction

    def _arguments(self, name: str) -> dict[str, Any]:
        arguments = {**_SESSION, "application_name": name}
        if self.schema is not None:
            arguments["options"] = f"-c search_path={_option(self.schema)}"
        if self.is_pooled:
            arguments["prepare_threshold"] = None
        return arguments

    def connect(self, name: str = "horsies") -> Connection[Any]:
        return psycopg.connect(self.url, **self._arguments(name))

    async def connect_async(self, name: str = "horsies") -> AsyncConnection[Any]:
        return await AsyncConnection.connect(self.url, **self._arguments(name))


def _option(schema: str) -> str:
    quoted = '"' + schema.replace('"', '""') + '"'
    return quoted.replace("\\", "\\\\").replace(" ", "\\ ")


@dataclass(frozen=True, slots=True)
class PoolLimits:
    size: int
    wait_s: float
    recycle_s: float


@dataclass(slots=True)
class _Idle:
    connection: Connection[Any] | AsyncConnection[Any]
    opened_at: float

    def is_usable(self, recycle_s: float) -> bool:
        """Not too old, and the server has not hung up.

        An idle socket that is readable has met its end.
        """
        if self.connection.closed or monotonic() - self.opened_at > recycle_s:
            return False
        readable, _, _ = select.select([self.connection.fileno()], [], [], 0)
        return not readable


class PoolTimeoutError(psycopg.OperationalError):
    """All connections of the pool stayed in use for the whole wait."""


class BlockingPool:
    """Connections for blocking calls from any thread."""

    def __init__(self, connect: Callable[[], Connection[Any]], limits: PoolLimits) -> None:
        self._connect = connect
        self._limits = limits
        self._forget()

    def _forget(self) -> None:
        self._pid = os.getpid()
        self._idle: list[_Idle] = []
        self._room = threading.BoundedSemaphore(self._limits.size)

    @contextmanager
    def connection(self) -> Generator[Connection[Any], None, None]:
        """Lend a connection in autocommit; a broken one is not kept."""
        if self._pid != os.getpid():
            # After a fork the sockets belong to the parent: keep them unclosed, or its sessions
            # would end.
            self._inherited = self._idle
            self._forget()
        if not self._room.acquire(timeout=self._limits.wait_s):
            raise PoolTimeoutError(_in_use(self._limits))
        try:
            lent = self._take() or _Idle(self._connect(), monotonic())
            connection = lent.connection
            assert isinstance(connection, Connection)
            try:
                yield connection
            finally:
                if _is_clean(connection):
                    self._idle.append(lent)
                else:
                    connection.close()
        finally:
            self._room.release()

    def _take(self) -> _Idle | None:
        while True:
            try:
                lent = self._idle.pop()
            except IndexError:
                return None
            if lent.is_usable(self._limits.recycle_s):
                return lent
            assert isinstance(lent.connection, Connection)
            lent.connection.close()

    def close(self) -> None:
        while (lent := self._take()) is not None:
            assert isinstance(lent.connection, Connection)
            lent.connection.close()


class AsyncPool:
    """Connections for awaiting callers of one event loop."""

    def __init__(
        self, connect: Callable[[], Awaitable[AsyncConnection[Any]]], limits: PoolLimits
    ) -> None:
        self._connect = connect
        self._limits = limits
        self._idle: list[_Idle] = []
        self._room = asyncio.BoundedSemaphore(limits.size)

    @asynccontextmanager
    async def connection(self) -> AsyncGenerator[AsyncConnection[Any], None]:
        """Lend a connection in autocommit; a broken one is not kept."""
        try:
            async with asyncio.timeout(self._limits.wait_s):
                await self._room.acquire()
        except TimeoutError:
            raise PoolTimeoutError(_in_use(self._limits)) from None
        try:
            lent = await self._take() or _Idle(await self._connect(), monotonic())
            connection = lent.connection
            assert isinstance(connection, AsyncConnection)
            try:
                yield connection
            finally:
                if _is_clean(connection):
                    self._idle.append(lent)
                else:
                    await connection.close()
        finally:
            self._room.release()

    async def _take(self) -> _Idle | None:
        while self._idle:
            lent = self._idle.pop()
            if lent.is_usable(self._limits.recycle_s):
                return lent
            assert isinstance(lent.connection, AsyncConnection)
            await lent.connection.close()
        return None

    async def close(self) -> None:
        while (lent := await self._take()) is not None:
            assert isinstance(lent.connection, AsyncConnection)
            await lent.connection.close()


def _is_clean(connection: Connection[Any] | AsyncConnection[Any]) -> bool:
    status = connection.info.transaction_status
    return not connection.closed and status is psycopg.pq.TransactionStatus.IDLE


def _in_use(limits: PoolLimits) -> str:
    return (
        f"all {limits.size} database connections of this process stayed in use for "
        f"{limits.wait_s:g} s; raise PostgresConfig.pool_size or send less at once"
    )
