"""One LISTEN connection per process, in a thread of its own, for blocking and awaiting users alike.

It reconnects by itself. After every (re)connect each subscriber is called once with an empty
payload: something may have been missed, look now. A notification only wakes; polling is the truth.
"""

import logging
import os
import threading
from collections.abc import Callable

import psycopg
from psycopg import Connection, Notify, sql
from psycopg.rows import TupleRow

from horsies.clock import jittered
from horsies.database.sockets import has_news
from horsies.database.watchdog import Watchdog
from horsies.locks import ForkSafeLock

Callback = Callable[[str], None]

_logger = logging.getLogger("horsies.listener")
# A worker without this connection is taken for dead by its peers, so not for long.
_MAX_DELAY_S = 5.0
_HOLD_AGAIN_S = 1.0
_BETWEEN_WAKES_S = 0.001


class Listener:
    """Turns notifications into calls of the subscribers, on the listener's thread.

    `hold` is called after each connect, and again every second until it says that what the
    session should hold is held; LISTEN never waits for it. A server that answers neither within
    the limit is left for a new connection.
    """

    def __init__(
        self,
        connect: Callable[[], Connection[TupleRow]],
        *,
        hold: Callable[[Connection[TupleRow]], bool] | None = None,
        on_connect: Callable[[], None] | None = None,
        limit_s: float = 10.0,
    ) -> None:
        self._connect = connect
        self._hold = hold
        self._on_connect = on_connect
        self._limit_s = limit_s
        self._watchdog = Watchdog()
        self._is_stale = False
        self._callbacks: dict[str, list[Callback]] = {}
        self._waking: set[str] = set()
        self._lock = ForkSafeLock()
        self._thread: threading.Thread | None = None
        self._is_closing = False
        self._pipe: tuple[int, int] | None = None

    def subscribe(self, channel: str, callback: Callback, *, only_wakes: bool = False) -> None:
        """Call `callback(payload)` for each notification on `channel`; to repeat it is harmless.

        Where they only wake, it is called once for all that have arrived, without their payloads.
        Starts the thread when it is the first here: a forked process has none of its own yet.
        """
        with self._lock:
            if only_wakes:
                self._waking.add(channel)
            callbacks = self._callbacks.setdefault(channel, [])
            is_known = callback in callbacks
            if not is_known:
                callbacks.append(callback)
            if self._is_closing:
                return
            if self._thread is None or not self._thread.is_alive():
                self._start()
            elif not is_known:
                self._wake()

    def _start(self) -> None:
        self._close_pipe()  # that of the process we were forked from
        self._pipe = reader, _ = os.pipe()
        os.set_blocking(reader, False)
        self._thread = threading.Thread(
            target=self._run, args=[reader], name="horsies-listener", daemon=True
        )
        self._thread.start()

    def close(self) -> None:
        """End the thread and its connection."""
        with self._lock:
            self._is_closing = True
            thread = self._thread
            self._wake()
        if thread is None or thread is threading.current_thread():
            return
        thread.join(timeout=10)
        if not thread.is_alive():
            self._close_pipe()

    def reconnect(self) -> None:
        """Look for the server anew: this one takes no writes any more."""
        with self._lock:
            self._is_stale = True
            self._wake()

    def _wake(self) -> None:
        if self._pipe is not None:
            os.write(self._pipe[1], b"x")

    def _close_pipe(self) -> None:
        pipe, self._pipe = self._pipe, None
        for end in pipe or ():
            os.close(end)

    def _run(self, reader: int) -> None:
        delay = 0.1
        while not self._is_closing:
            try:
                with self._connect() as connection:
                    self._is_stale = False
                    if self._on_connect is not None:
                        self._on_connect()
                    delay = 0.1
                    self._serve(connection, reader)
            except (psycopg.Error, OSError) as error:
                _logger.warning(
                    "listener connection lost, trying again in %.1f s: %s", delay, error
                )
                has_news(reader, within_s=jittered(delay))
                _empty(reader)  # else the next pause is none
                delay = min(delay * 2, _MAX_DELAY_S)

    def _serve(self, connection: Connection[TupleRow], reader: int) -> None:
        listened: set[str] = set()
        is_held = self._hold is None
        beside: list[Notify] = []  # what arrives during a statement of ours, the driver takes
        connection.add_notify_handler(beside.append)
        while not self._is_closing and not self._is_stale:
            with self._lock:
                wanted = set(self._callbacks)
            if wanted != listened:
                with self._watchdog.limit(connection, self._limit_s):
                    for channel in wanted - listened:
                        connection.execute(sql.SQL("listen {}").format(sql.Identifier(channel)))
                for channel in wanted - listened:
                    self._call(channel, "")
                listened = wanted
            if self._hold is not None and not is_held:
                with self._watchdog.limit(connection, self._limit_s):
                    is_held = self._hold(connection)
            self._drain(connection, beside)
            has_news(connection.fileno(), reader, within_s=None if is_held else _HOLD_AGAIN_S)
            _empty(reader)
            connection.pgconn.consume_input()

    def _drain(self, connection: Connection[TupleRow], beside: list[Notify]) -> None:
        """Call the subscribers of what has arrived, those that only wake once for all of it."""
        told: set[str] = set()
        for arrived in beside:
            self._hear(arrived.channel, arrived.payload, told)
        beside.clear()
        # The driver's generator costs several times as much per notification as its C layer.
        while (notification := connection.pgconn.notifies()) is not None:
            self._hear(notification.relname.decode(), notification.extra.decode(), told)
        for channel in told:
            self._call(channel, "")
        if told:
            # Of a flood, what comes within the next moment is heard together.
            has_news(within_s=_BETWEEN_WAKES_S)

    def _hear(self, channel: str, payload: str, told: set[str]) -> None:
        if channel in self._waking:
            told.add(channel)
        else:
            self._call(channel, payload)

    def _call(self, channel: str, payload: str) -> None:
        for callback in tuple(self._callbacks.get(channel, ())):
            try:
                callback(payload)
            except Exception:  # user code: operations.on_change; or its event loop has just closed
                _logger.exception("a subscriber of %s raised; the others are told", channel)


def _empty(reader: int) -> None:
    try:
        while os.read(reader, 4096):
            pass
    except BlockingIOError:
        pass
