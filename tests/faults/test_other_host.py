"""A worker of another machine: another host name, and pids that mean nothing here."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import psutil
import psycopg
import pytest

from support import cluster
from support.cluster import kill_process
from support.eventually import eventually
from support.faults import Scene, scene
from support.proxy import proxied
from support.urls import place_of

pytestmark = [pytest.mark.faults, pytest.mark.slow, pytest.mark.timeout(120)]

# Its shared memory is its own. The server's socket may be in ours: it stays where it was.
_ISOLATE = """
hostname elsewhere && mount --bind "$1" /mnt && mount -t tmpfs none /dev/shm &&
mkdir -p "$1" && mount --move /mnt "$1" && shift && exec "$@"
"""
_ALONE = ("unshare", "--uts", "--pid", "--fork", "--mount-proc", "--kill-child")


QUIET = {"running_stale_threshold_ms": 6_000, "claimed_stale_threshold_ms": 60_000}
HOLDING_BACK = {"prefetch_buffer": 1, "claim_lease_ms": 60_000}


@pytest.fixture(autouse=True)
def needs_namespaces() -> None:
    if os.getuid() != 0 or shutil.which("unshare") is None:
        pytest.skip("only root can give a process another host name and pids of its own")
    tried = subprocess.run([*_ALONE, "true"], capture_output=True, text=True, check=False)
    if tried.returncode:
        pytest.skip(f"no namespaces here: {tried.stderr.strip()}")


@pytest.fixture
def elsewhere(database_url: str) -> tuple[str, ...]:
    """How to start Python's modules on another machine."""
    place = place_of(database_url)
    shared = place.host if place.socket else str(cluster.run_directory())
    return (*_ALONE, "sh", "-c", _ISOLATE, "sh", shared, sys.executable, "-m")


def _start_elsewhere(play: Scene, elsewhere: tuple[str, ...]) -> "subprocess.Popen[bytes]":
    """A worker elsewhere that runs one task and holds another as a claim."""
    play.send("child", range(2), -1)
    worker = play.start_worker("--processes", "1", python=elsewhere)
    eventually(lambda: play.begun().total() == 1 and play.count("CLAIMED") == 1, within=30)
    assert play.scalar("select hostname from horsies_worker_states limit 1") == "elsewhere"
    return worker


def test_claims_come_back_with_the_session_runs_with_the_threshold(
    database_url: str, elsewhere: tuple[str, ...]
) -> None:
    with scene(database_url, app=HOLDING_BACK, recovery=QUIET) as play:
        worker = _start_elsewhere(play, elsewhere)
        play.send("child", range(2, 3), -1)
        here = play.start_worker("--processes", "1")
        eventually(lambda: play.begun()[2] == 1, within=30)

        for process in psutil.Process(worker.pid).children():
            kill_process(process.pid)

        eventually(lambda: not play.rows(_HELD, "CLAIMED", "elsewhere"), within=20)
        assert play.count("RUNNING") == 2, "user code may still run over there"
        play.open_gate()
        play.wait_until_all_ended(within=40)
        play.assert_invariants()
        ends = play.rows(
            "select a.error_code, a.finished_at - b.sent_at > '5.9 seconds' "
            "from horsies_task_attempts a cross join lateral (select max(sent_at) as sent_at "
            "from horsies_heartbeats h where h.task_id = a.task_id and h.sent_at < a.finished_at "
            "and h.hostname = 'elsewhere' and h.role = 'runner') b "
            "where a.worker_hostname = 'elsewhere'"
        )
        assert ends == [("WORKER_CRASHED", True)]
        assert here.poll() is None


def test_living_worker_elsewhere_is_left_alone(
    database_url: str, elsewhere: tuple[str, ...]
) -> None:
    """Its pids exist here as other processes, or not at all; its slots may be in our memory."""
    with scene(database_url, app=HOLDING_BACK, recovery=QUIET) as play:
        _start_elsewhere(play, elsewhere)
        for _ in range(2):
            play.start_worker("--processes", "1")

        ticks = "select count(*) from horsies_worker_states where hostname <> 'elsewhere'"
        eventually(lambda: play.scalar(ticks) >= 4, within=30)

        assert play.count("RUNNING") == 1
        assert play.count("CLAIMED") == 1
        assert play.scalar("select count(*) from horsies_task_attempts") == 0
        play.open_gate()
        play.wait_until_all_ended(within=30)
        play.assert_invariants()
        assert play.begun() == {0: 1, 1: 1}


_HELD = (
    "select id from horsies_tasks where status = %s and claimed_by_worker_id in "
    "(select worker_id from horsies_worker_states where hostname = %s)"
)


NAMESAKE = ("unshare", "--pid", "--fork", "--mount-proc", "--kill-child", sys.executable, "-m")


