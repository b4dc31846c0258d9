"""Whether a worker lives and works, and its numbers: read from threads other than its own.

The event loop may be blocked by user code while someone asks.
"""

import asyncio
from collections.abc import Sequence
from typing import NamedTuple

from horsies.observability.metrics import Family, gauge
from horsies.worker.holdings import Holdings
from horsies.worker.lanes import Lane
from horsies.worker.loop_watch import LoopWatch
from horsies.worker.metrics import WorkerMetrics
from horsies.worker.service_connection import ServiceConnection
from horsies.worker.settings import WorkerContext

# A loop that is blocked for so long claims nothing; shorter stops happen to everyone.
_BLOCKED_S = 5.0


class Signs(NamedTuple):
    """What shows whether a worker claims."""

    connections: Sequence[ServiceConnection]
    started: Sequence[asyncio.Event]
    stopping: asyncio.Event


class Vitals:
    """One worker, examined without its help."""

    def __init__(
        self,
        context: WorkerContext,
        loop_watch: LoopWatch,
        holdings: Holdings,
        lanes: Sequence[Lane],
        signs: Signs,
        metrics: WorkerMetrics | None,
    ) -> None:
        self._loop_limit_s = context.config.recovery.running_stale_threshold_ms / 1000
        self._loop_watch = loop_watch
        self._holdings = holdings
        self._lanes = lanes
        self._signs = signs
        self._metrics = metrics

    def deadly_problems(self) -> list[str]:
        """What only a restart mends: peers give up the runs of a loop that is blocked too long."""
        blocked_s = self._loop_watch.blocked_for()
        if blocked_s < self._loop_limit_s:
            return []
        return [f"the event loop has been blocked for {blocked_s:.0f} s"]

    def problems(self) -> list[str]:
        """Why it claims no tasks now."""
        found: list[str] = []
        if self._signs.stopping.is_set():
            found.append("it is stopping")
        elif not all(event.is_set() for event in self._signs.started):
            found.append("it is starting")
        if any(connection.is_failing for connection in self._signs.connections):
            found.append("it does not reach the database")
        blocked_s = self._loop_watch.blocked_for()
        if blocked_s >= _BLOCKED_S:
            found.append(f"the event loop has been blocked for {blocked_s:.0f} s")
        return found

    def families(self) -> list[Family]:
        """Its metrics, if it counts any."""
        if self._metrics is None:
            return []
        blocked_s = self._loop_watch.blocked_for()
        is_away = any(connection.is_failing for connection in self._signs.connections)
        return [
            *self._metrics.families(self._holdings, self._lanes, blocked_s),
            gauge("horsies_worker_ready", "1 if the worker claims tasks.", not self.problems()),
            gauge(
                "horsies_worker_database_up", "1 unless the last statements failed.", not is_away
            ),
        ]
