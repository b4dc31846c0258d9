"""A private durable PostgreSQL, fresh databases on it, worker processes, and counters."""

import os
import shutil
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit, urlunsplit

import psutil
import psycopg

from horsies import embedded_postgres

ROOT = Path(__file__).parent.parent


@contextmanager
def private_server(given_url: str | None) -> Iterator[str]:
    """The maintenance URL of a server with full durability, embedded unless one is given."""
    if given_url:
        yield given_url
        return
    directory = Path(tempfile.mkdtemp(prefix="horsies-bench-"))
    directory.chmod(0o755)
    settings = {"shared_buffers": "512MB", "max_wal_size": "4GB", "max_connections": "100"}
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
        connection.execute(f'create database "{name}"')
    try:
        yield urlunsplit(urlsplit(server_url)._replace(path=f"/{name}"))
    finally:
        with psycopg.connect(server_url, autocommit=True) as connection:
            connection.execute(f'drop database "{name}" with (force)')


@contextmanager
def worker(url: str, *options: str, **environment: str) -> Iterator[psutil.Process]:
    """A `horsies worker` on the benchmark's app."""
    command = [sys.executable, "-m", "horsies.cli.main", "worker", "benchmarks.app:app",
               "--loglevel", "WARNING", *options]  # fmt: skip
    environ = {**os.environ, "HORSIES_BENCH_URL": url, "PYTHONPATH": str(ROOT), **environment}
    process = subprocess.Popen(command, cwd=ROOT, env=environ, stderr=subprocess.DEVNULL)
    try:
        yield psutil.Process(process.pid)
    finally:
        process.terminate()
        process.wait(30)


@dataclass(frozen=True, slots=True)
class Counters:
    """What the server has done so far."""

    transactions: int
    wal_bytes: int
    rows: int
    at: float


def counters(connection: psycopg.Connection[Any]) -> Counters:
    row = connection.execute(
        "select xact_commit, tup_inserted + tup_updated + tup_deleted, "
        "pg_current_wal_lsn() - '0/0'::pg_lsn from pg_stat_database "
        "where datname = current_database()"
    ).fetchone()
    assert row is not None
    return Counters(row[0], int(row[2]), row[1], time.perf_counter())


def server_cpu_s() -> float:
    """Processor seconds of all PostgreSQL processes of this machine's user-visible servers."""
    total = 0.0
    for process in psutil.process_iter(["name", "cpu_times"]):
        if process.info["name"] == "postgres" and process.info["cpu_times"]:
            total += process.info["cpu_times"].user + process.info["cpu_times"].system
    return total


def wait_for(connection: psycopg.Connection[Any], statement: str, wanted: int) -> float:
    """Poll until the statement's number reaches `wanted`; the time then.

    Looked at ever more often as the end comes near: counting itself costs the server.
    """
    pause_s = 0.02
    while True:
        row = connection.execute(statement).fetchone()
        done = row[0] if row is not None else 0
        if done >= wanted:
            return time.perf_counter()
        time.sleep(pause_s)
        pause_s = max(0.02, min(0.5, (wanted - done) / 40_000))
