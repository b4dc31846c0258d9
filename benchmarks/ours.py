"""Our own rows of the target table."""

import asyncio
import importlib
import os
import statistics
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import dataclass, field
from datetime import timedelta
from itertools import pairwise
from typing import Any

from benchmarks import stage
from benchmarks.stage import ONCE, Connection, Ends, connect, number, worker
from horsies.clock import utc_now

Samples = list[tuple[float, int]]
WIDE = ("--concurrency", "1000")  # the best for no-op coroutines
_BASE = utc_now() - timedelta(days=1)  # of rows made by SQL: the past, but none to be pruned yet

BULK_FILL = """
insert into horsies_tasks (id, task_name, queue_name, priority, args, status, sent_at, enqueued_at,
    enqueue_sha, claimed_at, started_at, completed_at, result, claimed_by_worker_id, worker_pid)
select overlay(gen_random_uuid()::text placing lpad(to_hex(n / 65536), 8, '0')
        || '-' || lpad(to_hex(n %% 65536), 4, '0') from 1 for 13),
    %(task)s, %(queue)s || case when %(queues)s > 0 then (n %% %(queues)s)::text else '' end,
    100 - n %% %(priorities)s, '[1]', %(status)s, at, at, repeat('0', 64),
    ended, ended, ended, case when ended is not null then '{"__task_result__":true,"ok":1,"err":null}' end,
    case when ended is not null then 'history' end, case when ended is not null then 1 end
from generate_series(%(start)s::bigint, %(end)s::bigint) n,
    lateral (select %(base)s + n * interval '1 ms' as at) t,
    lateral (select case when %(status)s = 'COMPLETED' then t.at end as ended) e
"""  # noqa: E501
BULK_ATTEMPTS = """
insert into horsies_task_attempts (task_id, attempt, outcome, started_at, finished_at, worker_id)
select id, 1, 'COMPLETED', started_at, completed_at, 'history' from horsies_tasks
where claimed_by_worker_id = 'history' and completed_at >= %s + %s * interval '1 ms'
"""


def load_app(url: str) -> Any:
    """The benchmark's app on this database, in this process."""
    os.environ["HORSIES_BENCH_URL"] = url
    sys.modules.pop("benchmarks.app", None)
    return importlib.import_module("benchmarks.app")


@contextmanager
def environ(values: Mapping[str, str]) -> Iterator[None]:
    """The environment of the app here and of the workers started meanwhile."""
    before = dict(os.environ)
    os.environ.update(values)
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)


@contextmanager
def sending(url: str) -> Iterator[Any]:
    """The app's module with the schema in place; its connections are closed afterwards."""
    module = load_app(url)
    module.app.get_broker().database.ensure_schema()
    try:
        yield module
    finally:
        module.app.get_broker().close()


def fill(url: str, task: str, count: int, *rest: Any) -> float:
    """Send `count` tasks in bulk; tasks per second."""
    with sending(url) as module:
        calls = [(n, *rest) for n in range(count)]
        started = time.perf_counter()
        for start in range(0, count, 10_000):
            getattr(module, task).send_many(calls[start : start + 10_000]).unwrap()
        return count / (time.perf_counter() - started)


def bulk_fill(
    url: str,
    status: str,
    first: int,
    count: int,
    *,
    queues: int = 0,
    priorities: int = 1,
    task: str = "noop",
) -> None:
    """Rows by plain SQL: a backlog ('PENDING') or a history ('COMPLETED', with attempts)."""
    with sending(url), connect(url) as connection:
        # As a bulk load does: neither notifications nor foreign keys row by row.
        connection.execute("set session_replication_role = replica")
        for start in range(first, first + count, 500_000):
            end = min(start + 500_000, first + count) - 1
            given = {"queue": "q" if queues else "default", "queues": queues, "status": status,
                     "priorities": priorities, "task": task, "start": start,
                     "end": end, "base": _BASE}  # fmt: skip
            connection.execute(BULK_FILL.encode(), given)
        if status == "COMPLETED":
            connection.execute(BULK_ATTEMPTS.encode(), [_BASE, first])
        settle(connection)


def settle(connection: Connection) -> None:
    """Leave no vacuum, statistics or checkpoint of the filling to the run."""
    connection.execute("vacuum analyze horsies_tasks")
    connection.execute("vacuum analyze horsies_task_attempts")
    connection.execute("checkpoint")


@dataclass(frozen=True, slots=True)
class Drained:
    """A run over waiting tasks: how fast, and what each task cost."""

    rate: float
    samples: Samples
    costs: dict[str, float] = field(default_factory=dict)

    def tenths(self, first: int, count: int = 1) -> float:
        """The rate over some tenths of the tasks, from 0 to 9."""
        total = self.samples[-1][1]
        begin, end = total * first / 10, total * (first + count) / 10
        return (end - begin) / (_when(self.samples, end) - _when(self.samples, begin))


def _when(samples: Samples, done: float) -> float:
    """The time at which so many were done, between two samples by rule of three."""
    for (t0, n0), (t1, n1) in pairwise(samples):
        if n1 >= done > n0:
            return t0 + (t1 - t0) * (done - n0) / (n1 - n0)
    return samples[0][0] if done <= samples[0][1] else samples[-1][0]


