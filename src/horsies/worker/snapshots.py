"""The worker's own picture of itself, stored every five seconds for people and for its peers."""

import asyncio
import logging
import os
from datetime import datetime

import psutil
from psycopg.types.json import Jsonb

from horsies.clock import utc_now
from horsies.config import AppConfig, QueueMode
from horsies.database.statement import is_passing
from horsies.database.workers import insert_worker_state
from horsies.maintenance.processes import process_started_at
from horsies.worker.buffer import Buffer
from horsies.worker.claimer import Identity
from horsies.worker.dispatcher import Dispatcher
from horsies.worker.link import Link
from horsies.worker.settings import ServedQueue, WorkerConfig

_logger = logging.getLogger("horsies.worker")
_INTERVAL_S = 5.0
_MIB = 1024 * 1024


class Snapshots:
    """A time series in horsies_worker_states."""

    def __init__(
        self,
        config: AppConfig,
        settings: WorkerConfig,
        identity: Identity,
        queues: list[ServedQueue],
        parts: tuple[Link, Dispatcher, Buffer],
        *,
        holds_lock: bool,
    ) -> None:
        self._link, self._dispatcher, self._buffer = parts
        self._process = psutil.Process(os.getpid())
        self._fixed: dict[str, object] = {
            "worker_id": identity.worker_id,
            "hostname": identity.hostname,
            "pid": identity.pid,
            "processes": settings.processes,
            "queues": [queue.name for queue in queues],
            "max_claim_batch": settings.max_claim_batch,
            "max_claim_per_worker": settings.max_claim_per_worker,
            "cluster_wide_cap": config.cluster_wide_cap,
            "queue_priorities": _per_queue(config, {q.name: q.priority for q in queues}),
            "queue_max_concurrency": _per_queue(config, {q.name: q.cap for q in queues}),
            "recovery_config": Jsonb(config.recovery.model_dump(mode="json")),
            "worker_started_at": utc_now(),
            "pid_started_at": process_started_at(identity.pid),
            "holds_lock": holds_lock,
        }

    @property
    def started_at(self) -> datetime:
        started = self._fixed["worker_started_at"]
        assert isinstance(started, datetime)
        return started

    async def run(self) -> None:
        while True:
            try:
                await self.run_once()
            except (
                Exception
            ) as error:  # a service loop: a lost snapshot is logged and the next one tried
                if not is_passing(error):
                    raise
                _logger.warning("snapshot not written, the next one is tried: %s", error)
            await asyncio.sleep(_INTERVAL_S)

    async def run_once(self) -> None:
        columns = {
            **self._fixed,
            "tasks_running": len(self._dispatcher.running),
            "tasks_claimed": len(self._buffer.tasks),
            "memory_usage_mb": self._process.memory_info().rss / _MIB,
            "children_memory_mb": self._children_mb(),
            "cpu_percent": self._process.cpu_percent(),
            "memory_percent": self._process.memory_percent(),
        }
        await self._link.run(insert_worker_state(columns))

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
