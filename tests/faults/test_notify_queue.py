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


def test_work_goes_on_while_the_queue_is_full(durable_cluster: DurableCluster) -> None:
    with psycopg.connect(durable_cluster.superuser_url, autocommit=True) as admin:
        version = admin.info.server_version
        if version < 170_000:
            pytest.skip("the size of the queue can be set since PostgreSQL 17")
        admin.execute("alter system set max_notify_queue_pages = 64")
    durable_cluster.stop()
    durable_cluster.start()

    with scene(durable_cluster.url) as play:
        worker = play.start_worker("--processes", "1")
        play.wait_ready(worker)
        with psycopg.connect(durable_cluster.url, autocommit=True) as frozen:
            # A listener inside an old transaction never takes its messages off the queue.
            frozen.execute("listen flood")
            frozen.execute("begin")
            frozen.execute("select 1")
            _fill(durable_cluster.url)

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
