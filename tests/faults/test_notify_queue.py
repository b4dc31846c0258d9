"""A full notification queue costs wake-ups and nothing else."""

import psycopg
import pytest

from support.cluster import DurableCluster
from support.faults import scene

pytestmark = [pytest.mark.faults, pytest.mark.slow, pytest.mark.timeout(180)]


def _fill(url: str) -> None:
    """Notify until the server refuses to: a commit fails with SQLSTATE 54000."""
    flood = "select pg_notify('flood', repeat('x', 7000) || g) from generate_series(1, 200) g"
    is_full = False
    with psycopg.connect(url, autocommit=True) as connection:
        while not is_full:
            try:
                connection.execute(flood.encode())
            except psycopg.errors.ProgramLimitExceeded:
                is_full = True


@pytest.fixture
def tiny_queue(durable_cluster: DurableCluster) -> DurableCluster:
    """A server whose notification queue holds half a megabyte."""
    with psycopg.connect(durable_cluster.superuser_url, autocommit=True) as admin:
        version = admin.info.server_version
        if version < 170_000:
            pytest.skip("the size of the queue can be set since PostgreSQL 17")
        admin.execute("alter system set max_notify_queue_pages = 64")
    durable_cluster.stop()
    durable_cluster.start()
    return durable_cluster


def test_one_huge_transaction_fits(tiny_queue: DurableCluster) -> None:
    """What one statement notifies does not grow with its rows beyond what the queue takes."""
    with scene(tiny_queue.url) as play:
        play.send_many("coroutine", range(100_000))

        with psycopg.connect(tiny_queue.url, autocommit=True) as by_hand:
            by_hand.execute("listen task_done")
            by_hand.execute("update horsies_tasks set status = 'CANCELLED'")

        assert play.count("CANCELLED") == 100_000


def test_work_goes_on_while_the_queue_is_full(tiny_queue: DurableCluster) -> None:
    with scene(tiny_queue.url) as play:
        worker = play.start_worker("--processes", "1")
        play.wait_ready(worker)
        with psycopg.connect(tiny_queue.url, autocommit=True) as frozen:
            # A listener inside an old transaction never takes its messages off the queue.
            frozen.execute("listen flood")
            frozen.execute("begin")
            frozen.execute("select 1")
            _fill(tiny_queue.url)

            play.send("coroutine", range(5))
            play.send_many("child", range(5, 25))
            play.send("flaky", range(25, 27))
            play.wait_until_all_ended(within=60)

            assert worker.poll() is None
            frozen.execute("rollback")
        play.send("coroutine", range(27, 30))
        play.wait_until_all_ended(within=30)
        play.assert_invariants()
        assert play.count("COMPLETED") == 30
