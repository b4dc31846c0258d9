"""The database away, dropped, mute, slow, restarted; notifications lost."""

import asyncio
import time
from collections.abc import Callable
from typing import Any

import psycopg
import pytest

from horsies import (
    AppConfig,
    Horsies,
    IntervalSchedule,
    OperationalErrorCode,
    PostgresConfig,
    ScheduleConfig,
    TaskError,
    TaskResult,
    TaskSchedule,
    TaskSendErrorCode,
)
from horsies.scheduling import scheduler as scheduler_module
from horsies.scheduling.scheduler import Scheduler
from horsies.workflows import prepared_start
from support.cluster import DurableCluster
from support.eventually import eventually
from support.faults import scene
from support.proxy import proxied

pytestmark = [pytest.mark.faults, pytest.mark.slow, pytest.mark.timeout(120)]


def test_connections_dropped_again_and_again_lose_nothing(database_url: str) -> None:
    with proxied(database_url) as (proxy, url), scene(url) as play:
        play.send("coroutine", range(60), 0.05)
        play.send("child", range(60, 100), 0.05)
        worker = play.start_worker("--processes", "2")
        eventually(lambda: play.count("COMPLETED") > 0, within=30)

        for number in range(100, 108):
            proxy.hang_up()
            play.send("coroutine", range(number, number + 1))

        play.wait_until_all_ended(within=60)
        assert worker.poll() is None
        play.assert_invariants()
        assert play.scalar("select count(*) from horsies_task_attempts") == 108


def test_slow_database_only_slows(database_url: str) -> None:
    with proxied(database_url) as (proxy, url), scene(url) as play:
        proxy.delay_s = 0.05
        play.send("coroutine", range(20))

        play.start_worker()

        play.wait_until_all_ended(within=60)
        play.assert_invariants()
        assert play.count("COMPLETED") == 20


@pytest.mark.parametrize("options", [{}, {"tags": ["bulk"]}], ids=["copied", "in batches"])
def test_mute_database_ends_a_bulk_send_in_bounded_time(
    database_url: str, options: dict[str, Any]
) -> None:
    with (
        proxied(database_url) as (proxy, url),
        scene(url, broker={"pool_timeout": 1}) as play,
    ):
        task = play.module.coroutine.with_options(**options)
        task.send_many([(0, 0.0)]).unwrap()
        proxy.mute()
        started = time.monotonic()

        error = task.send_many([(number, 0.0) for number in range(1, 2_000)]).unwrap_err()

        assert error.code is TaskSendErrorCode.ENQUEUE_FAILED
        assert error.retryable
        assert time.monotonic() - started < 30
        proxy.hang_up()
        proxy.unmute()
        assert play.scalar("select count(*) from horsies_tasks") == 1, "all or none"


def test_mute_database_gives_the_sender_a_retryable_error_in_bounded_time(
    database_url: str,
) -> None:
    with proxied(database_url) as (proxy, url):
        app = Horsies(AppConfig(broker=PostgresConfig(database_url=url, pool_timeout=1)))

        @app.task("noop")
        def noop() -> TaskResult[None, TaskError]:
            return TaskResult(ok=None)

        noop.send().unwrap()
        proxy.mute()
        started = time.monotonic()

        error = noop.send().unwrap_err()

        assert error.code is TaskSendErrorCode.ENQUEUE_FAILED
        assert error.retryable
        assert time.monotonic() - started < 10
        proxy.unmute()
        handle = noop.retry_send(error).unwrap()
        assert handle.task_id == error.task_id
        app.get_broker().close()


@pytest.fixture
def scheduling() -> Callable[[str], Horsies]:
    """Makes apps with a schedule that give a silent server up after a second."""

    def new(url: str) -> Horsies:
        minutely = TaskSchedule(
            name="minutely", task_name="noop", pattern=IntervalSchedule(minutes=1)
        )
        broker = PostgresConfig(database_url=url, pool_timeout=1)
        app = Horsies(AppConfig(broker=broker, schedule=ScheduleConfig(schedules=[minutely])))

        @app.task("noop")
        def noop() -> TaskResult[None, TaskError]:
            return TaskResult(ok=None)

        return app

    return new


