"""The whole system in numbers for Prometheus, read by the same statements as `status`."""

from collections.abc import Mapping
from datetime import timedelta

from horsies.observability.metrics import Family, gauge
from horsies.operations.queues import QueueInfo, SystemStatus

# Rates and latencies of the last minutes: a dashboard shows now, not the last hour.
WINDOW = timedelta(minutes=5)
_QUANTILES = ("0.5", "0.95", "0.99")
_QUEUE = ("queue",)
_COUNTED_TO = "counted up to 10,000"


def system_families(status: SystemStatus) -> list[Family]:
    """Gauges of queues, workers and workflows."""
    states: dict[tuple[str, ...], float] = dict.fromkeys([("alive",), ("silent",), ("gone",)], 0)
    for worker in status.workers:
        states[worker.state,] += 1
    workflows: dict[tuple[str, ...], float] = {
        (name.lower(),): number for name, number in status.active_workflows.items()
    }
    return [
        gauge("horsies_up", "1: the database answers.", 1),
        *_queue_families(status.queues),
        *_pace_families(status.queues),
        Family("horsies_workers", "gauge", "Workers seen within 5 minutes.", ("state",), states),
        Family("horsies_workflows", "gauge", "Unfinished workflows.", ("status",), workflows),
    ]


def down_families() -> list[Family]:
    """What is told while the database does not answer."""
    return [gauge("horsies_up", "1: the database answers.", 0)]


def _queue_families(queues: list[QueueInfo]) -> list[Family]:
    waits = {queue.name: queue.waiting_for for queue in queues}
    caps = {q.name: q.max_concurrency for q in queues if q.max_concurrency is not None}
    paused = {q.name: q.control is not None and q.control.paused_at is not None for q in queues}
    return [
        _per_queue("horsies_queue_due_tasks", f"Tasks that may start now, {_COUNTED_TO}.",
                   {queue.name: queue.due.number for queue in queues}),
        _per_queue("horsies_queue_later_tasks", f"Tasks whose time has not come, {_COUNTED_TO}.",
                   {queue.name: queue.later.number for queue in queues}),
        _per_queue("horsies_queue_oldest_due_seconds", "How long the oldest has been due.",
                   {name: wait.total_seconds() if wait else 0 for name, wait in waits.items()}),
        _per_queue("horsies_queue_running_tasks", "Tasks that run.",
                   {queue.name: queue.running_count for queue in queues}),
        _per_queue("horsies_queue_claimed_tasks", "Tasks that wait in a worker.",
                   {queue.name: queue.claimed_count for queue in queues}),
        _per_queue("horsies_queue_workers", "Live workers that serve the queue.",
                   {queue.name: queue.worker_count for queue in queues}),
        _per_queue("horsies_queue_max_concurrency", "The cap of the queue, if it has one.", caps),
        _per_queue("horsies_queue_paused", "1 while the queue is paused.", paused),
    ]  # fmt: skip


def _per_queue(name: str, text: str, values: Mapping[str, float]) -> Family:
    return Family(name, "gauge", text, _QUEUE, {(queue,): n for queue, n in values.items()})


def _pace_families(queues: list[QueueInfo]) -> list[Family]:
    ended: dict[tuple[str, ...], float] = {}
    starts: dict[tuple[str, ...], float] = {}
    runs: dict[tuple[str, ...], float] = {}
    for queue in queues:
        pace = queue.pace
        ended[queue.name, "completed"] = pace.completed_count
        ended[queue.name, "failed"] = pace.failed_count
        ended[queue.name, "expired"] = pace.expired_count
        for quantile, seconds in zip(_QUANTILES, pace.start_latencies, strict=False):
            starts[queue.name, quantile] = seconds
        for quantile, seconds in zip(_QUANTILES, pace.run_times, strict=False):
            runs[queue.name, quantile] = seconds
    return [
        Family("horsies_queue_recent_ends", "gauge", "Tasks that ended within 5 minutes.",
               ("queue", "outcome"), ended),
        Family("horsies_queue_start_latency_seconds", "gauge",
               "From due to start, of tasks that ended within 5 minutes.",
               ("queue", "quantile"), starts),
        Family("horsies_queue_run_time_seconds", "gauge",
               "Run time of tasks that ended within 5 minutes.", ("queue", "quantile"), runs),
    ]  # fmt: skip
