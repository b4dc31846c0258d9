"""Many workers that serve many queues: what they cost idle, and how soon they wake up.

`python -m benchmarks.fleet --workers 50 --queues 100`
"""

import argparse
import statistics
import sys
import time
from contextlib import ExitStack

from benchmarks import ours, stage
from benchmarks.stage import Connection, connect, fresh_database, number, private_server, worker

_SETTLING_S, _IDLE_S, _SENDS = 20.0, 30.0, 200
_ROOMY = {**stage.SETTINGS, "max_connections": "500"}  # each worker has four or five
_PASSES = """
select count(*), coalesce(sum(s.calls), 0), coalesce(sum(s.total_exec_time) / nullif(sum(s.calls), 0), 0)
from pg_stat_statements s join pg_database d on d.oid = s.dbid
where d.datname = current_database() and s.query like '%horsies_claim_tasks_v2(%'
"""  # noqa: E501


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.fleet", description=__doc__)
    parser.add_argument("--workers", type=int, default=50)
    parser.add_argument("--queues", type=int, default=100)
    given = parser.parse_args()
    with (
        private_server(None, _ROOMY) as server_url,
        fresh_database(server_url) as url,
        ours.environ({"HORSIES_BENCH_QUEUES": str(given.queues)}),
        ours.sending(url) as module,
        connect(url) as connection,
        ExitStack() as running,
    ):
        stage.counters(connection)
        for _ in range(given.workers):
            running.enter_context(worker(url, "--concurrency", "10", "--processes", "1"))
        _wait_until_ready(connection, given.workers)
        time.sleep(_SETTLING_S)
        before, cpu = stage.counters(connection), stage.server_cpu_s(connection)
        time.sleep(_IDLE_S)
        after = stage.counters(connection)
        idle = (after.statements - before.statements) / _IDLE_S
        share = (stage.server_cpu_s(connection) - cpu) / _IDLE_S
        sys.stdout.write(f"idle: {idle:.1f} statements/s, server {share:.1%} of a core\n")
        _measure_wake_ups(module, connection, given.queues)
    return 0


def _wait_until_ready(connection: Connection, count: int) -> None:
    deadline = time.monotonic() + 300
    while number(connection, "select count(distinct worker_id) from horsies_worker_states") < count:
        if time.monotonic() > deadline:
            raise TimeoutError("the workers did not start in time")
        time.sleep(0.5)


def _measure_wake_ups(module: object, connection: Connection, queues: int) -> None:
    """One task at a time, each in another queue: enqueued to started, by the database's clock."""
    connection.execute("select pg_stat_statements_reset()")
    task = module.noop  # type: ignore[attr-defined]  # the app under measurement, loaded by name
    for n in range(_SENDS):
        task.with_options(queue_name=f"q{n * 7 % queues}").send(n).unwrap()
        time.sleep(0.05)
    stage.watch(connection, _SENDS, limit_s=60)
    rows = connection.execute(
        "select 1000 * extract(epoch from started_at - enqueued_at)::float from horsies_tasks"
    ).fetchall()
    waited = sorted(row[0] for row in rows)
    p99 = statistics.quantiles(waited, n=100)[98]
    sys.stdout.write(f"wake-up: p50 {statistics.median(waited):.1f} ms, p99 {p99:.1f} ms\n")
    passes = connection.execute(_PASSES.encode()).fetchone()
    assert passes is not None
    sys.stdout.write(f"passes: {passes[1] / _SENDS:.1f} per task, {passes[2]:.2f} ms each\n")


if __name__ == "__main__":
    sys.exit(main())