def test_namesake_in_another_pid_namespace_is_left_alone(database_url: str) -> None:
    """Containers on the host's network share its name; here a pid of theirs means nothing."""
    with proxied(database_url) as (proxy, session_url), scene(database_url) as play:
        play.environment["HORSIES_FAULT_SETTINGS"] = json.dumps(
            {"broker": {"session_database_url": session_url}}
        )
        contained = play.start_worker("--processes", "1", python=NAMESAKE)
        play.send("child", range(1), -1)
        play.send("coroutine", range(1, 3), -1)
        eventually(lambda: play.begun().total() == 3, within=30)
        play.environment["HORSIES_FAULT_SETTINGS"] = "{}"
        here = play.start_worker("--processes", "1")
        play.wait_ready(here)
        hosts = (
            "select count(distinct hostname), count(distinct host_key) from horsies_worker_states"
        )
        eventually(lambda: play.rows(hosts) == [(1, 2)], within=20)

        proxy.mute()  # its liveness lock goes, and it cannot take it again
        proxy.hang_up()
        looks = (
            "select max(snapshot_at) > min(snapshot_at) + '8 seconds' from horsies_worker_states"
        )
        seen_at = play.scalar("select now()")
        eventually(
            lambda: play.scalar(f"{looks} where snapshot_at > %s and pid = %s", seen_at, here.pid),
            within=40,
        )

        assert play.count("RUNNING") == 3
        assert play.scalar("select count(*) from horsies_task_attempts") == 0
        proxy.unmute()
        play.open_gate()
        play.wait_until_all_ended(within=30)
        play.assert_invariants()
        assert play.begun() == {0: 1, 1: 1, 2: 1}
        assert contained.poll() is None


_TAKEN_AHEAD = (
    "select id, coalesce(ahead_number > (horsies_permitted_numbers(claimed_by_worker_id))"
    "[1 + (ahead_number >> 56)], false) from horsies_tasks where status = 'RUNNING'"
)


# What waits behind a long task goes back by itself after a quarter of a second: not while this
# lock is held.
_HOLDABLE_RETURNS = """
create function wait_for_returns() returns trigger language plpgsql as $$
begin
    perform pg_advisory_xact_lock(4711);
    return new;
end $$;
create trigger wait_for_returns before update on horsies_tasks for each row
    when (old.status = 'RUNNING' and new.status = 'PENDING') execute function wait_for_returns();
"""
_END_HELD_RETURNS = """
select pg_terminate_backend(pid, 10000) from pg_locks
where locktype = 'advisory' and objid = 4711 and not granted
"""


@contextmanager
def _held_returns(url: str) -> Iterator[None]:
    """Within the block nothing that runs goes back; what tried to by its end has failed."""
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(_HOLDABLE_RETURNS)
        connection.execute("select pg_advisory_lock(4711)")
        yield
        connection.execute(_END_HELD_RETURNS)


def test_tasks_taken_ahead_of_a_lost_host_go_back_without_an_attempt(
    database_url: str, elsewhere: tuple[str, ...]
) -> None:
    """What its permits did not cover cannot have begun; what they covered may have."""
    with scene(database_url, recovery=QUIET) as play:
        play.send_many("coroutine", range(300), 0.003)
        # Only what looks short is taken ahead: a busy machine must not make these look long.
        first = ("nice", "-n", "-15", *elsewhere)
        worker = play.start_worker("--processes", "1", "--concurrency", "2", python=first)
        eventually(lambda: play.count("COMPLETED") == 300, within=30)
        with _held_returns(database_url):
            play.send_many("coroutine", range(300, 400), -1)
            eventually(lambda: play.begun().total() == 302, within=10)
            for process in psutil.Process(worker.pid).children():
                kill_process(process.pid)

        taken = dict(play.rows(_TAKEN_AHEAD))
        unbegun = {play.numbers[task_id] for task_id, is_beyond in taken.items() if is_beyond}
        begun = {number for number in play.begun() if number >= 300}
        assert len(begun) == 2
        assert unbegun, "nothing was taken ahead"
        assert not unbegun & begun
        play.start_worker("--processes", "1")
        ids = [task_id for task_id, is_beyond in taken.items() if is_beyond]
        eventually(
            lambda: not play.rows(
                "select from horsies_tasks where id = any (%s) and claimed_by_worker_id in "
                "(select worker_id from horsies_worker_states where hostname = 'elsewhere')", ids,
            ),
            within=20,
        )  # fmt: skip
        attempts = "select count(*) from horsies_task_attempts where task_id = any (%s)"
        assert play.scalar(attempts, ids) == 0, "at once, uncounted"
        play.open_gate()
        play.wait_until_all_ended(within=40)
        assert play.count("COMPLETED") == 400
        crashed = {
            play.numbers[row[0]]
            for row in play.rows(
                "select task_id from horsies_task_attempts where error_code = 'WORKER_CRASHED'"
            )
        }
        assert begun <= crashed
        assert not crashed & unbegun
        assert {play.begun()[number] for number in begun} == {2}
        assert {play.begun()[number] for number in unbegun} == {1}
