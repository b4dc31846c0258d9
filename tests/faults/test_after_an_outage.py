"""When the server is back, all of a worker is back: nobody waits out a back-off of its own."""

import json
import signal

import psutil
import pytest

from support.cluster import DurableCluster
from support.eventually import eventually
from support.faults import scene

pytestmark = [pytest.mark.faults, pytest.mark.slow, pytest.mark.timeout(180)]


def test_first_connection_that_gets_through_wakes_the_others(
    durable_cluster: DurableCluster,
) -> None:
    """With back-offs of a minute, whoever waits alone waits for minutes."""
    with scene(durable_cluster.url) as play:
        play.environment["HORSIES_FAULT_RESILIENCE"] = json.dumps(
            {"db_retry_initial_ms": 20_000, "db_retry_max_ms": 60_000}
        )
        worker = play.start_worker("--processes", "1")
        play.wait_ready(worker)
        play.send("child", range(3), -1)
        play.send("coroutine", range(3, 6), -1)
        eventually(lambda: play.count("RUNNING") >= 4, within=30)

        durable_cluster.kill9()
        eventually(lambda: play.log().count("trying again in") >= 1, within=30)
        durable_cluster.start()
        play.open_gate()

        play.wait_until_all_ended(within=15)
        play.assert_invariants()
        assert worker.poll() is None


def test_cut_connection_is_remade_without_a_wait(database_url: str) -> None:
    with scene(database_url) as play:
        play.environment["HORSIES_FAULT_RESILIENCE"] = json.dumps(
            {"db_retry_initial_ms": 20_000, "db_retry_max_ms": 60_000}
        )
        worker = play.start_worker("--processes", "1")
        play.wait_ready(worker)
        play.send("coroutine", range(2), -1)
        eventually(lambda: play.count("RUNNING") == 2, within=30)

        cut = play.scalar(
            "select count(pg_terminate_backend(pid)) from pg_stat_activity "
            "where datname = current_database() and application_name like 'horsies%%' "
            "and pid <> pg_backend_pid()"
        )
        play.open_gate()
        play.send("coroutine", range(2, 4))

        play.wait_until_all_ended(within=15)
        play.assert_invariants()
        assert cut >= 3
        assert psutil.Process(worker.pid).is_running()
        worker.send_signal(signal.SIGTERM)
        assert worker.wait(timeout=20) == 0
