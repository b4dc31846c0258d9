"""Many processes, one server: who starts it, who ends it, and what survives a kill -9."""

import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import psutil
import psycopg
import pytest

from horsies import embedded_postgres
from horsies.embedded_postgres import EmbeddedServer, locks
from support.embedded import Holder, Someone, kill9, postmaster_pid, supervisor_of
from support.eventually import eventually

Hold = Callable[..., Holder]
Acquire = Callable[..., EmbeddedServer]


for_each_account = pytest.mark.parametrize("someone", ["root", "ordinary user"], indirect=True)


def _log(project: Path) -> str:
    return (project / ".horsies/pg/log").read_text()


def _is_referenced(project: Path) -> bool:
    lock = locks.try_exclusive(project / ".horsies/pg/use.lock")
    if lock:
        lock.release()
    return lock is None


def _fill(url: str) -> None:
    with psycopg.connect(url) as connection:
        connection.execute("create table kept as select generate_series(1, 1200)")


def _count(url: str) -> int:
    with psycopg.connect(url) as connection:
        row = connection.execute("select count(*) from kept").fetchone()
    assert row
    return int(row[0])


@for_each_account
def test_four_cold_starts_make_one_server(hold: Hold, project: Path) -> None:
    holders = [hold() for _ in range(4)]

    assert len({holder.url for holder in holders}) == 1
    assert _log(project).count("ready to accept connections") == 1


def test_threads_share_one_server(acquire: Acquire, project: Path) -> None:
    with ThreadPoolExecutor(4) as threads:
        list(threads.map(lambda _: acquire(), range(4)))

    assert _log(project).count("ready to accept connections") == 1


@pytest.mark.usefixtures("has_data")
@for_each_account
def test_killed_server_is_back_with_its_rows(hold: Hold, project: Path) -> None:
    _fill(hold().url)
    pid = postmaster_pid(project)
    assert pid

    kill9(pid)

    assert _count(hold().url) == 1200


@pytest.mark.usefixtures("has_data")
@for_each_account
def test_server_outlives_its_supervisor(hold: Hold, project: Path) -> None:
    _fill(hold().url)

    supervisor_of(project).kill()

    assert _count(hold().url) == 1200
    assert embedded_postgres.stop(project)
    assert _count(hold().url) == 1200
    assert supervisor_of(project).is_running()


@pytest.mark.usefixtures("has_data")
@for_each_account
def test_reused_pid_neither_stops_a_restart_nor_its_new_owner(
    hold: Hold, project: Path, someone: Someone
) -> None:
    _fill(hold().url)
    pid = postmaster_pid(project)
    assert pid
    supervisor_of(project).kill()
    kill9(pid)
    eventually(lambda: not psutil.pid_exists(pid))
    innocents = [someone.start(["-c", "import sys; sys.stdin.read()"]) for _ in range(2)]
    home = project / ".horsies/pg"
    stale_files = (home / "data/postmaster.pid", home / "run/.s.PGSQL.5432.lock")
    for stale, innocent in zip(stale_files, innocents, strict=True):
        rest = stale.read_text().split("\n", 1)[1]
        stale.write_text(f"{innocent.pid}\n{rest}")

    assert _count(hold().url) == 1200
    embedded_postgres.stop(project)

    assert [innocent.poll() for innocent in innocents] == [None, None]
    for innocent in innocents:
        innocent.communicate("")


@pytest.mark.usefixtures("has_data")
def test_dead_server_that_nobody_reaps_is_not_taken_for_alive(hold: Hold, project: Path) -> None:
    _fill(hold().url)
    pid, supervisor = postmaster_pid(project), supervisor_of(project)
    assert pid
    supervisor.suspend()
    kill9(pid)
    eventually(lambda: psutil.Process(pid).status() == psutil.STATUS_ZOMBIE)

    assert postmaster_pid(project) is None

    supervisor.resume()
    assert _count(hold().url) == 1200


@pytest.mark.usefixtures("has_data")
def test_lost_socket_is_made_anew(hold: Hold, project: Path) -> None:
    _fill(hold().url)

    (project / ".horsies/pg/run/.s.PGSQL.5432").unlink()

    assert _count(hold().url) == 1200


@pytest.mark.usefixtures("has_data")
@for_each_account
def test_killing_the_last_user_stops_the_server(hold: Hold, project: Path) -> None:
    holder = hold(idle_timeout=0.5)
    pid = postmaster_pid(project) if holder.url else None
    assert pid

    holder.kill9()

    eventually(lambda: not psutil.pid_exists(pid))
    assert "database system is shut down" in _log(project)


@pytest.mark.usefixtures("has_data")
def test_client_by_url_alone_keeps_the_server(hold: Hold, project: Path) -> None:
    holder = hold(idle_timeout=0.25)

    with psycopg.connect(holder.url) as connection:
        holder.release()
        connection.execute("select pg_sleep(1)")  # several idle times

    eventually(lambda: postmaster_pid(project) is None)


@pytest.mark.usefixtures("has_data")
def test_forked_child_keeps_the_reference_of_its_parent(hold: Hold, project: Path) -> None:
    holder = hold(idle_timeout=0.25, may_fork=True)

    assert holder.url
    assert _is_referenced(project)
    holder.release()

    eventually(lambda: postmaster_pid(project) is None)


@pytest.mark.usefixtures("has_data")
def test_arrival_during_the_shutdown_gets_a_new_server(acquire: Acquire, project: Path) -> None:
    acquire(idle_timeout=0).release()
    eventually(lambda: "received fast shutdown" in _log(project))

    server = acquire()

    with psycopg.connect(server.url) as connection:
        assert connection.execute("select 1").fetchone() == (1,)
    assert _log(project).count("ready to accept connections") == 2


@pytest.mark.usefixtures("has_data")
def test_release_twice_is_harmless(
    acquire: Acquire,
) -> None:
    server = acquire()

    server.release()
    server.release()


def test_killed_starter_does_not_spoil_the_start(acquire: Acquire, project: Path) -> None:
    starter = subprocess.Popen(
        [sys.executable, "-m", "horsies.cli.main", "pg", "url", "--directory", project],
        stdout=subprocess.DEVNULL,
    )
    try:
        eventually((project / ".horsies/pg/data.tmp").exists, within=30)
    finally:
        starter.kill()
        starter.wait()

    server = acquire()

    with psycopg.connect(server.url) as connection:
        assert connection.execute("select 1").fetchone() == (1,)
    assert _log(project).count("ready to accept connections") == 1
