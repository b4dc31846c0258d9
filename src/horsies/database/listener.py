"""One LISTEN connection per process, in a thread of its own, for blocking and awaiting users alike.

It reconnects by itself. After every (re)connect each subscriber is called once with an empty
payload: something may have been missed, look now. A notification only wakes; polling is the truth.
"""

import logging
import os
import select
import threading
from collections.abc import Callable
from typing import Any

import psycopg
from psycopg import Connection, sql

from horsies.clock import jittered

Callback = Callable[[str], None]

_logger = logging.getLogger("horsies.listener")


class Listener:
    """Turns notifications into calls of the subscribers, on the listener's thread."""

    def __init__(
        self,
        connect: Callable[[], Connection[Any]],
        *,
        on_connect: Callable[[Connection[Any]], None] | None = None,
    ) -> None:
        self._connect = connect
        self._on_connect = on_connect
        self._callbacks: dict[str, list[Callback]] = {}
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._is_closing = False
        self._wake_reader, self._wake_writer = os.pipe()
        os.set_blocking(self._wake_reader, False)
        self.is_connected = threading.Event()

    def subscribe(self, channel: str, callback: Callback) -> None:
        """Call `callback(payload)` for each notification on `channel`.

        Starts the thread when it is the first.
        """
        with self._lock:
            self._callbacks.setdefault(channel, []).append(callback)
            if self._thread is None and not self._is_closing:
                self._thread = threading.Thread(
                    target=self._run, name="horsies-listener", daemon=True
                )
                self._thread.start()
        self._wake()

    def unsubscribe(self, channel: str, callback: Callback) -> None:
        with self._lock:
            callbacks = self._callbacks.get(channel, [])
            if callback in callbacks:
                callbacks.remove(callback)
            if not callbacks:
                self._callbacks.pop(channel, None)
        self._wake()

    def close(self) -> None:
        """End the thread and its connection."""
        with self._lock:
            self._is_closing = True
            thread = self._thread
        self._wake()
        if thread is not None and thread is not threading.current_thread():
            thread.join(timeout=10)

    def _wake(self) -> None:
        os.write(self._wake_writer, b"x")

    def _run(self) -> None:
        delay = 0.1
        while not self._is_closing:
            try:
                with self._connect() as connection:
                    if self._on_connect is not None:
                        self._on_connect(connection)
                    delay = 0.1
                    self._serve(connection)
            except (psycopg.Error, OSError) as error:
                _logger.warning(
                    "listener connection lost, trying again in %.1f s: %s", delay, error
                )
                self.is_connected.clear()
                select.select([self._wake_reader], [], [], jittered(delay))
                delay = min(delay * 2, 30.0)
        self.is_connected.clear()

    def _serve(self, connection: Connection[Any]) -> None:
        listened: set[str] = set()
        while not self._is_closing:
            with self._lock:
                wanted = set(self._callbacks)
            for channel in wanted - listened:
                connection.execute(sql.SQL("listen {}").format(sql.Identifier(channel)))
            for channel in listened - wanted:
                connection.execute(sql.SQL("unlisten {}").format(sql.Identifier(channel)))
            for channel in wanted - listened:
                self._call(channel, "")
            listened = wanted
            self.is_connected.set()
            self._drain(connection)
            select.select([connection.fileno(), self._wake_reader], [], [])
            self._empty_wake_pipe()
            connection.pgconn.consume_input()

    def _drain(self, connection: Connection[Any]) -> None:
        # The driver's generator costs several times as much per notification as its C layer.
        while (notification := connection.pgconn.notifies()) is not None:
            self._call(notification.relname.decode(), notification.extra.decode())

    def _call(self, channel: str, payload: str) -> None:
        for callback in tuple(self._callbacks.get(channel, ())):
            callback(payload)

    def _empty_wake_pipe(self) -> None:
        try:
            while os.read(self._wake_reader, 4096):
                pass
        except BlockingIOError:
            pass
