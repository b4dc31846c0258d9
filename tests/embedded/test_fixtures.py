"""The databases that the other tests stand on."""

import psycopg
import pytest

from support.cluster import DurableCluster
from support.eventually import eventually, eventually_async


def test_empty_database_belongs_to_whoever_the_tests_log_in_as(empty_database_url: str) -> None:
    with psycopg.connect(empty_database_url) as connection:
        owner = connection.execute(
            "select pg_get_userbyid(datdba) from pg_database where datname = current_database()"
        ).fetchone()
        user = connection.info.user

    assert owner == (user,)


def test_committed_rows_survive_kill9(durable_cluster: DurableCluster) -> None:
    with psycopg.connect(durable_cluster.url) as connection:
        connection.execute("create table kept as select generate_series(1, 100) as number")

    durable_cluster.kill9()
    durable_cluster.start()

    with psycopg.connect(durable_cluster.url) as connection:
        assert connection.execute("select count(*) from kept").fetchone() == (100,)


def test_eventually_returns_the_first_truthy_answer() -> None:
    answers = iter([0, "", "ready"])

    assert eventually(lambda: next(answers)) == "ready"


def test_eventually_reports_the_last_exception() -> None:
    def fails() -> bool:
        raise LookupError("not there")

    with pytest.raises(AssertionError, match="not there"):
        eventually(fails, within=0.05)


async def test_eventually_async_reports_the_last_value() -> None:
    async def never() -> list[int]:
        return []

    with pytest.raises(AssertionError, match=r"last: \[\]"):
        await eventually_async(never, within=0.05)


def test_database_holds_our_schema_from_the_start(database_url: str) -> None:
    with psycopg.connect(database_url) as connection:
        assert connection.execute("select count(*) from horsies_tasks").fetchone() == (0,)
