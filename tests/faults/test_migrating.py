"""Functions and tables are changed while workers and senders use them: nobody notices."""

from concurrent.futures import ThreadPoolExecutor

import psycopg
import pytest

from horsies import AppConfig, Horsies, PostgresConfig, TaskError, TaskResult
from horsies.database.migrate import migrate
from support.faults import scene

pytestmark = [pytest.mark.faults, pytest.mark.slow, pytest.mark.timeout(120)]
ROUNDS = 40


def test_a_migration_does_not_end_a_busy_worker(database_url: str) -> None:
    with scene(database_url) as play, psycopg.connect(database_url, autocommit=True) as connection:
        worker = play.start_worker("--concurrency", "50")
        play.wait_ready(worker)

        for number in range(ROUNDS):
            play.send_many("coroutine", range(number * 200, (number + 1) * 200))
            older = "update horsies_schema_version set name = '1:1:older' where version = 0"
            connection.execute(older)
            assert migrate(connection) == ["functions"]

        play.wait_until_all_ended(within=60)
        assert worker.poll() is None
        play.assert_invariants()


def test_senders_go_on_while_a_migration_waits_for_an_open_transaction(database_url: str) -> None:
    """A send gives up after 4.8 s: a migration that queues up for longer would cost it."""
    app = Horsies(AppConfig(broker=PostgresConfig(database_url=database_url, pool_timeout=6)))

    @app.task("noop")
    def noop() -> TaskResult[None, TaskError]:
        return TaskResult(ok=None)

    noop.send().unwrap()
    waits: list[str] = []
    with (
        psycopg.connect(database_url, autocommit=True) as migrating,
        psycopg.connect(database_url, application_name="a report") as reader,
        ThreadPoolExecutor(1) as threads,
    ):
        migrating.execute("delete from horsies_schema_version where version = 8")
        reader.execute("select count(*) from horsies_tasks")
        blocker = f"pid {reader.info.backend_pid} (a report"
        migration = threads.submit(migrate, migrating, patience_s=300, report=waits.append)

        sent = []
        while len(waits) < 3:
            assert not migration.done()
            sent.append(noop.send())
        reader.rollback()

        assert migration.result(60) == ["0008_permits"]
    assert [one for one in sent if one.is_err()] == []
    assert all(blocker in wait for wait in waits)
    app.get_broker().close()
