"""The process's connections: one limit for blocking callers and all event loops."""

import asyncio
import logging
import os
import threading
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from typing import Any

import psycopg
import pytest
from psycopg import Connection

from horsies.config import PostgresConfig
from horsies.database import pool as pool_module
from horsies.database.connection import Address
from horsies.database.pool import Pool, PoolLimits, PoolTimeoutError
from horsies.result import TaskError, TaskResult
from support.apps import good, make_app
from support.eventually import eventually

BACKENDS = (
    "select count(*) from pg_stat_activity "
    "where datname = current_database() and application_name = 'horsies'"
)


def make_pool(url: str, *, kept: int = 2, most: int = 2, wait_s: float = 5.0, **more: Any) -> Pool:
    return Pool(lambda: Address(url), PoolLimits(kept, most, wait_s, 1800, **more))


def pid_of(connection: Connection[Any]) -> int:
    return connection.info.backend_pid


def backends(url: str) -> int:
    with psycopg.connect(url) as connection:
        row = connection.execute(BACKENDS).fetchone()
        assert row is not None
        found: int = row[0]
        return found


async def pid_in_loop(pool: Pool) -> int:
    async with pool.connection_async() as connection:
        await connection.execute("select 1")
        return connection.info.backend_pid


def test_a_connection_is_used_again(database_url: str) -> None:
    pool = make_pool(database_url)
    with pool.connection() as connection:
        first = pid_of(connection)

    with pool.connection() as connection:
        assert pid_of(connection) == first

    pool.close()


def test_blocking_and_awaiting_callers_share_one_limit(database_url: str) -> None:
    pool = make_pool(database_url, wait_s=0.05)

    async def both() -> None:
        with ExitStack() as stack:
            stack.enter_context(pool.connection())
            async with pool.connection_async():
                with pytest.raises(PoolTimeoutError, match="all 2 database connections"):
                    await pid_in_loop(pool)
                with pytest.raises(PoolTimeoutError, match="pool_size"), pool.connection():
                    pass

    asyncio.run(both())
    pool.close()


def test_who_waits_gets_the_next_free_connection(database_url: str) -> None:
    pool = make_pool(database_url, kept=1, most=1)

    async def waiting() -> int:
        with ThreadPoolExecutor(1) as threads:
            with pool.connection():
                first = asyncio.create_task(pid_in_loop(pool))
                second = threads.submit(_pid_blocking, pool)
                while len(pool._waiting) < 2:
                    await asyncio.sleep(0)
            return await first + await asyncio.wrap_future(second)

    assert asyncio.run(waiting()) > 0
    assert backends(database_url) <= 1
    pool.close()


def _pid_blocking(pool: Pool) -> int:
    with pool.connection() as connection:
        return pid_of(connection)


def test_cancelled_waiter_leaves_its_place(database_url: str) -> None:
    pool = make_pool(database_url, kept=1, most=1)

    async def cancelled() -> None:
        with pool.connection():
            waiter = asyncio.create_task(pid_in_loop(pool))
            while not pool._waiting:
                await asyncio.sleep(0)
            waiter.cancel()
            with pytest.raises(asyncio.CancelledError):
                await waiter
        await pid_in_loop(pool)

    asyncio.run(cancelled())
    pool.close()


def test_a_place_freed_for_a_waiter_just_cancelled_is_not_lost(database_url: str) -> None:
    pool = make_pool(database_url, most=1)
    with pool.connection():
        turn = pool._ask()
        assert turn is not None
        turn.cancel()  # as an event loop does, before the waiting coroutine learns of it
    pool._give_up(turn)

    with pool.connection() as connection:
        assert pid_of(connection)

    pool.close()


