"""What PostgreSQL itself allows: the floors our figures are held against."""

import statistics
import threading
import time

import psycopg

from benchmarks.ours import bulk_fill

TABLE = """
create table raw_tasks (
    id text primary key, queue text not null default 'default', priority int not null default 100,
    status text not null default 'PENDING', enqueued_at timestamptz not null default now(),
    payload text, result text, claimed_by text, started_at timestamptz, ended_at timestamptz
);
create index on raw_tasks (queue, priority, enqueued_at, id) where status = 'PENDING';
"""
CLAIM = """
update raw_tasks t set status = 'RUNNING', claimed_by = 'w', started_at = now()
where id = any (array(select id from raw_tasks where status = 'PENDING' and queue = 'default'
    order by priority, enqueued_at, id limit %s for update skip locked)) returning id
"""
COMPLETE = """
update raw_tasks t set status = 'COMPLETED', result = '{"ok":1}', ended_at = now()
where id = any (%s) and status = 'RUNNING'
"""

OWN_CLAIM = """
update horsies_tasks t set status = 'RUNNING', claimed_at = now(), started_at = now(),
    claimed_by_worker_id = 'w', worker_pid = 1, worker_hostname = 'h', updated_at = now()
where id = any (array(select id from horsies_tasks where status = 'PENDING'
    and queue_name = 'default' order by priority, enqueued_at, id limit %s for update skip locked))
returning id
"""
OWN_COMPLETE = """
update horsies_tasks t set status = 'COMPLETED', completed_at = now(),
    result = '{"__task_result__":true,"ok":1,"err":null}', updated_at = now()
where id = any (%s) and status || '' = 'RUNNING' returning id
"""
WITH_ATTEMPTS = f"""
with ended as ({OWN_COMPLETE})
insert into horsies_task_attempts (task_id, attempt, outcome, started_at, finished_at, worker_id)
select id, 1, 'COMPLETED', now(), now(), 'w' from ended
"""


def claim_and_complete(url: str, count: int, batch: int = 500) -> float:
    """Rows claimed and completed by UPDATE per second, one connection."""
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("drop table if exists raw_tasks")
        connection.execute(TABLE)
        connection.execute(
            "insert into raw_tasks (id, payload) select lpad(i::text, 36, '0'), '[1]' "
            "from generate_series(1, %s) i",
            [count],
        )
        connection.execute("vacuum analyze raw_tasks")
        connection.execute("checkpoint")
        started, done = time.perf_counter(), 0
        while ids := [row[0] for row in connection.execute(CLAIM, [batch]).fetchall()]:
            connection.execute(COMPLETE, [ids])
            done += len(ids)
        return done / (time.perf_counter() - started)


def claim_and_complete_own(url: str, count: int, complete: str, batch: int = 500) -> float:
    """The same on our own tables, with their columns and indexes; nobody is notified."""
    bulk_fill(url, "PENDING", 1, count)
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("alter table horsies_tasks disable trigger user")
        started, done = time.perf_counter(), 0
        while ids := [row[0] for row in connection.execute(OWN_CLAIM, [batch]).fetchall()]:
            connection.execute(complete.encode(), [ids])
            done += len(ids)
        return done / (time.perf_counter() - started)


def single_inserts(url: str, count: int) -> float:
    """Single-row INSERT + commit per second, one connection."""
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("drop table if exists raw_tasks")
        connection.execute(TABLE)
        started = time.perf_counter()
        for number in range(count):
            connection.execute(
                "insert into raw_tasks (id, payload) values (%s, %s)", [f"{number:036d}", "[1]"]
            )
        return count / (time.perf_counter() - started)


def round_trip_ms(url: str, count: int) -> tuple[float, float]:
    """insert + notify → wake → claim → complete + notify → wake: p50 and p99 in milliseconds."""
    ready = threading.Event()
    stop = threading.Event()

    def serve() -> None:
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute("listen raw_new")
            ready.set()
            while not stop.is_set():
                # Collected first: the generator holds the connection while it runs.
                for _ in list(connection.notifies(timeout=0.2, stop_after=1)):
                    ids = [row[0] for row in connection.execute(CLAIM, [1]).fetchall()]
                    with connection.transaction():
                        connection.execute(COMPLETE, [ids])
                        connection.execute("select pg_notify('raw_done', '')")

    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("drop table if exists raw_tasks")
        connection.execute(TABLE)
        connection.execute("listen raw_done")
        thread = threading.Thread(target=serve)
        thread.start()
        ready.wait()
        times: list[float] = []
        for number in range(count):
            started = time.perf_counter()
            with connection.transaction():
                connection.execute("insert into raw_tasks (id) values (%s)", [f"{number:036d}"])
                connection.execute("select pg_notify('raw_new', '')")
            for _ in list(connection.notifies(timeout=5, stop_after=1)):
                times.append((time.perf_counter() - started) * 1000)
        stop.set()
        thread.join()
    return statistics.median(times), statistics.quantiles(times, n=100)[98]
