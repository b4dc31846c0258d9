"""A coroutine that blocks the event loop: its worker still shows life and still obeys signals."""

import re
import signal
import subprocess
from datetime import timedelta

import pytest

from support.eventually import eventually
from support.faults import Scene, scene
from support.pages import shown_in

pytestmark = [pytest.mark.faults, pytest.mark.slow, pytest.mark.timeout(120)]

PLACE = r"1\\\.3.*?resize"  # how long and where: from "1.3 s" to the function
QUICK = {"running_stale_threshold_ms": 3_000, "claimed_stale_threshold_ms": 3_000}
PATIENT = {"running_stale_threshold_ms": 60_000, "claimed_stale_threshold_ms": 3_000}


def _block(play: Scene) -> "subprocess.Popen[bytes]":
    """A worker with two innocent coroutines and one that blocks them all."""
    worker = play.start_worker()
    play.wait_ready(worker)
    play.send("coroutine", range(2), -1)
    eventually(lambda: play.begun().total() == 2, within=30)
    play.send("blocker", range(2, 3), -1)
    eventually(lambda: play.begun()[2] == 1, within=30)
    return worker


def _has_beaten_late(play: Scene, span: timedelta) -> bool:
    found = play.scalar(
        "select count(distinct h.task_id) from horsies_heartbeats h join horsies_tasks t "
        "on t.id = h.task_id where h.sent_at > t.started_at + %s",
        span,
    )
    return bool(found == 3)


def test_peers_leave_innocent_coroutines_alone(database_url: str) -> None:
    with scene(database_url, recovery=PATIENT) as play:
        _block(play)
        peer = play.start_worker()
        play.wait_ready(peer)

        eventually(lambda: _has_beaten_late(play, timedelta(seconds=8)), within=40)

        assert play.count("RUNNING") == 3
        play.open_gate()
        play.wait_until_all_ended(within=30)
        play.assert_invariants()
        assert play.begun() == {0: 1, 1: 1, 2: 1}
        (quoted,) = shown_in("how-to/run-workers.md", "logged in tests/faults/test_blocked_loop.py")
        assert re.search(re.sub(PLACE, ".*", re.escape(quoted)), play.log())


def test_loop_blocked_beyond_the_threshold_is_given_up(database_url: str) -> None:
    with scene(database_url, recovery=QUICK) as play:
        _block(play)
        peer = play.start_worker()
        play.wait_ready(peer)

        eventually(lambda: play.count("RUNNING") < 3 or play.begun().total() > 3, within=40)

        assert play.scalar("select count(*) from horsies_task_attempts where outcome = 'FAILED'")


def test_second_signal_ends_a_worker_whose_loop_is_blocked(database_url: str) -> None:
    with scene(database_url, recovery=PATIENT) as play:
        worker = _block(play)
        eventually(lambda: "has been blocked for" in play.log(), within=20)

        worker.send_signal(signal.SIGTERM)
        worker.send_signal(signal.SIGINT)  # another one: two alike may reach a process as one

        assert worker.wait(timeout=30) != 0
        assert "ending at once" in play.log()


@pytest.mark.parametrize("number", [signal.SIGHUP, signal.SIGTERM])
def test_signal_drains(database_url: str, number: signal.Signals) -> None:
    with scene(database_url) as play:
        worker = play.start_worker("--processes", "1")
        play.wait_ready(worker)
        play.send("child", range(1), -1)
        play.send("coroutine", range(1, 2), -1)
        eventually(lambda: play.begun().total() == 2, within=30)

        worker.send_signal(number)
        eventually(lambda: "to finish (" in play.log(), within=20)
        play.open_gate()

        assert worker.wait(timeout=20) == 0
        play.wait_until_all_ended(within=5)
        play.assert_invariants()


def test_user_signal_tells_what_runs_and_kills_nothing(database_url: str) -> None:
    with scene(database_url) as play:
        worker = play.start_worker()
        play.wait_ready(worker)
        play.send("coroutine", range(1), -1)
        eventually(lambda: play.begun().total() == 1, within=30)

        worker.send_signal(signal.SIGUSR1)

        eventually(lambda: "1 running, 0 claimed" in play.log(), within=20)
        play.open_gate()
        play.wait_until_all_ended(within=20)
        assert worker.poll() is None
