"""The app under measurement: no-op, sleeping and large tasks of all three kinds."""

import asyncio
import os
import sys
import time
from pathlib import Path
from typing import Any

from horsies import (
    AppConfig,
    CustomQueueConfig,
    Horsies,
    PostgresConfig,
    QueueMode,
    RetryPolicy,
    TaskError,
    TaskResult,
)

config: dict[str, Any] = {"broker": PostgresConfig(database_url=os.environ["HORSIES_BENCH_URL"])}
if os.environ.get("HORSIES_BENCH_CAP"):
    config["cluster_wide_cap"] = int(os.environ["HORSIES_BENCH_CAP"])
_queue_count = int(os.environ.get("HORSIES_BENCH_QUEUES", "0"))
_queue: dict[str, Any] = {}
if _queue_count:
    config["queue_mode"] = QueueMode.CUSTOM
    _cap = int(os.environ.get("HORSIES_BENCH_QUEUE_CAP", "0")) or None
    config["custom_queues"] = [
        CustomQueueConfig(name=f"q{number}", max_concurrency=_cap) for number in range(_queue_count)
    ]
    _queue = {"queue_name": "q0"}
app = Horsies(AppConfig(**config))
_failed_once: set[int] = set()  # of the only worker
if os.environ.get("HORSIES_BENCH_TRACED") and sys.argv[1:2] == ["worker"]:
    from benchmarks.spans import discarding_provider

    every = os.environ["HORSIES_BENCH_TRACED"] == "every"
    app.enable_tracing(
        discarding_provider(), **({"max_attempts_per_second": None} if every else {})
    )


@app.task("noop", **_queue)
async def noop(number: int) -> TaskResult[int, TaskError]:
    return TaskResult(ok=number)


@app.task("nap", **_queue)
async def nap(number: int, seconds: float = 0.01) -> TaskResult[int, TaskError]:
    await asyncio.sleep(seconds)
    return TaskResult(ok=number)


if not os.environ.get("HORSIES_BENCH_COROUTINES_ONLY"):  # else no fork server is started

    @app.task("child", **_queue)
    def child(number: int, seconds: float = 0.0) -> TaskResult[int, TaskError]:
        if seconds:
            time.sleep(seconds)
        return TaskResult(ok=number)

    @app.task("thread", execution="blocking", **_queue)
    def thread(number: int) -> TaskResult[int, TaskError]:
        return TaskResult(ok=number)


@app.task("large", **_queue)
async def large(size: int) -> TaskResult[str, TaskError]:
    return TaskResult(ok="x" * size)


@app.task("lag", **_queue)
async def lag(seconds: float) -> TaskResult[list[float], TaskError]:
    """How late the worker's event loop wakes a sleeper: p50, p99 and worst in milliseconds."""
    late: list[float] = []
    end = time.perf_counter() + seconds
    while (before := time.perf_counter()) < end:
        await asyncio.sleep(0.01)
        late.append((time.perf_counter() - before - 0.01) * 1000)
    late.sort()
    return TaskResult(ok=[late[len(late) // 2], late[int(len(late) * 0.99)], late[-1]])


@app.task("failing", **_queue)
async def failing(number: int) -> TaskResult[int, TaskError]:
    return TaskResult(err=TaskError(error_code="OUT_OF_STOCK", message=f"none of {number} left"))


@app.task(
    "retried",
    retry_policy=RetryPolicy.fixed([1], auto_retry_for=["RATE_LIMITED"], jitter=False),
    **_queue,
)
async def retried(number: int) -> TaskResult[int, TaskError]:
    """Fails at its first attempt and succeeds at its second, a second later."""
    if number not in _failed_once:
        _failed_once.add(number)
        return TaskResult(err=TaskError(error_code="RATE_LIMITED", message="once more"))
    return TaskResult(ok=number)


@app.task("echo", **_queue)
async def echo(number: int, text: str) -> TaskResult[str, TaskError]:
    return TaskResult(ok=text)


@app.task(
    "note",
    retry_policy=RetryPolicy.fixed([1], auto_retry_for=["WORKER_CRASHED"], jitter=False),
    **_queue,
)
async def note(path: str, sent_at: float, seconds: float) -> TaskResult[None, TaskError]:
    """Append to a file how long ago it was sent; the first to write there stays for a while."""
    is_first = not Path(path).exists()
    with Path(path).open("a") as file:
        file.write(f"{time.time() - sent_at}\n")
    if is_first:
        await asyncio.sleep(seconds)
    return TaskResult(ok=None)
