"""Killed, cut off or without a server exactly at each commit point in the life of a task.

A proxy holds the very statement: `asked` is sent and not committed, `answered` is committed and
the worker not told.
"""

import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from support.cluster import DurableCluster, kill_process
from support.eventually import eventually
from support.faults import APP_FILE, IS_SHORT, Scene, scene
from support.proxy import Proxy, Side, proxied

pytestmark = [pytest.mark.faults, pytest.mark.slow, pytest.mark.timeout(120)]

Worker = subprocess.Popen[bytes]
SIDES: tuple[Side, Side] = ("asked", "answered")
SUBJECT = 1  # the task whose statement is held; others only help
HOLDING_BACK = {"app": {"prefetch_buffer": 1, "claim_lease_ms": 60_000}}


def _start(play: Scene, proxy: Proxy) -> Worker:
    return play.start_worker("--processes", "1")


def _send(kind: str, seconds: float = 0.0) -> Callable[[Scene, Proxy], Worker]:
    def arrange(play: Scene, proxy: Proxy) -> Worker:
        play.send(kind, range(SUBJECT, SUBJECT + 1), seconds)
        return _start(play, proxy)

    return arrange


def _behind_another(play: Scene, proxy: Proxy) -> Worker:
    """The subject waits CLAIMED behind a task that holds the only child."""
    play.send("child", range(1), -1)
    worker = _start(play, proxy)
    eventually(lambda: play.count("RUNNING") == 1, within=30)
    play.send("child", range(SUBJECT, SUBJECT + 1))
    eventually(lambda: play.count("CLAIMED") == 1, within=30)
    return worker


def _to_be_started(play: Scene, proxy: Proxy) -> Worker:
    worker = _behind_another(play, proxy)
    play.open_gate()
    return worker


def _to_be_handed_back(play: Scene, proxy: Proxy) -> Worker:
    worker = _behind_another(play, proxy)
    worker.terminate()
    return worker


def _to_be_interrupted(play: Scene, proxy: Proxy) -> Worker:
    play.send("interruptible", range(SUBJECT, SUBJECT + 1), -1)
    worker = play.start_worker("--drain-timeout", "0.1")
    eventually(lambda: play.count("RUNNING") == 1, within=30)
    worker.terminate()
    return worker


def _to_be_cancelled(play: Scene, proxy: Proxy) -> Worker:
    worker = _send("coroutine", -1)(play, proxy)
    eventually(lambda: play.begun()[SUBJECT] == 1, within=30)
    (task_id,) = play.numbers
    assert play.app.handle(task_id).cancel(running=True).unwrap()
    return worker


def _overdue(play: Scene, proxy: Proxy) -> Worker:
    deadline = datetime.now(UTC) - timedelta(seconds=1)
    play.send("coroutine", range(SUBJECT, SUBJECT + 1), good_until=deadline)
    return _start(play, proxy)


def _run_of_a_dead_worker(play: Scene, proxy: Proxy) -> Worker:
    first = _send("coroutine", -1)(play, proxy)
    eventually(lambda: play.begun()[SUBJECT] == 1, within=30)
    play.kill(first)
    return _start(play, proxy)


def _start_without_claims(play: Scene, proxy: Proxy) -> Worker:
    """A worker that repairs and does not take what it has repaired."""
    proxy.hold("horsies_claim_tasks", side="asked")
    return _start(play, proxy)


def _claim_of_a_dead_worker(play: Scene, proxy: Proxy) -> Worker:
    play.kill(_behind_another(play, proxy))
    return _start_without_claims(play, proxy)


def _unbegun_run_of_a_dead_worker(play: Scene, proxy: Proxy) -> Worker:
    claim = proxy.hold("horsies_claim_tasks", side="answered")
    first = _send("coroutine")(play, proxy)
    claim.wait()
    play.kill(first)
    return _start_without_claims(play, proxy)


@dataclass(frozen=True)
class Point:
    """A statement, what leads to it, and how often the subject runs in the end.

    By where it was held when the worker was killed: asked, answered.
    """

    statement: str
    arrange: Callable[[Scene, Proxy], Worker]
    runs: tuple[int, int]
    settings: dict[str, dict[str, Any]] = field(default_factory=dict)
    runs_when_cut: int = 1
    ends: tuple[str, str] = ("COMPLETED", "COMPLETED")

    def ends_after(self, side: Side) -> tuple[int, str]:
        position = SIDES.index(side)
        return self.runs[position], self.ends[position]


POINTS = {
    "claim and start": Point("horsies_claim_tasks", _send("coroutine"), (1, 1)),
    "claim and start for a child": Point("horsies_claim_tasks", _send("child"), (1, 1)),
    "start of a claim": Point("horsies_start_tasks", _to_be_started, (1, 1), HOLDING_BACK),
    "heartbeat of a run": Point("horsies_beat", _send("thread", -1), (2, 2)),
    "heartbeat of a claim": Point("horsies_beat", _behind_another, (1, 1), HOLDING_BACK),
    "completion": Point("horsies_end_tasks", _send("coroutine"), (2, 1)),
    "completion by a child": Point("horsies_end_tasks", _send("child"), (2, 1)),
    "retry": Point("horsies_end_tasks", _send("flaky"), (2, 2), runs_when_cut=2),
    "hand-back": Point("horsies_return_tasks", _to_be_handed_back, (1, 1), HOLDING_BACK),
    "interruption": Point("horsies_interrupt_tasks", _to_be_interrupted, (0, 0), runs_when_cut=0),
    "cancellation of a run": Point(
        "horsies_cancel_running_tasks", _to_be_cancelled, (1, 1), ends=("CANCELLED", "CANCELLED")
    ),
    "expiry": Point(
        "horsies_sweep", _overdue, (0, 0), runs_when_cut=0, ends=("EXPIRED", "EXPIRED")
    ),
    "giving up a run": Point(
        "horsies_fail_lost_runs", _run_of_a_dead_worker, (2, 2), runs_when_cut=2
    ),
    "requeue of a claim": Point(
        "horsies_requeue_stale_claims", _claim_of_a_dead_worker, (1, 1), HOLDING_BACK
    ),
    "return of an unbegun run": Point(
        "horsies_return_unheld_tasks", _unbegun_run_of_a_dead_worker, (1, 1)
    ),
}
# `make test` takes the points every task passes, and the repair of a crash.
MAIN_POINTS = ["claim and start for a child", "completion", "retry", "giving up a run"]
KINDS = ["child"] if IS_SHORT else ["child", "coroutine", "thread"]
NAMES = MAIN_POINTS if IS_SHORT else list(POINTS)


