"""Signs of life for all a worker holds, in one write.

Claimer and runner heartbeats, leases, and the mark of outcomes that wait for their write. They come
from a thread with a connection of its own: neither a coroutine that blocks the event loop nor any
other service can make a living worker look dead.
"""

import asyncio
import logging
import threading
from collections.abc import Callable
from datetime import timedelta

from psycopg import Connection
from psycopg.rows import TupleRow

from horsies.clock import jittered, monotonic
from horsies.database.connection import Address
from horsies.database.statement import run_blocking
from horsies.database.verdict import is_transient
from horsies.database.watchdog import Watchdog
from horsies.worker.holdings import Holdings
from horsies.worker.settings import WorkerContext
from horsies.worker.statements import Beat, beat

_logger = logging.getLogger("horsies.worker")
# A beat is a few index probes; the server gives up before the client does.
_CLIENT_LIMIT_S = 15.0
_SERVER_LIMIT_S = 10.0


class Heartbeat:
    """Writes what is owed.

    The first row once a claim or run outlives half its interval or one second. Heartbeats outlive
    the drain: a worker finishing its last task must not look dead. `loop_blocked_for` tells for
    how many seconds the event loop has been blocked; what runs there is alive only within the
    threshold.
    """

    def __init__(
        self,
        context: WorkerContext,
        address: Address,
        holdings: Holdings,
        loop_blocked_for: Callable[[], float],
    ) -> None:
        self._context = context
        self._address = address.limited(_SERVER_LIMIT_S, _SERVER_LIMIT_S)
        self._holdings = holdings
        self._loop_blocked_for = loop_blocked_for
        recovery = context.config.recovery
        self._runner_s = recovery.runner_heartbeat_interval_ms / 1000
        self._claimer_s = recovery.claimer_heartbeat_interval_ms / 1000
        self._runner_first_s = min(1.0, self._runner_s / 2)
        self._claimer_first_s = min(1.0, self._claimer_s / 2)
        self._loop_limit_s = recovery.running_stale_threshold_ms / 1000
        self._renew_age = timedelta(milliseconds=context.config.max_claim_renew_age_ms)
        self._interval_s = min(self._runner_first_s, self._claimer_first_s) / 2
        self._connection: Connection[TupleRow] | None = None
        self._watchdog = Watchdog()
        self._stopping = threading.Event()

    async def run(self) -> None:
        """Beat from a thread until cancelled."""
        thread = threading.Thread(
            target=self._beat_until_stopped, name="horsies-heartbeat", daemon=True
        )
        thread.start()
        try:
            await asyncio.get_running_loop().create_future()
        finally:
            self._stopping.set()

    def _beat_until_stopped(self) -> None:
        while not self._stopping.wait(jittered(self._interval_s, low=0.9, high=1.0)):
            try:
                self.run_once()
            except Exception as error:  # the service loop: what fails here must not end the worker
                self._disconnect()
                if is_transient(error):
                    _logger.warning("heartbeat failed, the next one tries again: %s", error)
                else:
                    _logger.exception("heartbeat failed, the next one tries again")
        self._disconnect()

    def run_once(self) -> Beat | None:
        """Write what is owed now, if anything."""
        now = monotonic()
        overdue = self._holdings.completer.overdue_ids(self._runner_first_s)
        owed = Beat(self._owed_claims(now), self._owed_runs(now), sorted(overdue))
        if not (owed.claimed_ids or owed.running or owed.finalizing_ids):
            return None
        if self._connection is None:  # an idle worker needs none
            self._connection = self._address.connect("horsies heartbeat")
        context = self._context
        with self._watchdog.limit(self._connection, _CLIENT_LIMIT_S):
            statement = beat(context.identity, context.lease, self._renew_age, owed)
            run_blocking(self._connection, statement)
        for task_id in owed.claimed_ids:
            if task := self._holdings.buffer.tasks.get(task_id):
                task.beat_at = now
        for task_id, _ in owed.running:
            if task := self._holdings.dispatcher.running.get(task_id):
                task.beat_at = now
        return owed

    def _disconnect(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.pgconn.finish()  # without waiting, whatever state it is in

    def _owed_claims(self, now: float) -> list[str]:
        # list(): one step for the interpreter, while the event loop changes the dictionary.
        return sorted(
            task.task_id
            for task in list(self._holdings.buffer.tasks.values())
            if now - task.beat_at
            >= (self._claimer_s if task.beat_at > task.held_since else self._claimer_first_s)
        )

    def _owed_runs(self, now: float) -> list[tuple[str, int]]:
        dispatcher, own_pid = self._holdings.dispatcher, self._context.identity.pid
        is_loop_alive = self._loop_blocked_for() < self._loop_limit_s
        return sorted(
            (task.task_id, task.pid or own_pid)
            for task in list(dispatcher.running.values())
            if now - task.beat_at
            >= (self._runner_s if task.beat_at > task.held_since else self._runner_first_s)
            and (is_loop_alive or task.pid != own_pid)
            and dispatcher.is_alive(task)
        )
