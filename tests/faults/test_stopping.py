"""Ending what runs: cancel on request, the drain and its time-out, two signals, frozen children."""

import signal
import subprocess
import sys

import pytest

from support.cluster import DurableCluster
from support.eventually import eventually
from support.faults import APP_FILE, Scene, children_of, scene

pytestmark = [pytest.mark.faults, pytest.mark.slow, pytest.mark.timeout(90)]


def _wait_running(play: Scene, count: int) -> None:
    eventually(lambda: play.count("RUNNING") == count, within=30)


def _wait_begun(play: Scene) -> None:
    """Until the code of a task in a child has begun: a row is RUNNING a moment before."""
    eventually(lambda: play.begun().total() > 0, within=30)


@pytest.mark.parametrize("kind", ["child", "coroutine", "thread"])
def test_running_task_is_cancelled_on_request(database_url: str, kind: str) -> None:
    with scene(database_url) as play:
        play.start_worker("--processes", "2")
        play.send(kind, range(1), 3.0 if kind == "thread" else 60.0)
        _wait_running(play, 1)
        handle = play.app.handle(next(iter(play.numbers)))

        assert handle.cancel().unwrap() is False
        assert handle.cancel(running=True).unwrap() is True

        error = handle.get(timeout_ms=15_000).err_value
        assert str(error.error_code.value) == "TASK_CANCELLED"
        info = handle.info(include_attempts=True).unwrap()
        assert info is not None
        assert info.status.value == "CANCELLED"
        assert [(a.outcome, a.error_code) for a in info.attempts or []] == [
            ("FAILED", "TASK_CANCELLED")
        ]


def test_drain_time_out_hands_interruptible_work_back_uncounted(database_url: str) -> None:
    with scene(database_url) as play:
        worker = play.start_worker("--drain-timeout", "0.2")
        play.send("interruptible", range(2), 60.0)
        play.send("coroutine", range(2, 3), 1.5)
        _wait_running(play, 3)

        worker.terminate()

        assert worker.wait(timeout=30) == 0
        assert play.count("PENDING") == 2
        assert play.count("COMPLETED") == 1
        assert play.scalar("select count(*) from horsies_task_attempts") == 1
        rows = play.rows("select retry_count, started_at, worker_pid from horsies_tasks "
                         "where status = 'PENDING'")  # fmt: skip
        assert rows == [(0, None, None)] * 2


def test_second_signal_stops_at_once_and_loses_nothing(database_url: str) -> None:
    with scene(database_url) as play:
        worker = play.start_worker("--processes", "1")
        play.send("child", range(3), 60.0)
        play.send("interruptible", range(3, 4), 60.0)
        _wait_running(play, 2)
        _wait_begun(play)

        worker.terminate()
        eventually(lambda: b"stopping:" in play.log().encode(), within=10)
        worker.send_signal(signal.SIGINT)

        assert worker.wait(timeout=20) == 0
        assert play.count("RUNNING", "CLAIMED") == 0
        assert play.count("PENDING") == 4
        assert play.scalar("select count(*) from horsies_task_attempts where will_retry") == 1


@pytest.mark.seed("S81", "S83")
@pytest.mark.parametrize("kind", ["child", "coroutine", "thread"])
def test_time_limit_ends_only_its_own_task(database_url: str, kind: str) -> None:
    with scene(database_url) as play:
        play.start_worker("--processes", "2", "--threads", "2")
        play.send(kind, range(1), -1)
        play.send(kind, range(1, 2), -1, timeout_ms=1_000)
        _wait_running(play, 2)

        eventually(lambda: play.count("FAILED") == 1, within=30)
        play.open_gate()

        play.wait_until_all_ended(within=30)
        play.assert_invariants()
        (row,) = play.rows(
            "select args::json ->> 0, t.error_code, t.failed_reason, a.error_message, a.outcome "
            "from horsies_tasks t join horsies_task_attempts a on a.task_id = t.id "
            "where status = 'FAILED'"
        )
        number, code, reason, message, outcome = row
        assert (number, code, outcome) == ("1", "TASK_TIMEOUT", "WORKER_FAILURE")
        assert "timed out" in message
        assert reason


@pytest.mark.seed("S50", "S143")
def test_frozen_child_loses_its_heartbeat_and_is_given_up(database_url: str) -> None:
    with scene(database_url, recovery={"running_stale_threshold_ms": 6_000}) as play:
        worker = play.start_worker("--processes", "1")
        play.send("child", range(1), 60.0)
        _wait_running(play, 1)
        beats = "select count(*) from horsies_heartbeats where role = 'runner'"
        eventually(lambda: play.scalar(beats) >= 2, within=15)

        for child in children_of(worker):
            child.send_signal(signal.SIGSTOP)

        crashed = "select count(*) from horsies_task_attempts where error_code = 'WORKER_CRASHED'"
        eventually(lambda: play.scalar(crashed) == 1, within=60)


def test_many_are_cancelled_and_requeued_by_filter_after_a_count(database_url: str) -> None:
    with scene(database_url) as play:
        play.send("child", range(5))
        play.send("coroutine", range(5, 8))

        said = _command(play, "cancel", "--task-name", "child", "--yes")

        assert "5 task(s) match" in said
        assert play.count("CANCELLED") == 5
        assert play.count("PENDING") == 3
        assert "0 task(s) match" in _command(play, "requeue", "--yes")


def _command(play: Scene, *arguments: str) -> str:
    name, *rest = arguments
    command = [sys.executable, "-m", "horsies.cli.main", name, f"{APP_FILE}:app", *rest]
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=play.environment)
    return done.stdout


def test_worker_without_its_database_stops_when_told(durable_cluster: DurableCluster) -> None:
    with scene(durable_cluster.url) as play:
        worker = play.start_worker()
        play.send("coroutine", range(1))
        play.wait_until_all_ended(within=30)
        # A worker that has not heard of the commit must write again: it would wait for the server.
        eventually(lambda: "completed in" in play.log(), within=30)
        durable_cluster.stop()
        eventually(lambda: "claiming failed" in play.log(), within=30)

        worker.terminate()

        assert worker.wait(timeout=30) == 0


def test_outcome_waits_for_the_database_until_a_second_signal(
    durable_cluster: DurableCluster,
) -> None:
    with scene(durable_cluster.url) as play:
        worker = play.start_worker()
        play.send("coroutine", range(1), 3.0)
        _wait_running(play, 1)
        durable_cluster.stop()
        eventually(lambda: "writing results failed" in play.log(), within=30)

        worker.terminate()
        eventually(lambda: "a second signal ends the wait" in play.log(), within=30)
        assert worker.poll() is None
        worker.terminate()

        assert worker.wait(timeout=30) == 0
        assert "1 outcomes could not be written" in play.log()
        durable_cluster.start()
        play.start_worker()
        play.wait_until_all_ended(within=60)
        play.assert_invariants()
        assert play.count("COMPLETED") == 1


def test_outcome_is_written_when_the_database_is_back_during_the_stop(
    durable_cluster: DurableCluster,
) -> None:
    with scene(durable_cluster.url) as play:
        worker = play.start_worker()
        play.send("coroutine", range(1), 3.0)
        _wait_running(play, 1)
        durable_cluster.stop()
        eventually(lambda: "writing results failed" in play.log(), within=30)

        worker.terminate()
        eventually(lambda: "a second signal ends the wait" in play.log(), within=30)
        durable_cluster.start()

        assert worker.wait(timeout=30) == 0
        assert play.count("COMPLETED") == 1
        play.assert_invariants()