@pytest.mark.parametrize("side", SIDES)
@pytest.mark.parametrize("name", NAMES)
def test_worker_killed_at(name: str, side: Side, database_url: str) -> None:
    point = POINTS[name]
    with proxied(database_url) as (proxy, url), scene(url, **point.settings) as play:
        hold = proxy.hold(point.statement, side=side)
        victim = point.arrange(play, proxy)
        hold.wait()

        play.kill(victim)

        assert _end(play) == point.ends_after(side)


@pytest.mark.parametrize("side", SIDES)
@pytest.mark.parametrize("name", ["completion"] if IS_SHORT else NAMES)
def test_connection_cut_at(name: str, side: Side, database_url: str) -> None:
    point = POINTS[name]
    with proxied(database_url) as (proxy, url), scene(url, **point.settings) as play:
        hold = proxy.hold(point.statement, side=side)
        point.arrange(play, proxy)
        hold.wait()

        proxy.hang_up()

        assert _end(play) == (point.runs_when_cut, point.ends[1])


@pytest.mark.parametrize("side", SIDES)
@pytest.mark.parametrize("name", ["completion"] if IS_SHORT else NAMES)
def test_server_killed_at(name: str, side: Side, durable_cluster: DurableCluster) -> None:
    point = POINTS[name]
    with proxied(durable_cluster.url) as (proxy, url), scene(url, **point.settings) as play:
        hold = proxy.hold(point.statement, side=side)
        point.arrange(play, proxy)
        hold.wait()

        durable_cluster.kill9()
        durable_cluster.start()

        assert _end(play) == (point.runs_when_cut, point.ends[1])


@pytest.mark.seed("S106", "S107")
def test_outcome_held_at_its_write_is_marked_as_finalizing(database_url: str) -> None:
    with proxied(database_url) as (proxy, url), scene(url) as play:
        hold = proxy.hold("horsies_end_tasks", side="asked")
        worker_id = play.wait_ready(_send("coroutine")(play, proxy))
        hold.wait()

        marked = "select finalizing_by_worker_id from horsies_tasks where finalizing_at is not null"
        assert eventually(lambda: play.scalar(marked), within=15) == worker_id

        proxy.hang_up()
        assert _end(play) == (1, "COMPLETED")
        assert play.scalar(marked) is None


@pytest.mark.parametrize("kind", KINDS)
def test_worker_killed_in_user_code(kind: str, database_url: str) -> None:
    with scene(database_url) as play:
        play.send(kind, range(SUBJECT, SUBJECT + 1), -1)
        victim = play.start_worker("--processes", "1")
        eventually(lambda: play.begun()[SUBJECT] == 1, within=30)

        play.kill(victim)

        assert _end(play) == (2, "COMPLETED")


def test_child_killed_in_user_code(database_url: str) -> None:
    with scene(database_url) as play:
        play.send("child", range(SUBJECT, SUBJECT + 1), -1)
        play.start_worker("--processes", "1")
        eventually(lambda: play.begun()[SUBJECT] == 1, within=30)

        assert kill_process(play.scalar("select worker_pid from horsies_tasks"))

        assert _end(play) == (2, "COMPLETED")


@pytest.mark.parametrize(
    ("side", "end"), [("asked", (0, None)), ("answered", (1, "COMPLETED"))], ids=SIDES
)
def test_sender_killed_at_its_insert(
    side: Side, end: tuple[int, str | None], database_url: str
) -> None:
    with proxied(database_url) as (proxy, url), scene(url) as play:
        hold = proxy.hold("horsies_send_task", side=side)
        sender = _start_sender(play)
        hold.wait()

        play.kill(sender)

        play.find_sent()
        assert _end(play) == end


@pytest.mark.parametrize("side", SIDES)
def test_sender_cut_off_at_its_insert_stores_one_task(side: Side, database_url: str) -> None:
    with proxied(database_url) as (proxy, url), scene(url) as play:
        hold = proxy.hold("horsies_send_task", side=side)
        sender = _start_sender(play)
        hold.wait()

        proxy.hang_up()

        assert sender.wait(timeout=30) == 0
        play.find_sent()
        assert len(play.numbers) == 1
        assert _end(play) == (1, "COMPLETED")


def _start_sender(play: Scene) -> Worker:
    command = [sys.executable, str(APP_FILE), "coroutine", str(SUBJECT), "0", "{}"]
    return subprocess.Popen(command, env=play.environment)


def _end(play: Scene) -> tuple[int, str]:
    """A further worker brings all to its end: how often the subject ran, and how it ended."""
    play.open_gate()
    play.start_worker("--processes", "1")
    play.wait_until_all_ended(within=60)
    play.assert_invariants()
    find = "select status from horsies_tasks where args::json ->> 0 = %s"
    return play.begun()[SUBJECT], play.scalar(find, str(SUBJECT))
