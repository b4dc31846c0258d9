"""The worker's own picture of itself, stored every five seconds for people and for its peers."""

import logging
import os
from collections.abc import Callable, Sequence
from datetime import datetime
from typing import NamedTuple

import psutil
from psycopg.types.json import Jsonb

from horsies.clock import monotonic, utc_now
from horsies.config import AppConfig, QueueMode
from horsies.recovery.process_identity import process_started_at
from horsies.version import __version__
from horsies.worker.holdings import Holdings
from horsies.worker.service_connection import ServiceConnection
from horsies.worker.settings import WorkerContext
from horsies.worker.statements import StoredSnapshot, insert_worker_state

_logger = logging.getLogger("horsies.worker")
_MIB = 1024 * 1024


_NAMES_EVERY_S = 3600.0


class SnapshotEvents(NamedTuple):
    """What follows a snapshot: it is stored; an operator wants this worker to drain."""

    on_stored: Callable[[StoredSnapshot], None]
    on_drain: Callable[[], None]


class KnownNames(NamedTuple):
    """What a worker can run: the names of tasks, and the keys of workflow definitions."""

    tasks: Sequence[str]
    definitions: Sequence[str]


class Snapshots:
    """A time series in horsies_worker_states."""

    name = "snapshots"
    interval_s = 5.0

    def __init__(
        self,
        context: WorkerContext,
        connection: ServiceConnection,
        holdings: Holdings,
        events: SnapshotEvents,
        *,
        holds_lock: bool,
        names: KnownNames,
    ) -> None:
        self._connection = connection
        self._holdings = holdings
        self._events = events
        self._names = names
        self._names_stored_at: float | None = None
        self._is_drained = False
        # Other workers that live, or one that was seen within two minutes.
        self.peer_count = 1
        self._process = psutil.Process(os.getpid())
        config, settings, queues = context.config, context.settings, context.queues
        self._fixed: dict[str, object] = {
            "worker_id": context.identity.worker_id,
            "hostname": context.identity.hostname,
            "pid": context.identity.pid,
            "host_key": context.identity.host_key,
            "processes": settings.processes,
            "queues": [queue.name for queue in queues],
            "max_claim_batch": settings.max_claim_batch,
            "max_claim_per_worker": settings.max_claim_per_worker,
            "cluster_wide_cap": config.cluster_wide_cap,
            "queue_priorities": _per_queue(config, {q.name: q.priority for q in queues}),
            "queue_max_concurrency": _per_queue(config, {q.name: q.cap for q in queues}),
            "recovery_config": Jsonb(config.recovery.model_dump(mode="json")),
            "worker_started_at": utc_now(),
            "pid_started_at": process_started_at(context.identity.pid),
            "holds_lock": holds_lock,
            "version": __version__,
        }

    @property
    def started_at(self) -> datetime:
        started = self._fixed["worker_started_at"]
        assert isinstance(started, datetime)
        return started

    async def run_once(self) -> None:
        """Store one row."""
        columns = {
            **self._fixed,
            "tasks_running": len(self._holdings.dispatcher.running),
            "tasks_claimed": len(self._holdings.buffer.tasks),
            "memory_usage_mb": self._process.memory_info().rss / _MIB,
            "children_memory_mb": self._children_mb(),
            "cpu_percent": self._process.cpu_percent(),
            "memory_percent": self._process.memory_percent(),
            **self._names_if_due(),
            "slots": Jsonb(self._holdings.dispatcher.slots()),
        }
        (stored,) = await self._connection.run(insert_worker_state(columns))
        self.peer_count = 0 if stored.is_alone else max(1, stored.peer_count)
        self._events.on_stored(stored)
        if stored.is_drained and not self._is_drained:
            self._is_drained = True
            _logger.info("an operator asked this worker to drain")
            self._events.on_drain()

    def _names_if_due(self) -> dict[str, list[str] | None]:
        """The names it knows, now and then: they are many and never change."""
        if self._names_stored_at is not None and (
            monotonic() - self._names_stored_at < _NAMES_EVERY_S
        ):
            return {"task_names": None, "definition_keys": None}
        self._names_stored_at = monotonic()
        return {
            "task_names": list(self._names.tasks),
            "definition_keys": list(self._names.definitions),
        }

    def _children_mb(self) -> float:
        total = 0
        for child in self._process.children(recursive=True):
            try:
                total += child.memory_info().rss
            except psutil.Error:  # it ended while we looked
                continue
        return total / _MIB


def _per_queue(config: AppConfig, values: dict[str, int] | dict[str, int | None]) -> Jsonb | None:
    return Jsonb(values) if config.queue_mode is QueueMode.CUSTOM else None