@pytest.mark.parametrize("is_granted", [False, True], ids=["before its turn", "at its turn"])
def test_interrupted_waiter_leaves_its_place(
    database_url: str, monkeypatch: pytest.MonkeyPatch, is_granted: bool
) -> None:
    pool = make_pool(database_url, most=1, wait_s=0.05)
    holding = ExitStack()
    holding.enter_context(pool.connection())

    class Interrupted(Future[None]):
        """As when a time limit or Ctrl-C reaches the thread that waits."""

        def result(self, timeout: float | None = None) -> None:
            if is_granted:
                holding.close()
            raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(pool_module, "Future", Interrupted)
        with pytest.raises(KeyboardInterrupt), pool.connection():
            pass
    holding.close()

    with pool.connection() as connection:
        assert pid_of(connection)
    pool.close()


def test_many_callers_never_open_more_than_the_limit(database_url: str) -> None:
    pool = make_pool(database_url, kept=1, most=3, wait_s=30)
    seen: list[int] = []

    def work() -> None:
        for _ in range(5):
            with pool.connection() as connection:
                row = connection.execute(BACKENDS).fetchone()
                assert row is not None
                seen.append(row[0])
            asyncio.run(pid_in_loop(pool))

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert len(seen) == 40
    # A closed session is seen for a moment more, until its backend has ended.
    eventually(lambda: backends(database_url) <= 1, within=10)
    assert len(pool._idle) <= 1
    assert pool._free == 3
    pool.close()


def test_connection_lent_while_the_pool_closes_is_closed_when_it_comes_back(
    database_url: str,
) -> None:
    pool = make_pool(database_url)

    with pool.connection() as connection:
        pool.close()
        connection.execute("select 1")

    assert connection.closed
    with pool.connection() as another:
        assert not another.closed
    pool.close()


def test_connections_of_a_closed_loop_make_room(database_url: str) -> None:
    pool = make_pool(database_url, kept=2, most=2)
    for _ in range(5):
        asyncio.run(pid_in_loop(pool))

    assert len(pool._idle) == 1
    pool.close()


def test_connection_ended_by_the_server_is_not_lent_again(
    database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pool_module, "_FRESH_S", 0.0)
    pool = make_pool(database_url)
    with pool.connection() as connection:
        first = pid_of(connection)
    _terminate(database_url, first)

    with pool.connection() as connection:
        assert pid_of(connection) != first
    pool.close()


def test_without_pre_ping_a_kept_connection_is_lent_unseen(database_url: str) -> None:
    pool = make_pool(database_url, is_checked=False)
    with pool.connection() as connection:
        first = pid_of(connection)
    _terminate(database_url, first)

    with pool.connection() as connection, pytest.raises(psycopg.OperationalError):
        connection.execute("select 1")
    pool.close()


def _terminate(url: str, pid: int) -> None:
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("select pg_terminate_backend(%s, 5000)", [pid])


def test_forked_process_opens_its_own(database_url: str) -> None:
    pool = make_pool(database_url)
    with pool.connection() as connection:
        ours = pid_of(connection)

    child = os.fork()
    if child == 0:
        with pool.connection() as connection:
            os._exit(0 if pid_of(connection) != ours else 1)
    assert os.waitpid(child, 0)[1] == 0

    with pool.connection() as connection:
        assert pid_of(connection) == ours
        connection.execute("select 1")
    pool.close()


def test_echo_logs_every_statement(database_url: str, caplog: pytest.LogCaptureFixture) -> None:
    app = make_app(database_url, broker=PostgresConfig(database_url=database_url, echo=True))

    @app.task("noop")
    def noop() -> TaskResult[None, TaskError]:
        return TaskResult(ok=None)

    with caplog.at_level(logging.INFO, "horsies.sql"):
        good(noop.send())
        good(asyncio.run(noop.send_async()))
        good(noop.send_many([()] * 2_000))

    texts = [record.getMessage() for record in caplog.records if record.name == "horsies.sql"]
    assert sum(text.startswith("call horsies_send_task") for text in texts) == 2
    assert any(text.startswith("copy") for text in texts)
    app.get_broker().close()
