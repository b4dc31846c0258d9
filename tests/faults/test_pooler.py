"""Everything works where nothing outlives a transaction: PgBouncer in transaction mode."""

from pathlib import Path

import psycopg
import pytest

from support.cluster import DurableCluster
from support.eventually import eventually
from support.faults import IS_SHORT, Scene, scene
from support.pgbouncer import Program, find_pgbouncer, pooled
from support.proxy import proxied

pytestmark = [pytest.mark.faults, pytest.mark.slow, pytest.mark.timeout(300)]


@pytest.fixture
def program() -> Program:
    found = find_pgbouncer()
    if found is None:
        pytest.skip("pgbouncer is not installed and cannot be fetched: apt-get install pgbouncer")
    return found


@pytest.mark.parametrize("is_listening", [True, False], ids=["listening", "polling"])
def test_everything_works_behind_a_transaction_mode_pooler(
    database_url: str, program: Program, is_listening: bool
) -> None:
    direct = database_url if is_listening else None
    settings = {"pgbouncer_transaction_mode": True, "session_database_url": direct}
    with pooled(program, database_url) as url, scene(url, broker=settings) as play:
        play.start_worker("--processes", "2")
        for kind, first in (("child", 0), ("coroutine", 10), ("thread", 20), ("flaky", 30)):
            play.send(kind, range(first, first + 5))
        play.send_many("coroutine", range(40, 60))
        _send_in_transactions(play, url)
        late = play.module.coroutine.schedule(2, 80).unwrap()
        play.numbers[late.task_id] = 80
        cancelled = _cancel(play, 90)

        play.wait_until_all_ended(within=60)

        play.assert_invariants()
        assert play.count("COMPLETED") == len(play.numbers) - 1
        for task_id, number in play.numbers.items():
            if task_id != cancelled:
                assert play.app.handle(task_id).get(timeout_ms=5_000).ok == number
        assert play.begun()[61] == 0, "rolled back"
        waited = "select started_at - created_at >= '2 seconds' from horsies_tasks where id = %s"
        assert play.scalar(waited, late.task_id)


def test_sends_go_on_after_a_rolled_back_call_behind_a_pooler(
    database_url: str, program: Program
) -> None:
    settings = {"pgbouncer_transaction_mode": True}
    with pooled(program, database_url) as url, scene(url, broker=settings) as play:
        play.send("coroutine", range(1))
        for _ in range(8):
            play.app.handle(next(iter(play.numbers))).info().unwrap()
        assert play.app.schedules.pause("nope").is_err()

        play.send("coroutine", range(1, 5))

        assert play.count("PENDING") == 5


def test_worker_killed_behind_a_pooler_is_recovered(database_url: str, program: Program) -> None:
    """Without session locks a dead process and its begun slots are the proof."""
    settings = {"pgbouncer_transaction_mode": True}
    with pooled(program, database_url) as url, scene(url, broker=settings) as play:
        play.send("child", range(6), -1)
        victim = play.start_worker("--processes", "2")
        eventually(lambda: play.begun().total() == 2, within=30)

        play.kill(victim)
        play.open_gate()
        play.start_worker("--processes", "2")

        play.wait_until_all_ended(within=40)
        play.assert_invariants()
        assert play.begun().total() == 8
        gone = "select count(*) from horsies_task_attempts where error_message like %s"
        assert play.scalar(gone, "%no longer running%") == 2


def test_server_restarted_behind_a_pooler_only_delays(
    durable_cluster: DurableCluster, program: Program
) -> None:
    """All errors of PgBouncer itself have the SQLSTATE 08P01."""
    settings = {"pgbouncer_transaction_mode": True}
    with (
        proxied(durable_cluster.url) as (
            _,
            direct,
        ),  # the server knows this account, not the pooler's
        pooled(program, direct) as url,
        scene(url, broker=settings) as play,
    ):
        play.send("coroutine", range(70), -1)
        worker = play.start_worker("--concurrency", "70")
        eventually(lambda: play.begun().total() == 70, within=30)

        durable_cluster.stop()
        play.open_gate()
        eventually(lambda: "writing results failed" in play.log(), within=30)
        durable_cluster.start()

        play.wait_until_all_ended(within=90)
        assert worker.poll() is None
        assert play.count("COMPLETED") == 70


def _send_in_transactions(play: Scene, url: str) -> None:
    with psycopg.connect(url, prepare_threshold=None) as connection:
        task = play.module.coroutine.with_options(connection=connection)
        play.numbers[task.send(60).unwrap().task_id] = 60
        connection.commit()
        task.send(61).unwrap()
        connection.rollback()


def _cancel(play: Scene, number: int) -> str:
    """A running task, cancelled on request."""
    play.send("coroutine", range(number, number + 1), -1)
    eventually(lambda: play.begun()[number] == 1, within=30)
    task_id = next(reversed(play.numbers))
    assert play.app.handle(task_id).cancel(running=True).unwrap()
    error = play.app.handle(task_id).get(timeout_ms=15_000).err_value
    assert str(error.error_code.value) == "TASK_CANCELLED"
    return task_id


@pytest.mark.skipif(IS_SHORT, reason="goes to the network: make faults")
def test_pgbouncer_is_unpacked_where_it_is_not_installed(tmp_path: Path) -> None:
    program = find_pgbouncer(system_path="", cache=tmp_path)
    if program is None:
        pytest.skip("pgbouncer cannot be fetched here: no package lists or no network")

    assert program.path.startswith(str(tmp_path))
