"""Our own rows of the target table."""

import asyncio
import importlib
import os
import statistics
import sys
import time
from typing import Any

import psycopg

from benchmarks.stage import counters, server_cpu_s, wait_for, worker

DONE = "select count(*) from horsies_tasks where status = 'COMPLETED'"


def load_app(url: str) -> Any:
    """The benchmark's app on this database, in this process."""
    os.environ["HORSIES_BENCH_URL"] = url
    sys.modules.pop("benchmarks.app", None)
    return importlib.import_module("benchmarks.app")


def fill(url: str, task: str, count: int) -> float:
    """Send `count` tasks in bulk; tasks per second."""
    module = load_app(url)
    module.app.get_broker().session.ensure_schema()
    calls = [(number,) for number in range(count)]
    started = time.perf_counter()
    for start in range(0, count, 10_000):
        getattr(module, task).send_many(calls[start : start + 10_000]).unwrap()
    elapsed = time.perf_counter() - started
    module.app.get_broker().close()
    return count / elapsed


def drain(
    url: str, task: str, count: int, *options: str, workers: int = 1, **environment: str
) -> dict[str, float]:
    """Work off `count` waiting tasks; rate over the run, and what each task cost."""
    fill(url, task, count)
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("vacuum analyze horsies_tasks")
        connection.execute("checkpoint")
        stack = [worker(url, *options, **environment) for _ in range(workers)]
        processes = [one.__enter__() for one in stack]
        try:
            first = wait_for(connection, DONE, 1)
            done_at_first = connection.execute(DONE).fetchone()[0]  # type: ignore[index]
            before, cpu = counters(connection), server_cpu_s()
            worker_cpu = sum(_cpu_s(process) for process in processes)
            last = wait_for(connection, DONE, count)
            after, cpu = counters(connection), server_cpu_s() - cpu
            worker_cpu = sum(_cpu_s(process) for process in processes) - worker_cpu
        finally:
            for one in stack:
                one.__exit__(None, None, None)
    measured = max(1, count - done_at_first)
    return {
        "rate": measured / (last - first),
        "transactions": (after.transactions - before.transactions) / measured,
        "wal_bytes": (after.wal_bytes - before.wal_bytes) / measured,
        "rows": (after.rows - before.rows) / measured,
        "server_us": cpu / measured * 1e6,
        "worker_us": worker_cpu / measured * 1e6,
    }


def _cpu_s(process: Any) -> float:
    times = process.cpu_times()
    total: float = times.user + times.system
    return total


def blocking_sends(url: str, count: int) -> float:
    """`send` calls per second from one thread."""
    module = load_app(url)
    module.noop.send(0).unwrap()
    started = time.perf_counter()
    for number in range(count):
        module.noop.send(number).unwrap()
    elapsed = time.perf_counter() - started
    module.app.get_broker().close()
    return count / elapsed


def concurrent_sends(url: str, count: int, callers: int = 200) -> float:
    """`send_async` calls per second from many concurrent callers."""
    module = load_app(url)

    async def caller(numbers: range) -> None:
        for number in numbers:
            (await module.noop.send_async(number)).unwrap()

    async def main() -> float:
        (await module.noop.send_async(0)).unwrap()
        share = count // callers
        started = time.perf_counter()
        async with asyncio.TaskGroup() as group:
            for index in range(callers):
                group.create_task(caller(range(index * share, (index + 1) * share)))
        elapsed = time.perf_counter() - started
        await module.app.get_broker().close_async()
        return share * callers / elapsed

    return asyncio.run(main())


def latency_ms(url: str, task: str, count: int) -> tuple[float, float]:
    """send → result on an idle worker, p50 and p99 in milliseconds."""
    module = load_app(url)
    times: list[float] = []
    with worker(url, "--processes", "1"):
        for number in range(20):
            getattr(module, task).send(number).unwrap().get(timeout_ms=20_000)
        for number in range(count):
            started = time.perf_counter()
            getattr(module, task).send(number).unwrap().get(timeout_ms=20_000)
            times.append((time.perf_counter() - started) * 1000)
    module.app.get_broker().close()
    return statistics.median(times), statistics.quantiles(times, n=100)[98]


def idle(url: str, seconds: float) -> dict[str, float]:
    """What a worker without work costs: statements and processor share per second, memory."""
    load_app(url).app.get_broker().session.ensure_schema()
    with worker(url, "--processes", "1") as process, psycopg.connect(url, autocommit=True) as conn:
        time.sleep(12)  # the server reports what start-up did only after a while
        cpu, before = _cpu_s(process), counters(conn)
        time.sleep(seconds)
        after = counters(conn)
        connections = conn.execute(
            "select count(*) from pg_stat_activity where application_name like 'horsies %'"
        ).fetchone()
        return {
            "statements_per_s": (after.transactions - before.transactions - 1) / seconds,
            "cpu_percent": (_cpu_s(process) - cpu) / seconds * 100,
            "rss_mb": process.memory_info().rss / 1_048_576,
            "connections": float(connections[0] if connections else 0),
        }
