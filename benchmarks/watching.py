"""What watching adds to one task, by itself: the least of many rounds.

Other load hardly moves that; a whole drain varies by more than what is measured here.
"""

import asyncio
import time
from collections.abc import Callable
from typing import Any

from benchmarks.spans import discarding_provider
from horsies import AppConfig, Horsies, PostgresConfig
from horsies.executors import attempt
from horsies.executors.host import Host
from horsies.observability.trace_context import with_traceparent
from horsies.tasks.options import parse_task_options
from horsies.worker.child_main import AppDefinitions
from horsies.worker.completer import Recorded
from horsies.worker.held_task import Completion, HeldTask
from horsies.worker.identity import WorkerIdentity
from horsies.worker.metrics import WorkerMetrics
from horsies.worker.settings import WorkerConfig, WorkerContext

_BATCH = 500  # as large as writes are in a busy worker
_ROUNDS = 60
_CLAIM = "2026-11-17 12:00:02.000000+00"
_CONFIG = AppConfig(broker=PostgresConfig(database_url="postgresql://nowhere/none"))


def metrics_us() -> float:
    """Counting the claim and the end of a task."""
    context = WorkerContext(_CONFIG, WorkerConfig(), WorkerIdentity("w", "here", 1))
    metrics = WorkerMetrics(context, ["noop"])
    tasks = [_task(number) for number in range(_BATCH)]
    ended = [Recorded(Completion(task, "", duration_s=0.0001), "completed") for task in tasks]

    def count() -> None:
        metrics.claimed(tasks)
        metrics.recorded(ended)

    return _least_us(count)


def span_us(traceparent_end: str | None, *, max_per_second: int | None) -> float:
    """An attempt with traces less the same without: `-01` is recorded by its sender."""
    options = '{"retry_policy":null,"good_until":null}'
    carrying = [_options(options, number, traceparent_end) for number in range(_BATCH)]
    read = _least_us(lambda: [parse_task_options(text) for text in carrying])
    read -= _least_us(lambda: [parse_task_options(options) for _ in carrying])
    provider = discarding_provider()
    try:
        plain, traced = asyncio.run(_attempts_us(provider, traceparent_end, max_per_second))
    finally:
        provider.shutdown()
    return traced - plain + max(0.0, read)


async def _attempts_us(
    provider: Any, traceparent_end: str | None, max_per_second: int | None
) -> tuple[float, float]:
    """Attempts of an app that does not trace and of one that does, in turn."""
    tasks = [_task(number) for number in range(_BATCH)]
    for number, task in enumerate(tasks, start=1):
        task.traceparent = _traceparent(number, traceparent_end)
    apps = [_app(None, None), _app(provider, max_per_second)]
    hosts = [Host(AppDefinitions(app, None, "w")) for app in apps]
    least = [float("inf")] * 2
    for _ in range(_ROUNDS):
        for which, (app, host) in enumerate(zip(apps, hosts, strict=True)):
            definition = app.definition("noop")
            started = time.process_time()  # also of the thread that exports
            for task in tasks:
                await attempt.run_alone_async(definition, task, host)
            least[which] = min(least[which], time.process_time() - started)
            provider.force_flush()
    return least[0] / _BATCH * 1e6, least[1] / _BATCH * 1e6


def _app(provider: Any, max_per_second: int | None) -> Horsies:
    app = Horsies(_CONFIG, allow_plain_returns=True)
    if provider is not None:
        app.enable_tracing(provider, max_attempts_per_second=max_per_second)

    @app.task("noop")
    async def noop(number: int) -> int:
        return number

    return app


def _task(number: int) -> HeldTask:
    due_at = f"2026-11-17 12:00:00.{number:06d}+00"
    columns: tuple[Any, ...] = (f"t{number}", "default", 100, 1, "noop", "[1]", None, 1)
    return HeldTask(*columns, _CLAIM, due_at, None, False, None)


def _traceparent(number: int, end: str | None) -> str | None:
    return None if end is None else f"00-{number:032x}-{number:016x}{end}"


def _options(options: str, number: int, end: str | None) -> str:
    traceparent = _traceparent(number + 1, end)
    return options if traceparent is None else with_traceparent(options, traceparent)


def _least_us(work: Callable[[], object]) -> float:
    least = float("inf")
    for _ in range(_ROUNDS):
        started = time.perf_counter()
        work()
        least = min(least, time.perf_counter() - started)
    return least / _BATCH * 1e6
