"""What a worker is told: the command line's options joined with the app's configuration."""

import os
from dataclasses import dataclass, field
from datetime import timedelta
from functools import cached_property
from typing import Literal

from horsies.config import AppConfig, QueueMode
from horsies.executors.base import STOP_GRACE_SECONDS
from horsies.worker.identity import WorkerIdentity


@dataclass(frozen=True, slots=True)
class WorkerConfig:
    """Settings of one worker process (`horsies worker --help`); 0 is automatic, never or off."""

    processes: int = field(default_factory=lambda: os.cpu_count() or 1)
    concurrency: int = 100
    threads: int = 0
    queues: tuple[str, ...] = ()
    max_claim_batch: int = 0
    max_claim_per_worker: int = 0
    max_tasks_per_child: int = 0
    max_memory_per_child_mb: int = 0
    app_locator: str | None = None
    is_burst: bool = False
    # Below the 30 s after which most supervisors kill.
    drain_timeout_s: float | None = 25.0
    has_scheduler: bool = False
    worker_id: str | None = None
    max_tasks: int = 0
    grace_s: float = STOP_GRACE_SECONDS
    logged_tasks: Literal["all", "failures", "none"] = "all"
    echoes_output: bool = False
    stops_after_one: bool = False  # of each queue and kind, for tests
    metrics_port: int | None = None
    health_port: int | None = None
    http_host: str = "127.0.0.1"
    is_in_process: bool = False  # plain functions run in threads here, not in children

    @property
    def has_metrics(self) -> bool:
        return self.metrics_port is not None

    @property
    def thread_count(self) -> int:
        return self.threads or self.processes


@dataclass(frozen=True, slots=True)
class ServedQueue:
    name: str
    priority: int
    cap: int | None


@dataclass(frozen=True)
class WorkerContext:
    """Who the worker is and what it was told; every part of it gets this."""

    config: AppConfig
    settings: WorkerConfig
    identity: WorkerIdentity

    @cached_property
    def queues(self) -> list[ServedQueue]:
        """The queues this worker serves, best priority first."""
        if self.config.queue_mode is QueueMode.DEFAULT:
            return [ServedQueue("default", 100, None)]
        chosen = self.settings.queues
        queues = [
            ServedQueue(queue.name, queue.priority, queue.max_concurrency)
            for queue in self.config.custom_queues or ()
            if not chosen or queue.name in chosen
        ]
        return sorted(queues, key=lambda queue: queue.priority)

    @cached_property
    def has_caps(self) -> bool:
        """Whether claims of this worker are limited over the whole cluster."""
        caps = [self.config.cluster_wide_cap, *(queue.cap for queue in self.queues)]
        return any(cap is not None for cap in caps)

    @cached_property
    def lease(self) -> timedelta:
        return timedelta(milliseconds=self.config.effective_claim_lease_ms)
