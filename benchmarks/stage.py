"""A private durable PostgreSQL, fresh databases on it, worker processes, counters, invariants."""

import contextlib
import os
import shutil
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit, urlunsplit

import psutil
import psycopg

from horsies import embedded_postgres

ROOT = Path(__file__).parent.parent
Connection = psycopg.Connection[Any]

# fsync, synchronous_commit and full_page_writes stay at PostgreSQL's own defaults: on.
SETTINGS = {
    "shared_buffers": "512MB",
    "max_wal_size": "8GB",
    "wal_keep_size": "2GB",  # so that index entries can be counted from it
    "max_connections": "200",
    "shared_preload_libraries": "pg_stat_statements",
    "log_checkpoints": "off",
}


@contextmanager
def private_server(given_url: str | None, settings: Mapping[str, str] = SETTINGS) -> Iterator[str]:
    """The maintenance URL of a server with full durability, embedded unless one is given."""
    if given_url:
        yield given_url
        return
    directory = Path(tempfile.mkdtemp(prefix="horsies-bench-"))
    directory.chmod(0o755)
    server = embedded_postgres.acquire(directory, quiet=True, settings=settings)
    try:
        yield server.superuser_url
    finally:
        server.release()
        embedded_postgres.stop(directory)
        shutil.rmtree(directory, ignore_errors=True)


@contextmanager
def fresh_database(server_url: str) -> Iterator[str]:
    name = f"bench_{uuid.uuid4().hex[:8]}"
    with psycopg.connect(server_url, autocommit=True) as connection:
        connection.execute(f'create database "{name}" template template0')
    try:
        yield urlunsplit(urlsplit(server_url)._replace(path=f"/{name}"))
    finally:
        with psycopg.connect(server_url, autocommit=True) as connection:
            connection.execute(f'drop database "{name}" with (force)')


def connect(url: str) -> Connection:
    return psycopg.connect(url, autocommit=True)


def number(connection: Connection, statement: str, *values: Any) -> int:
    """The only column of the only row."""
    row = connection.execute(statement.encode(), values).fetchone()
    return int(row[0] or 0) if row else 0


@contextmanager
def worker(url: str, *options: str) -> Iterator[psutil.Process]:
    """A `horsies worker` on the benchmark's app, from this checkout."""
    command = [sys.executable, "-m", "horsies.cli.main", "worker", "benchmarks.app:app",
               "--loglevel", "WARNING", *options]  # fmt: skip
    paths = f"{ROOT / 'src'}{os.pathsep}{ROOT}"
    environ = {**os.environ, "HORSIES_BENCH_URL": url, "PYTHONPATH": paths}
    with tempfile.TemporaryFile() as log:
        process = subprocess.Popen(command, cwd=ROOT, env=environ, stdout=log, stderr=log)
        try:
            yield psutil.Process(process.pid)
        finally:
            process.terminate()
            if process.wait(60) != 0:
                log.seek(0)
                sys.stderr.write(log.read().decode(errors="replace")[-4000:])
                raise RuntimeError(f"the worker ended with {process.returncode}")


@dataclass(frozen=True, slots=True)
class Counters:
    """What the server has done so far; a difference of two says what happened between."""

    statements: float
    transactions: float
    wal_bytes: float
    rows: float
    lsn: float

    def since(self, before: "Counters", tasks: int) -> dict[str, float]:
        """Per task."""
        return {
            field.name: (getattr(self, field.name) - getattr(before, field.name)) / tasks
            for field in fields(self)
            if field.name != "lsn"
        }


def counters(connection: Connection) -> Counters:
    """Sessions report what they did when they end: read this before and after a worker's life."""
    connection.execute("select pg_stat_clear_snapshot()")
    row = connection.execute(
        "select xact_commit, tup_inserted + tup_updated + tup_deleted, "
        "pg_current_wal_insert_lsn() - '0/0'::pg_lsn from pg_stat_database "
        "where datname = current_database()"
    ).fetchone()
    assert row is not None
    return Counters(_statements(connection), row[0], float(row[2]), row[1], float(row[2]))


def _statements(connection: Connection) -> float:
    """Top-level statements on this database; not a number where the extension is missing."""
    try:
        connection.execute("create extension if not exists pg_stat_statements")
        return number(
            connection,
            "select sum(s.calls) from pg_stat_statements s join pg_database d on d.oid = s.dbid "
            "where d.datname = current_database()",
        )
    except psycopg.Error:
        return float("nan")


