"""Hangs up on an unresponsive server, one that accepted a statement and never answers.

Shutting the socket down makes the waiting driver see the end of the connection at once, in blocking
and awaiting code alike; a cancel request would go to the same unresponsive server.
"""

import asyncio
import os
import socket
import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager

from psycopg import AsyncConnection, Connection
from psycopg.rows import TupleRow

from horsies.clock import monotonic
from horsies.locks import ForkSafeLock

_TICK_S = 0.5


def hang_up(connection: Connection[TupleRow] | AsyncConnection[TupleRow]) -> None:
    """End the connection from outside; whoever waits on it gets an OperationalError."""
    if connection.closed:
        return
    try:
        with socket.socket(fileno=os.dup(connection.fileno())) as copy:
            copy.shutdown(socket.SHUT_RDWR)
    except OSError:  # it went away by itself meanwhile
        return


@contextmanager
def limited(
    connection: AsyncConnection[TupleRow], seconds: float
) -> Generator[Callable[[float], None], None, None]:
    """The awaitable twin of `Watchdog.limit`."""
    loop = asyncio.get_running_loop()
    timer = loop.call_later(seconds, hang_up, connection)

    def renew(seconds: float) -> None:
        nonlocal timer
        timer.cancel()
        timer = loop.call_later(seconds, hang_up, connection)

    try:
        yield renew
    finally:
        timer.cancel()


class Watchdog:
    """Limits blocking statements, from one thread for the whole process."""

    def __init__(self) -> None:
        self._watched: dict[int, tuple[float, Connection[TupleRow]]] = {}
        self._lock = ForkSafeLock()
        self._thread: threading.Thread | None = None

    @contextmanager
    def limit(
        self, connection: Connection[TupleRow], seconds: float
    ) -> Generator[Callable[[float], None], None, None]:
        """Hang up if the block takes longer; what it gives sets the limit anew from now on."""
        key = id(connection)

        def renew(seconds: float) -> None:
            self._watched[key] = (monotonic() + seconds, connection)

        renew(seconds)
        if self._thread is None or not self._thread.is_alive():  # as in a forked process
            self._start()
        try:
            yield renew
        finally:
            self._watched.pop(key, None)

    def _start(self) -> None:
        with self._lock:
            if self._thread is None or not self._thread.is_alive():
                self._thread = threading.Thread(
                    target=self._run, name="horsies-watchdog", daemon=True
                )
                self._thread.start()

    def _run(self) -> None:
        idle_since = monotonic()
        pause = threading.Event()
        while True:
            pause.wait(_TICK_S)
            now = monotonic()
            for key, (deadline, connection) in list(self._watched.items()):
                idle_since = now
                if now >= deadline:
                    hang_up(connection)
                    self._watched.pop(key, None)
            with self._lock:
                if now - idle_since > 10:
                    # First this, then the look: whoever comes between them starts another.
                    self._thread = None
                    if not self._watched:
                        return
                    self._thread = threading.current_thread()
