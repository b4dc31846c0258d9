"""The connections of one process, shared by blocking callers and by event loops.

Why not psycopg_pool: it hides a refused connection behind its own timeout and starts threads per
pool (docs/decisions/0002-own-small-pools.md). Here the caller that needs a connection opens it and
sees at once why it could not.
"""

import asyncio
import os
from collections import deque
from collections.abc import AsyncGenerator, Callable, Generator
from concurrent.futures import Future
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass

import psycopg
from psycopg import AsyncConnection, Connection
from psycopg.errors import ReadOnlySqlTransaction
from psycopg.rows import TupleRow

from horsies.clock import monotonic
from horsies.database.connection import Address
from horsies.database.sockets import has_news
from horsies.locks import ForkSafeLock

# A connection of an event loop serves only that loop; blocking callers have no loop.
Owner = asyncio.AbstractEventLoop | None


@dataclass(frozen=True, slots=True)
class PoolLimits:
    kept: int  # connections that stay open while nobody needs them
    open: int
    wait_s: float
    recycle_s: float
    is_checked: bool = True  # look whether the server has hung up before lending


# A connection used just now is not looked at: the look costs as much as the rest of the lending,
# and a statement that meets a dead connection is repeated anyway.
_FRESH_S = 0.1


@dataclass(slots=True)
class _Held:
    connection: Connection[TupleRow] | AsyncConnection[TupleRow]
    owner: Owner
    opened_at: float
    used_at: float = 0.0

    def is_usable(self, limits: PoolLimits) -> bool:
        """Not too old, and the server has not hung up: an idle socket with news has met its end."""
        now = monotonic()
        if self.connection.closed or now - self.opened_at > limits.recycle_s:
            return False
        if not limits.is_checked or now - self.used_at < _FRESH_S:
            return True
        return not has_news(self.connection.fileno())

    def is_clean(self) -> bool:
        # A closed connection has no known status, so it is not idle either.
        return self.connection.pgconn.transaction_status == psycopg.pq.TransactionStatus.IDLE

    def close(self) -> None:
        """Hang up without waiting, from whichever thread or loop."""
        self.connection.pgconn.finish()


class PoolTimeoutError(psycopg.OperationalError):
    """All connections of the process stayed in use for the whole wait."""


class Pool:
    """Lends connections in autocommit, never more than `limits.open` of them at once."""

    def __init__(self, address: Callable[[], Address], limits: PoolLimits) -> None:
        self._address = address
        self._limits = limits
        self._lock = ForkSafeLock()
        self._closed_at = 0.0
        self._forget()

    def _forget(self) -> None:
        self._pid = os.getpid()
        self._free = self._limits.open
        self._waiting: deque[Future[None]] = deque()
        self._idle: list[_Held] = []

    @contextmanager
    def connection(self) -> Generator[Connection[TupleRow], None, None]:
        """Lend a connection to a blocking caller; a broken one is not kept."""
        if (turn := self._ask()) is not None:
            self._wait(turn)
        try:
            held = self._take(None) or _Held(self._address().connect(), None, monotonic())
            assert isinstance(held.connection, Connection)
            try:
                yield held.connection
            except ReadOnlySqlTransaction:  # a primary no more: look for the one that is
                self._close_idle()
                held.close()
                raise
            finally:
                self._put(held)
        finally:
            self._leave()

    @asynccontextmanager
    async def connection_async(self) -> AsyncGenerator[AsyncConnection[TupleRow], None]:
        """The awaitable twin of `connection`."""
        if (turn := self._ask()) is not None:
            await self._wait_async(turn)
        try:
            loop = asyncio.get_running_loop()
            held = self._take(loop)
            if held is None:
                held = _Held(await self._address().connect_async(), loop, monotonic())
            assert isinstance(held.connection, AsyncConnection)
            try:
                yield held.connection
            except ReadOnlySqlTransaction:
                self._close_idle()
                held.close()
                raise
            finally:
                self._put(held)
        finally:
            self._leave()

    def _ask(self) -> Future[None] | None:
        """Take a place among the lent connections, or queue for one."""
        if self._pid != os.getpid():
            # After a fork the sockets belong to the parent: keep them unclosed, or its sessions
            # would end.
            self._inherited = self._idle
            self._forget()
        with self._lock:
            if self._free > 0:
                self._free -= 1
                return None
            turn: Future[None] = Future()
            self._waiting.append(turn)
            return turn

    def _wait(self, turn: Future[None]) -> None:
        has_place = False
        try:
            turn.result(self._limits.wait_s)
            has_place = True
        except TimeoutError:
            raise self._timeout() from None
        finally:
            if not has_place:  # also when Ctrl-C or a time limit ends the wait
                self._give_up(turn)

    async def _wait_async(self, turn: Future[None]) -> None:
        has_place = False
        try:
            async with asyncio.timeout(self._limits.wait_s):
                await asyncio.wrap_future(turn)
            has_place = True
        except TimeoutError:
            raise self._timeout() from None
        finally:
            if not has_place:
                self._give_up(turn)

    def _timeout(self) -> PoolTimeoutError:
        return PoolTimeoutError(
            f"all {self._limits.open} database connections of this process stayed in use for "
            f"{self._limits.wait_s:g} s; raise PostgresConfig.pool_size or send less at once"
        )

    def _give_up(self, turn: Future[None]) -> None:
        with self._lock:
            if turn in self._waiting:
                self._waiting.remove(turn)
                is_granted = False
            else:
                is_granted = True
        if is_granted:  # in the moment of giving up
            self._leave()

    def _leave(self) -> None:
        with self._lock:
            if self._waiting:
                turn = self._waiting.popleft()
            else:
                self._free += 1
                return
        # Not one that was cancelled just now: it gives its place up itself.
        if turn.set_running_or_notify_cancel():
            turn.set_result(None)

    def _take(self, owner: Owner) -> _Held | None:
        """The owner's freshest idle connection; without one, see to it that one may be opened."""
        with self._lock:
            for index in range(len(self._idle) - 1, -1, -1):
                if self._idle[index].owner is owner:
                    held = self._idle.pop(index)
                    if held.is_usable(self._limits):
                        return held
                    held.close()
            gone = [held for held in self._idle if held.owner and held.owner.is_closed()]
            lent = self._limits.open - self._free
            if not gone and lent + len(self._idle) > self._limits.open:
                gone = self._idle[:1]
            for held in gone:
                self._idle.remove(held)
                held.close()
        return None

    def _put(self, held: _Held) -> None:
        with self._lock:
            is_current = held.opened_at > self._closed_at
            if is_current and held.is_clean() and len(self._idle) < self._limits.kept:
                held.used_at = monotonic()
                self._idle.append(held)
            else:
                held.close()

    def close(self) -> None:
        """Close what is idle now, and what is lent when it comes back."""
        with self._lock:
            self._closed_at = monotonic()
        self._close_idle()

    def _close_idle(self) -> None:
        with self._lock:
            idle, self._idle = self._idle, []
        for held in idle:
            held.close()
