"""The worker's own picture of itself, stored every five seconds for people and for its peers."""

import os
from collections.abc import Callable
from datetime import datetime

import psutil
from psycopg.types.json import Jsonb

from horsies.clock import utc_now
from horsies.config import AppConfig, QueueMode
from horsies.recovery.process_identity import process_started_at
from horsies.worker.holdings import Holdings
from horsies.worker.service_connection import ServiceConnection
from horsies.worker.settings import WorkerContext
from horsies.worker.statements import insert_worker_state

_MIB = 1024 * 1024


class Snapshots:
    """A time series in horsies_worker_states."""

    name = "snapshots"
    interval_s = 5.0

    def __init__(
        self,
        context: WorkerContext,
        connection: ServiceConnection,
        holdings: Holdings,
        on_stored: Callable[[], None],
        *,
        holds_lock: bool,
    ) -> None:
        self._connection = connection
        self._holdings = holdings
        self._on_stored = on_stored
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
        }
        await self._connection.run(insert_worker_state(columns))
        self._on_stored()

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
