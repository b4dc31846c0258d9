"""Real kills at random points: worker, child, server. Each ends in the invariants over all rows."""

import random
import threading

import psutil
import pytest

from support.cluster import DurableCluster
from support.eventually import eventually
from support.faults import ROUNDS, Scene, kill_children, scene

pytestmark = [pytest.mark.faults, pytest.mark.slow]


def _pause(seeded: random.Random, low: float, high: float) -> None:
    threading.Event().wait(seeded.uniform(low, high))


@pytest.mark.timeout(400)
def test_workers_killed_at_random_lose_nothing(database_url: str, seeded: random.Random) -> None:
    with scene(database_url) as play:
        steady = play.start_worker("--processes", "2")

        for number in range(ROUNDS):
            _send_each_kind(play, 50 * number, 50)
            victims = [play.start_worker("--processes", "2") for _ in range(2)]
            _pause(seeded, 0.8, 2.0)
            for victim in victims:
                play.kill(victim)

        play.wait_until_all_ended(within=200)
        assert steady.poll() is None
        play.assert_invariants()
        assert play.count("COMPLETED") == 50 * ROUNDS


@pytest.mark.timeout(240)
def test_children_killed_at_random_end_only_their_own_task(
    database_url: str, seeded: random.Random
) -> None:
    with scene(database_url) as play:
        play.send("child", range(20 * ROUNDS), 0.05)
        worker = play.start_worker("--processes", "3")
        eventually(lambda: play.count("COMPLETED") > 0, within=30)

        kills = 0
        while kills < 6 * ROUNDS:
            kills += kill_children(worker, at_most=2)
            _pause(seeded, 0.05, 0.2)

        play.wait_until_all_ended(within=120)
        play.assert_invariants()
        assert play.count("COMPLETED") == 20 * ROUNDS


@pytest.mark.timeout(400)
def test_server_killed_at_random_loses_nothing(
    durable_cluster: DurableCluster, seeded: random.Random
) -> None:
    rounds = max(2, ROUNDS // 2)
    with scene(durable_cluster.url) as play:
        worker = play.start_worker("--processes", "2")

        for number in range(rounds):
            _send_each_kind(play, 100 * number, 100)
            eventually(lambda: play.count("COMPLETED") > 0, within=30)
            _pause(seeded, 0.0, 0.4)
            durable_cluster.kill9()
            _pause(seeded, 0.1, 0.6)
            durable_cluster.start()

        play.wait_until_all_ended(within=200)
        assert worker.poll() is None
        play.assert_invariants()
        assert play.count("COMPLETED") == 100 * rounds


@pytest.mark.timeout(400)
def test_rolling_restarts_under_load_double_nothing(
    database_url: str, seeded: random.Random
) -> None:
    with scene(database_url) as play:
        worker = play.start_worker("--processes", "2")

        for number in range(ROUNDS):
            _send_each_kind(play, 80 * number, 80)
            play.wait_ready(worker)
            _pause(seeded, 0.0, 1.0)
            successor = play.start_worker("--processes", "2")
            worker.terminate()
            assert worker.wait(timeout=30) == 0
            worker = successor

        play.wait_until_all_ended(within=90)
        play.assert_invariants()
        assert play.scalar("select count(*) from horsies_task_attempts") == 80 * ROUNDS
        assert set(play.begun().values()) == {1}


def _send_each_kind(play: Scene, first: int, count: int) -> None:
    """`count` tasks with numbers from `first` on: half in children, the rest in the worker."""
    play.send("child", range(first, first + count // 2), 0.02)
    play.send("coroutine", range(first + count // 2, first + count * 4 // 5), 0.05)
    play.send("thread", range(first + count * 4 // 5, first + count), 0.02)


@pytest.mark.seed("S84", "S85", "S86", "S87")
@pytest.mark.timeout(90)
def test_killed_worker_is_noticed_in_seconds(database_url: str) -> None:
    with scene(database_url) as play:
        victim = play.start_worker("--processes", "1")
        play.send("child", range(1), 60.0)
        eventually(lambda: play.begun()[0] == 1, within=30)

        play.kill(victim)
        status, pid = play.rows("select status, worker_pid from horsies_tasks")[0]
        eventually(lambda: not psutil.pid_exists(pid), within=15)
        assert (status, play.count("RUNNING")) == ("RUNNING", 1), "nobody is there to notice"
        play.start_worker("--processes", "1")

        eventually(lambda: _recorded_crashes(play) == 1, within=30)
        (attempt,) = play.rows("select outcome, error_message from horsies_task_attempts")
        assert attempt[0] == "FAILED"
        assert "worker process no longer running" in attempt[1]


def _recorded_crashes(play: Scene) -> int:
    found: int = play.scalar(
        "select count(*) from horsies_task_attempts where error_code = 'WORKER_CRASHED'"
    )
    return found