def index_entries(connection: Connection, before: Counters, after: Counters) -> float:
    """B-tree entries written between two readings, counted in the write-ahead log."""
    try:
        connection.execute("create extension if not exists pg_walinspect")
        return number(
            connection,
            "select sum(count) from pg_get_wal_stats('0/0'::pg_lsn + %s::numeric, "
            "'0/0'::pg_lsn + %s::numeric, true) "
            "where \"resource_manager/record_type\" like 'Btree/INSERT%%'",
            before.lsn,
            after.lsn,
        )
    except psycopg.Error:
        return float("nan")


def server_cpu_s(connection: Connection) -> float:
    """Processor seconds of this connection's server, all its processes, also ended ones."""
    with contextlib.suppress(psutil.Error):
        backend = psutil.Process(connection.info.backend_pid)
        if backend.name().startswith("postgres") and (postmaster := backend.parent()):
            return family_cpu_s(postmaster)
    return float("nan")  # not on this machine


def family_cpu_s(process: psutil.Process) -> float:
    times = process.cpu_times()
    total: float = times.user + times.system + times.children_user + times.children_system
    for child in process.children(recursive=True):
        with contextlib.suppress(psutil.Error):
            used = child.cpu_times()
            total += used.user + used.system
    return total


def family_rss_mb(process: psutil.Process) -> float:
    total = 0.0
    for one in (process, *process.children(recursive=True)):
        with contextlib.suppress(psutil.Error):
            total += one.memory_info().rss / 1_048_576
    return total


@contextmanager
def gate(url: str, workers: int) -> Iterator[None]:
    """Nothing can be claimed until so many workers, started in the block, have shown themselves."""
    with connect(url) as connection:
        ready = "select count(distinct worker_id) from horsies_worker_states"
        wanted = number(connection, ready) + workers
        with connection.transaction():
            connection.execute("lock table horsies_tasks in access exclusive mode")
            yield
            deadline = time.monotonic() + 60 + 4 * workers
            while number(connection, ready) < wanted:
                if time.monotonic() > deadline:
                    raise TimeoutError("the workers did not show themselves")
                time.sleep(0.02)


def watch(
    connection: Connection,
    until: int,
    *,
    base: int = 0,
    pause_s: float = 0.05,
    on_sample: Callable[[int], None] = lambda _done: None,
    limit_s: float = 600.0,
) -> list[tuple[float, int]]:
    """(time, attempts recorded since `base`) until there are so many."""
    samples: list[tuple[float, int]] = []
    deadline = time.perf_counter() + limit_s
    while True:
        done = attempts_so_far(connection) - base
        samples.append((time.perf_counter(), done))
        on_sample(done)
        if done >= until:
            return samples
        if time.perf_counter() > deadline:
            raise TimeoutError(f"only {done} of {until} tasks were done in {limit_s:g} s")
        time.sleep(pause_s)


def attempts_so_far(connection: Connection) -> int:
    """The newest attempt's number, from its sequence: no index, however large the table.

    Attempts that are about to be committed count: a batch, at the end of a run.
    """
    newest = "select last_value - (not is_called)::int from horsies_task_attempts_id_seq"
    return number(connection, newest)


@dataclass(frozen=True, slots=True)
class Ends:
    """How the tasks of a run end: after so many attempts, of which so many failed."""

    attempts: int = 1
    failed: int = 0


ONCE = Ends()


def check_invariants(
    connection: Connection, count: int, *, base: int = 0, ends: Ends = ONCE
) -> None:
    """What the fault suite promises: all ended, no attempt missing, none doubled, nothing stuck.

    `base` leaves out attempts of earlier runs on the same database.
    """
    stuck = number(
        connection,
        "select count(*) from horsies_tasks where status in ('PENDING', 'CLAIMED', 'RUNNING')",
    )
    row = connection.execute(
        "select count(*), count(distinct (task_id, attempt)), coalesce(max(attempt), 1), "
        "count(*) filter (where outcome <> 'COMPLETED') from horsies_task_attempts where id > %s",
        [base],
    ).fetchone()
    total = count * ends.attempts
    if stuck or row != (total, total, ends.attempts, count * ends.failed):
        raise RuntimeError(f"of {count} tasks {stuck} are stuck; attempts: {row}")
