"""The app under measurement: no-op, sleeping and large tasks of all three kinds."""

import asyncio
import os
import time
from typing import Any

from horsies import (
    AppConfig,
    CustomQueueConfig,
    Horsies,
    PostgresConfig,
    QueueMode,
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


@app.task("noop", **_queue)
async def noop(number: int) -> TaskResult[int, TaskError]:
    return TaskResult(ok=number)


@app.task("nap", **_queue)
async def nap(number: int, seconds: float = 0.01) -> TaskResult[int, TaskError]:
    await asyncio.sleep(seconds)
    return TaskResult(ok=number)


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