def drain(
    url: str,
    task: str,
    count: int,
    *options: str,
    workers: int = 1,
    is_held: bool = False,
    counts_entries: bool = False,
    ends: Ends = ONCE,
    arguments: tuple[Any, ...] = (),
    **environment: str,
) -> Drained:
    """Send `count` tasks, each with its number and `arguments`, then work them off.

    `is_held`: another session has been idle in a transaction since before they were sent.
    """
    with (
        environ(environment),
        sending(url),
        connect(url) as connection,
        snapshot_held(url) if is_held else nullcontext(),
    ):
        fill(url, task, count, *arguments)
        settle(connection)
        return work_off(
            url, count, *options, workers=workers, counts_entries=counts_entries, ends=ends
        )


@contextmanager
def snapshot_held(url: str) -> Iterator[None]:
    """A session that is idle in a transaction and keeps vacuum from removing anything."""
    with connect(url) as connection:
        connection.execute("begin isolation level repeatable read")
        connection.execute("select pg_current_xact_id()")
        yield
        connection.execute("rollback")


def work_off(
    url: str,
    count: int,
    *options: str,
    workers: int = 1,
    is_partial: bool = False,
    counts_entries: bool = False,
    ends: Ends = ONCE,
    on_sample: Any = None,
) -> Drained:
    """Let workers do `count` of the waiting tasks (all of them unless `is_partial`)."""
    with connect(url) as connection:
        base = stage.attempts_so_far(connection)
        before = stage.counters(connection)
        with ExitStack() as running:
            with stage.gate(url, workers):
                processes = [running.enter_context(worker(url, *options)) for _ in range(workers)]
            opened = time.perf_counter()
            cpu = (stage.server_cpu_s(connection), sum(map(stage.family_cpu_s, processes)))
            sampled = (lambda done: on_sample(done, processes)) if on_sample else (lambda _: None)
            samples = stage.watch(
                connection,
                count * ends.attempts,
                base=base,
                pause_s=min(0.05, count / 1e6),
                on_sample=sampled,
            )
            if samples[0][1] > count / 2:  # many workers were faster than the first look
                samples.insert(0, (opened, 0))
            server = stage.server_cpu_s(connection) - cpu[0]
            own = sum(map(stage.family_cpu_s, processes)) - cpu[1]
        measured = samples[-1][1] - samples[0][1]
        done = stage.attempts_so_far(connection) - base
        after = stage.counters(connection)
        costs = after.since(before, done)
        costs |= {"server_us": server / measured * 1e6, "worker_us": own / measured * 1e6}
        if counts_entries:
            costs["index_entries"] = stage.index_entries(connection, before, after) / done
        if not is_partial:
            stage.check_invariants(connection, count, base=base, ends=ends)
    return Drained(measured / (samples[-1][0] - samples[0][0]), samples, costs)


def blocking_sends(url: str, count: int) -> float:
    """`send` calls per second from one thread."""
    with sending(url) as module:
        module.noop.send(0).unwrap()
        started = time.perf_counter()
        for n in range(count):
            module.noop.send(n).unwrap()
        return count / (time.perf_counter() - started)


def concurrent_sends(url: str, count: int, callers: int = 200) -> float:
    """`send_async` calls per second from many concurrent callers."""
    module = load_app(url)

    async def caller(numbers: range) -> None:
        for n in numbers:
            (await module.noop.send_async(n)).unwrap()

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
    times: list[float] = []
    with sending(url) as module, worker(url, "--processes", "1"):
        for n in range(20):
            getattr(module, task).send(n).unwrap().get(timeout_ms=20_000)
        for n in range(count):
            started = time.perf_counter()
            getattr(module, task).send(n).unwrap().get(timeout_ms=20_000)
            times.append((time.perf_counter() - started) * 1000)
    with connect(url) as connection:
        stage.check_invariants(connection, count + 20)
    return statistics.median(times), statistics.quantiles(times, n=100)[98]


def loop_lag_ms(url: str, count: int) -> list[float]:
    """p50, p99 and worst delay of the worker's event loop while it drains no-op tasks."""
    with sending(url) as module:
        handle = module.lag.send(2.0).unwrap()
        fill(url, "noop", count)
        with worker(url, "--concurrency", "1000"):
            found: list[float] = handle.get(timeout_ms=60_000).ok_value
            with connect(url) as connection:
                stage.watch(connection, count + 1)
    return found


def idle(url: str, seconds: float, settling_s: float = 12) -> dict[str, float]:
    """What a worker without work costs: statements and processor share per second."""
    with sending(url), worker(url, "--processes", "1") as process, connect(url) as connection:
        stage.counters(connection)
        time.sleep(settling_s)  # past what start-up does
        cpu, before = own_cpu_s(process), stage.counters(connection)
        time.sleep(seconds)
        after = stage.counters(connection)
        connections = number(
            connection,
            "select count(*) from pg_stat_activity where application_name like 'horsies %%'",
        )
        # Of ours: the four statements of one reading.
        return {
            "statements_per_s": (after.statements - before.statements - 4) / seconds,
            "transactions_per_s": (after.transactions - before.transactions - 4) / seconds,
            "cpu_percent": (own_cpu_s(process) - cpu) / seconds * 100,
            "connections": float(connections),
        }


def own_cpu_s(process: Any) -> float:
    times = process.cpu_times()
    total: float = times.user + times.system
    return total
