"""Functions are replaced while workers use them: nobody notices."""

import psycopg
import pytest

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
