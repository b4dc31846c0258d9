"""A server that answers but cannot do its work: full disk, read-only, no connection, no lock."""

import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

import psycopg
import pytest

from horsies import TaskSendError, TaskSendErrorCode
from horsies.embedded_postgres.privileges import server_account
from support.cluster import DurableCluster
from support.eventually import eventually
from support.faults import Scene, scene
from support.proxy import Proxy, proxied

pytestmark = [pytest.mark.faults, pytest.mark.slow, pytest.mark.timeout(120)]


@pytest.fixture
def small_disk(durable_cluster: DurableCluster) -> Iterator[Path]:
    """A file system of a few megabytes that the server may write to."""
    if os.getuid() != 0 or shutil.which("mount") is None:
        pytest.skip("only root can mount a small file system")
    place = durable_cluster.directory / "small"
    place.mkdir()
    mounting = ["mount", "-t", "tmpfs", "-o", "size=12m", "tmpfs", str(place)]
    mounted = subprocess.run(mounting, capture_output=True, text=True, check=False)
    if mounted.returncode:
        pytest.skip(f"cannot mount a small file system: {mounted.stderr.strip()}")
    try:
        account = server_account()
        os.chown(place, account.uid, account.gid)
        yield place
    finally:
        durable_cluster.stop()
        subprocess.run(["umount", str(place)], check=True)


def test_full_disk_only_delays(durable_cluster: DurableCluster, small_disk: Path) -> None:
    """Tables on a full disk: an error. (A full WAL disk is a crash: the server_killed tests.)"""
    _run(durable_cluster.superuser_url, f"create tablespace small location '{small_disk}'")
    _run(durable_cluster.superuser_url, "create database small owner horsies tablespace small")
    url = urlunsplit(urlsplit(durable_cluster.url)._replace(path="/small"))
    with scene(url) as play:
        worker = _run_gated(play, 300)

        with _filler(url):
            play.open_gate()
            eventually(lambda: "No space left" in play.log(), within=30)
            error = _first_send_error(play, range(300, 5_000))
            assert error.code is TaskSendErrorCode.ENQUEUE_FAILED
            assert worker.poll() is None

        _assert_all_end(play, worker)


def test_read_only_server_only_delays(durable_cluster: DurableCluster) -> None:
    with scene(durable_cluster.url) as play:
        worker = _run_gated(play, 20)

        _run(durable_cluster.superuser_url, "alter system set default_transaction_read_only = on")
        _run(durable_cluster.superuser_url, "select pg_reload_conf()")
        play.open_gate()
        eventually(lambda: "read-only transaction" in play.log(), within=30)
        error = _first_send_error(play, range(20, 1_000))
        assert error.code is TaskSendErrorCode.ENQUEUE_FAILED
        assert worker.poll() is None

        _run(durable_cluster.superuser_url, "alter system reset default_transaction_read_only")
        _run(durable_cluster.superuser_url, "select pg_reload_conf()")
        _assert_all_end(play, worker)


def test_no_connection_left_only_delays(durable_cluster: DurableCluster) -> None:
    _run(durable_cluster.superuser_url, "alter system set max_connections = 20")
    durable_cluster.stop()
    durable_cluster.start()
    with proxied(durable_cluster.url) as (proxy, url), scene(url) as play:
        worker = _run_gated(play, 20)

        with _all_connections_taken(durable_cluster.superuser_url, proxy):
            play.open_gate()
            # Which of the two depends on whether the superuser's reserve is taken, too.
            refused = re.compile("too many clients|slots are reserved")
            eventually(lambda: refused.search(play.log()), within=30)
            error = _first_send_error(play, range(20, 21))
            assert error.code is TaskSendErrorCode.ENQUEUE_FAILED
            assert error.retryable
            assert worker.poll() is None

        _assert_all_end(play, worker)


def test_full_lock_table_only_delays(durable_cluster: DurableCluster) -> None:
    _run(durable_cluster.superuser_url, "alter system set max_locks_per_transaction = 10")
    durable_cluster.stop()
    durable_cluster.start()
    with scene(durable_cluster.url) as play:
        worker = _run_gated(play, 20)
        play.send("coroutine", range(20, 21))  # so that the connection for results is open
        eventually(lambda: play.count("COMPLETED") == 1, within=30)

        with psycopg.connect(durable_cluster.url, autocommit=True) as greedy:
            with suppress(psycopg.errors.OutOfMemory):
                for number in range(1_000_000):
                    greedy.execute("select pg_advisory_lock(%s)", [number])
            play.open_gate()
            eventually(lambda: "out of shared memory" in play.log(), within=30)
            # Until the outcomes have met the full table several times.
            eventually(lambda: play.log().count("writing results failed") >= 3, within=30)
            assert worker.poll() is None

        _assert_all_end(play, worker)
        assert play.count("COMPLETED") == 21


def _run_gated(play: Scene, count: int) -> "subprocess.Popen[bytes]":
    """A worker with tasks that end when the gate is opened."""
    play.send("coroutine", range(count), -1)
    worker = play.start_worker("--concurrency", str(count + 1))
    eventually(lambda: play.begun().total() == count, within=30)
    return worker


def _first_send_error(play: Scene, numbers: range) -> TaskSendError:
    for number in numbers:
        sent = play.module.coroutine.send(number)
        if sent.is_err():
            error: TaskSendError = sent.unwrap_err()
            return error
        play.numbers[sent.unwrap().task_id] = number
    raise AssertionError("every send succeeded")


def _assert_all_end(play: Scene, worker: "subprocess.Popen[bytes]") -> None:
    play.wait_until_all_ended(within=60)
    assert worker.poll() is None
    play.assert_invariants()
    assert play.scalar("select count(*) from horsies_task_attempts") == len(play.numbers)


@contextmanager
def _filler(url: str) -> Iterator[None]:
    """A table that takes all the space there is, down to the last page."""
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("create table filler (content text)")
        for rows in (1_000, 100, 10, 1):
            fill = f"insert into filler select repeat('x', 1800) from generate_series(1, {rows})"
            with suppress(psycopg.errors.DiskFull):
                while True:
                    connection.execute(fill.encode())
        yield
        connection.execute("drop table filler")


@contextmanager
def _all_connections_taken(superuser_url: str, proxy: Proxy) -> Iterator[None]:
    """Every session is ours, once the others have been cut off often enough."""
    ours: list[psycopg.Connection[tuple[object, ...]]] = []

    def take_all() -> bool:
        proxy.hang_up()
        with suppress(psycopg.OperationalError):
            while True:
                ours.append(psycopg.connect(superuser_url, autocommit=True))
        left = "select count(*) from pg_stat_activity where application_name like 'horsies%%'"
        return ours[0].execute(left).fetchone() == (0,)

    try:
        eventually(take_all, within=30)
        yield
    finally:
        for connection in ours:
            connection.close()


def _run(url: str, statement: str) -> None:
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(statement.encode())
