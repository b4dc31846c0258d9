"""A client that gives up knows what its server did."""

import asyncio
from concurrent.futures import ThreadPoolExecutor

import psycopg
import pytest

from horsies import AppConfig, Horsies, PostgresConfig, TaskError, TaskResult
from support.eventually import eventually
from support.faults import ENDED, scene
from support.proxy import proxied

pytestmark = [pytest.mark.faults, pytest.mark.slow, pytest.mark.timeout(120)]

_WAITING = (
    "select array_agg(pid) from pg_stat_activity where datname = current_database() "
    "and wait_event_type = 'Lock'"
)


@pytest.mark.parametrize("name", ["", "&application_name=shop"], ids=["our name", "the URL's name"])
def test_claim_that_waited_for_the_cap_and_was_hung_up_takes_nothing(
    database_url: str, name: str
) -> None:
    """Its backend waits on and would commit rows that no worker knows of."""
    with (
        proxied(database_url) as (proxy, url),
        scene(f"{url}{name}", app={"cluster_wide_cap": 4}) as play,
        psycopg.connect(database_url) as blocker,
    ):
        worker = play.start_worker("--processes", "1")
        play.wait_ready(worker)
        blocker.execute("select pg_advisory_lock(horsies_lock_key('claim'))")
        play.url = database_url
        play.send("coroutine", range(4))
        (first,) = eventually(lambda: play.scalar(_WAITING), within=20)

        proxy.hang_up()
        eventually(lambda: play.scalar(_WAITING) not in (None, [first]), within=20)
        assert len(play.scalar(_WAITING)) == 1, "the session that was hung up is gone"
        blocker.execute("select pg_advisory_unlock(horsies_lock_key('claim'))")
        blocker.commit()

        play.wait_until_all_ended(within=30)
        play.assert_invariants()
        assert play.begun() == {0: 1, 1: 1, 2: 1, 3: 1}
        assert worker.poll() is None


def test_claim_does_not_wait_for_the_cap_without_end(database_url: str) -> None:
    """The server ends the wait before the client would: the answer is an error, and certain."""
    with (
        scene(database_url, app={"cluster_wide_cap": 4}) as play,
        psycopg.connect(database_url) as blocker,
    ):
        worker = play.start_worker("--processes", "1")
        play.wait_ready(worker)
        blocker.execute("select pg_advisory_lock(horsies_lock_key('claim'))")
        play.send("coroutine", range(2))

        eventually(lambda: "lock timeout" in play.log(), within=40)
        assert len(play.scalar(_WAITING) or []) <= 1
        blocker.rollback()
        blocker.close()

        play.wait_until_all_ended(within=30)
        play.assert_invariants()
        assert worker.poll() is None


def test_locked_row_of_a_lost_claim_does_not_hold_up_claiming(database_url: str) -> None:
    """The worker goes on, and gives the row back when its lock is gone."""
    with (
        proxied(database_url) as (proxy, url),
        scene(url) as play,
        psycopg.connect(database_url) as holder,
    ):
        hold = proxy.hold("horsies_claim_tasks", "lanes", side="answered")
        play.url = database_url
        play.send("coroutine", range(2))
        worker = play.start_worker("--processes", "1")
        hold.wait()
        locked_id = play.scalar("select id from horsies_tasks where status = 'RUNNING' limit 1")
        holder.execute("select from horsies_tasks where id = %s for update", [locked_id])

        proxy.hang_up()

        play.send("coroutine", range(2, 4))
        eventually(lambda: play.count("COMPLETED") == 3, within=30)
        assert play.scalar("select status from horsies_tasks where id = %s", locked_id) == "RUNNING"
        holder.rollback()
        play.wait_until_all_ended(within=10)
        play.assert_invariants()
        assert play.begun() == {0: 1, 1: 1, 2: 1, 3: 1}
        assert worker.poll() is None


def test_claim_whose_answer_was_lost_is_given_back_at_a_stop(database_url: str) -> None:
    with proxied(database_url) as (proxy, url), scene(url) as play:
        hold = proxy.hold("horsies_claim_tasks", "lanes", side="answered")
        play.url = database_url
        play.send("coroutine", range(2))
        worker = play.start_worker("--processes", "1")
        hold.wait()
        assert play.count("RUNNING") == 2

        worker.terminate()
        proxy.hang_up()
        worker.wait(30)

        assert play.count("PENDING") == 2
        assert worker.returncode == 0


def test_claim_that_comes_late_behind_a_pooler_is_given_back(database_url: str) -> None:
    """There nobody can see whether a statement that was hung up goes on."""
    settings = {"pgbouncer_transaction_mode": True, "session_database_url": database_url}
    with proxied(database_url) as (proxy, url), scene(url, broker=settings) as play:
        hold = proxy.hold("horsies_claim_tasks", "lanes", side="answered")
        play.url = database_url
        play.send("coroutine", range(1))
        worker = play.start_worker("--processes", "1")
        worker_id = play.wait_ready(worker)
        hold.wait()
        proxy.hang_up()
        eventually(lambda: play.count("COMPLETED") == 1, within=30)

        play.module.coroutine.schedule(3600, 1).unwrap()
        late = (
            "update horsies_tasks set status = 'RUNNING', claimed_at = now(), started_at = now(), "
            "enqueued_at = now(), claimed_by_worker_id = %s where status = 'PENDING' returning id"
        )
        play.rows(late, worker_id)

        eventually(lambda: play.count("COMPLETED") == 2, within=30)
        assert play.log().count("gave back 1 tasks") == 2