async def test_scheduler_gives_up_a_firing_that_is_not_answered(
    database_url: str, scheduling: Callable[[str], Horsies], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scheduler_module, "_LIMIT_S", 1.0)
    with proxied(database_url) as (proxy, url), psycopg.connect(database_url) as db:
        app = scheduling(url)
        scheduler = Scheduler(app)
        await app.get_broker().database.ensure_schema_async()
        await scheduler.run_once()
        db.execute("update horsies_schedule_state set next_run_at = now()")
        db.commit()
        proxy.hold("horsies_lock_schedule", side="asked")

        async with asyncio.timeout(30):
            with pytest.raises(psycopg.OperationalError):
                await scheduler.run_once()

        assert await scheduler.run_once() == 1
        await app.get_broker().close_async()


async def test_steering_of_schedules_gives_up_a_statement_that_is_not_answered(
    database_url: str, scheduling: Callable[[str], Horsies]
) -> None:
    with proxied(database_url) as (proxy, url):
        app = scheduling(url)
        app.schedules.list().unwrap()

        async with asyncio.timeout(30):
            proxy.hold("horsies_read_schedules", side="asked")
            awaited = await app.schedules.list_async()
            proxy.hold("horsies_read_schedules", side="asked")
            blocking = await asyncio.to_thread(app.schedules.list)

        assert awaited.unwrap_err().retryable
        assert blocking.unwrap_err().retryable
        await app.get_broker().close_async()


async def test_start_of_many_workflows_gives_up_a_statement_that_is_not_answered(
    database_url: str, scheduling: Callable[[str], Horsies], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(prepared_start, "_NODES_PER_STATEMENT", 1)
    with proxied(database_url) as (proxy, url):
        app = scheduling(url)
        node: Any = app.tasks["noop"].node()()
        spec = app.workflow("one", [node], definition_key="tests.one")
        spec.start().unwrap()
        proxy.hold("horsies_start_workflows", side="asked")

        async with asyncio.timeout(30):
            refused = await app.start_many_async([spec] * 3)

        assert refused.unwrap_err().retryable
        await app.get_broker().close_async()


async def test_ping_of_workers_gives_up_a_statement_that_is_not_answered(
    database_url: str, scheduling: Callable[[str], Horsies]
) -> None:
    with proxied(database_url) as (proxy, url):
        app = scheduling(url)
        proxy.hold("pg_notify", side="asked")

        async with asyncio.timeout(30):
            refused = await app.ping_workers_async(timeout_ms=50)

        assert refused.unwrap_err().retryable
        await app.get_broker().close_async()


async def test_a_timed_wait_ends_in_time_also_when_the_database_is_mute(database_url: str) -> None:
    with proxied(database_url) as (proxy, url):
        app = Horsies(AppConfig(broker=PostgresConfig(database_url=url, pool_timeout=300)))

        @app.task("noop")
        def noop() -> TaskResult[None, TaskError]:
            return TaskResult(ok=None)

        handle = noop.send().unwrap()
        handle.get(1)
        await handle.get_async(1)
        proxy.mute()

        async with asyncio.timeout(30):
            waits = [await handle.get_async(100), await asyncio.to_thread(handle.get, 100)]

        assert {wait.err_value.error_code for wait in waits} == {OperationalErrorCode.BROKER_ERROR}
        proxy.unmute()
        await app.get_broker().close_async()


def test_server_restarted_under_a_worker_loses_nothing(durable_cluster: DurableCluster) -> None:
    with scene(durable_cluster.url) as play:
        play.send("coroutine", range(60), 0.2)
        worker = play.start_worker("--concurrency", "10")
        eventually(lambda: play.count("COMPLETED") > 0, within=30)

        durable_cluster.stop()
        durable_cluster.start()

        play.wait_until_all_ended(within=60)
        assert worker.poll() is None
        play.assert_invariants()
        assert play.scalar("select count(*) from horsies_task_attempts") == 60


@pytest.mark.seed("S70")
def test_lost_notifications_are_made_up_by_polling(database_url: str) -> None:
    with scene(database_url) as play:
        play.start_worker()
        eventually(lambda: play.scalar("select count(*) from horsies_worker_states") > 0, within=30)
        with psycopg.connect(database_url, autocommit=True) as connection:
            connection.execute("alter table horsies_tasks disable trigger user")

        play.send("coroutine", range(3))

        play.wait_until_all_ended(within=20)
        for task_id, number in play.numbers.items():
            assert play.app.handle(task_id).get(timeout_ms=5_000).ok == number
