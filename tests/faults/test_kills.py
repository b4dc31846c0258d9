"""Real kills at random points: worker, child, server. Each ends in the invariants over all rows."""

import random
import threading

import pytest

from support.cluster import DurableCluster
from support.eventually import eventually
from support.faults import ROUNDS, Scene, kill_children, scene

pytestmark = [pytest.mark.faults, pytest.mark.slow]


def _pause(seeded: random.Random, low: float, high: float) -> None:
    threading.Event().wait(seeded.uniform(low, high))


@pytest.mark.timeout(240)
def test_workers_killed_at_random_lose_nothing(database_url: str, seeded: random.Random) -> None:
    with scene(database_url) as play:
        play.send("child", range(60), 0.01)
        play.send("coroutine", range(60, 120), 0.01)
        play.send("thread", range(120, 180), 0.01)
        steady = play.start_worker("--processes", "2")

        for _ in range(ROUNDS):
            victim = play.start_worker("--processes", "2")
            _pause(seeded, 0.8, 2.0)
            play.kill(victim)

        play.wait_until_all_ended(within=120)
        assert steady.poll() is None
        play.assert_invariants()
        assert play.count("COMPLETED") == 180


@pytest.mark.timeout(120)
def test_children_killed_at_random_end_only_their_own_task(
    database_url: str, seeded: random.Random
) -> None:
    with scene(database_url) as play:
        play.send("child", range(80), 0.05)
        worker = play.start_worker("--processes", "3")
        eventually(lambda: play.count("COMPLETED") > 0, within=30)

        for _ in range(ROUNDS * 3):
            kill_children(worker, at_most=1)
            _pause(seeded, 0.05, 0.2)

        play.wait_until_all_ended(within=60)
        play.assert_invariants()
        assert play.count("COMPLETED") == 80


@pytest.mark.timeout(240)
def test_server_killed_at_random_loses_nothing(
    durable_cluster: DurableCluster, seeded: random.Random
) -> None:
    with scene(durable_cluster.url) as play:
        play.send("coroutine", range(100), 0.02)
        play.send("child", range(100, 200), 0.02)
        worker = play.start_worker("--processes", "2")
        eventually(lambda: play.count("COMPLETED") > 0, within=30)

        for _ in range(max(2, ROUNDS // 2)):
            durable_cluster.kill9()
            _pause(seeded, 0.2, 0.6)
            durable_cluster.start()
            _pause(seeded, 0.3, 0.8)

        play.wait_until_all_ended(within=120)
        assert worker.poll() is None
        play.assert_invariants()
        assert play.count("COMPLETED") == 200


@pytest.mark.timeout(240)
def test_rolling_restarts_under_load_double_nothing(
    database_url: str, seeded: random.Random
) -> None:
    with scene(database_url) as play:
        play.send("child", range(150), 0.02)
        play.send("coroutine", range(150, 300), 0.05)
        worker = play.start_worker("--processes", "2")

        for number in range(1, ROUNDS + 1):
            eventually(lambda wanted=number: _worker_count(play) == wanted, within=30)
            _pause(seeded, 0.0, 1.0)
            successor = play.start_worker("--processes", "2")
            worker.terminate()
            assert worker.wait(timeout=30) == 0
            worker = successor

        play.wait_until_all_ended(within=90)
        play.assert_invariants()
        assert play.scalar("select count(*) from horsies_task_attempts") == 300
        assert play.begun().total() == 300


@pytest.mark.seed("S84", "S85", "S86", "S87")
@pytest.mark.timeout(90)
def test_killed_worker_is_noticed_in_seconds(database_url: str) -> None:
    with scene(database_url) as play:
        victim = play.start_worker("--processes", "1")
        play.send("child", range(1), 60.0)
        eventually(lambda: play.count("RUNNING") == 1, within=30)
        play.start_worker("--processes", "1")
        eventually(lambda: _worker_count(play) == 2, within=30)

        play.kill(victim)

        eventually(lambda: _recorded_crashes(play) == 1, within=15)
        message = play.scalar("select error_message from horsies_task_attempts")
        assert "worker process no longer running" in message


def _worker_count(play: Scene) -> int:
    found: int = play.scalar("select count(distinct worker_id) from horsies_worker_states")
    return found


def _recorded_crashes(play: Scene) -> int:
    found: int = play.scalar(
        "select count(*) from horsies_task_attempts where error_code = 'WORKER_CRASHED'"
    )
    return found