@pytest.mark.parametrize("kind", ["coroutine", "flaky"])
def test_end_that_was_stored_before_its_answer_was_lost_is_no_lost_claim(
    database_url: str, kind: str
) -> None:
    with proxied(database_url) as (proxy, url), scene(url) as play:
        hold = proxy.hold("horsies_end_tasks", side="answered")
        play.url = database_url
        play.send(kind, range(1))
        worker = play.start_worker("--processes", "1")
        hold.wait()

        proxy.hang_up()

        play.send("coroutine", range(1, 2))
        eventually(lambda: play.count(*ENDED) == 2, within=30)
        worker.terminate()
        assert worker.wait(30) == 0
        assert "its claim was lost" not in play.log()


@pytest.mark.parametrize("act", ["send one of many", "run again"])
def test_what_was_stored_before_its_answer_was_lost_is_stored_once_and_told(
    database_url: str, act: str
) -> None:
    with proxied(database_url) as (proxy, url), psycopg.connect(database_url) as db:
        app = Horsies(AppConfig(broker=PostgresConfig(database_url=url)))

        @app.task("noop")
        def noop() -> TaskResult[None, TaskError]:
            return TaskResult(ok=None)

        (ended,) = noop.send_many([()]).unwrap()
        db.execute("update horsies_tasks set status = 'COMPLETED'")
        db.commit()
        text, ask = (
            ("horsies_send_task", lambda: noop.send_many([()]).unwrap()[0].task_id)
            if act == "send one of many"
            else ("horsies_rerun_task", lambda: ended.rerun().unwrap().task_id)
        )
        hold = proxy.hold(text, side="answered")

        with ThreadPoolExecutor(1) as threads:
            asked = threads.submit(ask)
            hold.wait()
            proxy.hang_up()
            told = asked.result(timeout=30)

        stored = db.execute("select id from horsies_tasks where status = 'PENDING'").fetchall()
        assert stored == [(told,)]
        app.get_broker().close()


@pytest.mark.parametrize("count", [1, 20, 400], ids=["one", "few", "many"])
@pytest.mark.parametrize("is_stored", [True, False], ids=["stored", "not stored"])
def test_many_sends_without_an_answer_are_sent_again_and_stored_once(
    database_url: str, count: int, is_stored: bool
) -> None:
    with proxied(database_url) as (proxy, url), psycopg.connect(database_url) as db:
        app = Horsies(AppConfig(broker=PostgresConfig(database_url=url, pool_timeout=1)))

        @app.task("noop")
        def noop(number: int) -> TaskResult[None, TaskError]:
            return TaskResult(ok=None)

        noop.send_many([(number,) for number in range(count)]).unwrap()
        text = "COMMIT" if count > 50 else "horsies_send_task"
        proxy.hold(text, side="answered" if is_stored else "asked")

        # The connection stays mute: the client gives it up by its own limit.
        error = noop.send_many([(number,) for number in range(count)]).unwrap_err()
        after = [noop.retry_send_many(error).unwrap() for _ in range(2)]

        assert error.retryable
        ids = [one.task_id for one in error.each]
        assert [[handle.task_id for handle in handles] for handles in after] == [ids, ids]
        assert [handle.created for handle in after[0]] == [not is_stored] * count
        assert db.execute("select count(*) from horsies_tasks").fetchone() == (2 * count,)
        app.get_broker().close()


@pytest.mark.parametrize("is_awaited", [False, True], ids=["blocking", "awaited"])
def test_requeue_whose_answer_was_lost_is_an_error_and_no_refusal(
    database_url: str, is_awaited: bool
) -> None:
    """It was done: repeated behind the caller's back, it would say that the task is not ended."""
    with proxied(database_url) as (proxy, url), psycopg.connect(database_url) as db:
        app = Horsies(AppConfig(broker=PostgresConfig(database_url=url)))

        @app.task("noop")
        def noop() -> TaskResult[None, TaskError]:
            return TaskResult(ok=None)

        ended = noop.send().unwrap()
        db.execute("update horsies_tasks set status = 'FAILED'")
        db.commit()
        hold = proxy.hold("horsies_requeue_tasks", side="answered")

        with ThreadPoolExecutor(1) as threads:
            if is_awaited:
                asked = threads.submit(lambda: asyncio.run(ended.requeue_async()))
            else:
                asked = threads.submit(ended.requeue)
            hold.wait()
            proxy.hang_up()
            answer = asked.result(timeout=30)

        assert answer.is_err()
        assert answer.err_value.retryable
        assert db.execute("select status from horsies_tasks").fetchall() == [("PENDING",)]
        app.get_broker().close()
