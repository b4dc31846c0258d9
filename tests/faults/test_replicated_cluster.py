"""What failover tests stand on: a real standby has every commit, and takes over when promoted."""

import threading
from collections.abc import Iterator
from contextlib import suppress

import psycopg
import pytest

from support.eventually import eventually
from support.replication import ReplicatedCluster

pytestmark = [pytest.mark.faults, pytest.mark.slow]


INSERT = "insert into numbers values (1)"


@pytest.fixture
def cluster(replicated_cluster: ReplicatedCluster) -> ReplicatedCluster:
    run(replicated_cluster.primary_url, "create table numbers (id int primary key)")
    return replicated_cluster


def run(url: str, statement: str) -> None:
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(statement.encode())


def stored(url: str) -> set[int]:
    with psycopg.connect(url) as connection:
        return {row[0] for row in connection.execute("select id from numbers")}


def is_standby(url: str) -> bool:
    with psycopg.connect(url) as connection:
        return connection.execute("select pg_is_in_recovery()").fetchone() == (True,)


def test_committed_row_is_on_the_standby(cluster: ReplicatedCluster) -> None:
    run(cluster.primary_url, INSERT)

    eventually(lambda: stored(cluster.standby_url) == {1})
    assert is_standby(cluster.standby_url)
    assert not is_standby(cluster.primary_url)


def test_standby_takes_over_from_a_killed_primary(cluster: ReplicatedCluster) -> None:
    url = cluster.url("read-write")
    run(url, INSERT)

    cluster.kill_primary()
    with pytest.raises(psycopg.OperationalError):
        run(url, "insert into numbers values (2)")
    cluster.promote()
    run(url, "insert into numbers values (3)")

    assert stored(url) == {1, 3}


@pytest.fixture
def writers(cluster: ReplicatedCluster) -> Iterator[list[int]]:
    """Numbers whose insert was acknowledged, growing until the primary of now is gone."""
    acknowledged: list[int] = []
    url = cluster.primary_url

    def write(first: int) -> None:
        with (
            suppress(psycopg.OperationalError),
            psycopg.connect(url, autocommit=True) as connection,
        ):
            for number in range(first, first + 1_000_000):
                connection.execute("insert into numbers values (%s)", [number])
                acknowledged.append(number)

    threads = [threading.Thread(target=write, args=[n * 1_000_000]) for n in range(4)]
    for thread in threads:
        thread.start()
    yield acknowledged
    cluster.kill_primary()
    for thread in threads:
        thread.join(30)


@pytest.mark.timeout(300)
def test_no_acknowledged_insert_is_lost_when_the_primary_is_killed(
    cluster: ReplicatedCluster, writers: list[int]
) -> None:
    eventually(lambda: len(writers) > 200, within=60)

    cluster.kill_primary()
    cluster.promote()

    missing = set(writers) - stored(cluster.url("read-write"))
    assert missing == set()


@pytest.mark.timeout(300)
def test_no_acknowledged_insert_is_lost_by_a_switchover(
    cluster: ReplicatedCluster, writers: list[int]
) -> None:
    url = cluster.url("read-write")
    eventually(lambda: len(writers) > 200, within=60)

    cluster.switchover()
    acknowledged = set(writers)

    assert acknowledged <= stored(url)
    assert is_standby(cluster.standby_url)
    # And back: the old primary has become a standby that can take over as well.
    cluster.kill_primary()
    cluster.promote()
    assert acknowledged <= stored(url)


def test_commit_waits_for_the_standby_also_after_it_has_rejoined(
    cluster: ReplicatedCluster,
) -> None:
    cluster.kill_primary()
    cluster.promote()
    cluster.rejoin()
    insert = threading.Thread(target=run, args=[cluster.primary_url, INSERT])

    with cluster.suspended_standby():
        insert.start()
        eventually(lambda: waiting_commits(cluster) == 1)
    insert.join(30)

    assert waiting_commits(cluster) == 0
    assert stored(cluster.primary_url) == {1}


def waiting_commits(cluster: ReplicatedCluster) -> int:
    with psycopg.connect(cluster.superuser_url) as connection:
        waiting = connection.execute(
            "select count(*) from pg_stat_activity where wait_event = 'SyncRep'"
        ).fetchone()
        assert waiting is not None
        return int(waiting[0])


def test_read_only_primary_refuses_sessions_that_are_open(cluster: ReplicatedCluster) -> None:
    with psycopg.connect(cluster.primary_url, autocommit=True) as connection:
        connection.execute(INSERT)

        cluster.turn_read_only()
        with pytest.raises(psycopg.errors.ReadOnlySqlTransaction):
            connection.execute("insert into numbers values (2)")
        with pytest.raises(psycopg.OperationalError):
            run(cluster.url("read-write"), "insert into numbers values (3)")
        cluster.turn_writable()
        connection.execute("insert into numbers values (4)")

    assert stored(cluster.url()) == {1, 4}
