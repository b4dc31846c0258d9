"""Sending on the user's own connection: the task lives and dies with the user's transaction."""

import asyncio
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager, suppress
from typing import Any

import asyncpg
import psycopg
import pytest
from psycopg import Connection
from sqlalchemy import create_engine, text
from sqlalchemy.ext.asyncio import AsyncSession, create_async_engine
from sqlalchemy.orm import sessionmaker

from horsies import AppConfig, Horsies, PostgresConfig, TaskError, TaskResult, TaskSendErrorCode
from support.database import Database, connect
from support.eventually import eventually
from support.transactions import AWAITABLE, BLOCKING, alchemy_url


@pytest.fixture
def app(database_url: str) -> Iterator[Horsies]:
    app = make_app(database_url)
    yield app
    app.get_broker().close()


def make_app(database_url: str, **broker: Any) -> Horsies:
    app = Horsies(AppConfig(broker=PostgresConfig(database_url=database_url, **broker)))

    @app.task("greet")
    def greet(name: str) -> TaskResult[str, TaskError]:
        return TaskResult(ok=f"hello {name}")

    return app


BY_DRIVER = pytest.mark.parametrize("driver", BLOCKING)
BY_AWAITABLE_DRIVER = pytest.mark.parametrize("driver", AWAITABLE)


Lock = Callable[[], AbstractContextManager[None]]
END_BLOCKED = (
    "select pg_terminate_backend(pid) from pg_stat_activity "
    "where wait_event_type = 'Lock' and datname = current_database()"
)


def stored(app: Horsies, task_id: str) -> bool:
    return app.handle(task_id).info().unwrap() is not None


@pytest.fixture
def db(database_url: str) -> Iterator[Database]:
    database = connect(database_url)
    database.execute("create table orders (id integer)")
    yield database
    database.connection.close()


@pytest.fixture
def locked(database_url: str, db: Database) -> Lock:
    """The lock of another session that no send gets past."""

    @contextmanager
    def lock() -> Iterator[None]:
        with psycopg.connect(database_url) as connection:
            connection.execute("lock table horsies_tasks in exclusive mode")
            yield

    return lock


def execute(connection: Any, statement: str) -> Any:
    is_alchemy = type(connection).__module__.startswith("sqlalchemy")
    return connection.execute(text(statement) if is_alchemy else statement)


async def execute_async(connection: Any, statement: str) -> None:
    await execute(connection, statement)


def end_blocked(db: Database) -> bool:
    """End the session that waits for the lock."""
    return bool(eventually(lambda: db.execute(END_BLOCKED)))


def orders(database_url: str) -> list[int]:
    with psycopg.connect(database_url) as connection:
        return [row[0] for row in connection.execute("select id from orders order by id")]


@BY_DRIVER
def test_a_task_is_stored_when_its_transaction_commits(
    driver: str, app: Horsies, database_url: str
) -> None:
    with BLOCKING[driver](database_url) as (connection, commit, _):
        handle = app.tasks["greet"].with_options(connection=connection).send("Ann").unwrap()
        before = stored(app, handle.task_id)
        commit()

    assert (before, stored(app, handle.task_id), handle.created) == (False, True, True)


@BY_DRIVER
def test_a_task_vanishes_when_its_transaction_rolls_back(
    driver: str, app: Horsies, database_url: str
) -> None:
    with BLOCKING[driver](database_url) as (connection, _, rollback):
        handle = app.tasks["greet"].with_options(connection=connection).send("Ann").unwrap()
        rollback()

    assert not stored(app, handle.task_id)


@BY_AWAITABLE_DRIVER
async def test_an_awaited_send_is_stored_when_its_transaction_commits(
    driver: str, app: Horsies, database_url: str
) -> None:
    async with AWAITABLE[driver](database_url) as (connection, commit, _):
        sent = await app.tasks["greet"].with_options(connection=connection).send_async("Ann")
        before = stored(app, sent.unwrap().task_id)
        await commit()

    assert (before, stored(app, sent.unwrap().task_id)) == (False, True)


@BY_AWAITABLE_DRIVER
async def test_an_awaited_send_vanishes_when_its_transaction_rolls_back(
    driver: str, app: Horsies, database_url: str
) -> None:
    async with AWAITABLE[driver](database_url) as (connection, _, rollback):
        sent = await app.tasks["greet"].with_options(connection=connection).send_async("Ann")
        await rollback()

    assert not stored(app, sent.unwrap().task_id)


def test_many_sends_share_the_users_transaction(app: Horsies, database_url: str) -> None:
    with psycopg.connect(database_url) as connection:
        task = app.tasks["greet"].with_options(connection=connection)
        kept = task.send_many([("Ann",), {"name": "Bob"}]).unwrap()
        connection.commit()
        dropped = task.send_many([("Cid",)]).unwrap()
        connection.rollback()

    assert [stored(app, one.task_id) for one in [*kept, *dropped]] == [True, True, False]


def test_a_send_joins_the_users_own_writes(app: Horsies, database_url: str) -> None:
    with psycopg.connect(database_url) as connection:
        connection.execute("create table orders (id integer)")
        connection.commit()

        with connection.transaction(force_rollback=True):
            connection.execute("insert into orders values (1)")
            handle = app.tasks["greet"].with_options(connection=connection).send("Ann").unwrap()
        orders = connection.execute("select count(*) from orders").fetchone()

    assert orders == (0,)
    assert not stored(app, handle.task_id)


def test_a_unique_key_taken_in_a_transaction_is_free_after_its_rollback(
    app: Horsies, database_url: str
) -> None:
    with psycopg.connect(database_url) as connection:
        task = app.tasks["greet"].with_options(unique_key="k", connection=connection)
        first = task.send("Ann").unwrap()
        again = task.send("Ann").unwrap()
        other = task.send("Bob").unwrap_err()
        connection.rollback()
        later = app.tasks["greet"].with_options(unique_key="k").send("Bob").unwrap()

    assert (again.task_id, again.created) == (first.task_id, False)
    assert other.code is TaskSendErrorCode.PAYLOAD_MISMATCH
    assert later.created


def test_the_tables_schema_need_not_be_on_the_connections_search_path(
    empty_database_url: str,
) -> None:
    app = make_app(empty_database_url, schema="our jobs")
    with psycopg.connect(empty_database_url) as connection:
        handle = app.tasks["greet"].with_options(connection=connection).send("Ann").unwrap()
        connection.commit()
        row = connection.execute('select id from "our jobs".horsies_tasks').fetchone()
    app.get_broker().close()

    assert row == (handle.task_id,)


def test_the_default_schema_is_found_from_another_search_path(
    app: Horsies, database_url: str
) -> None:
    with psycopg.connect(database_url, options="-c search_path=pg_temp") as connection:
        handle = app.tasks["greet"].with_options(connection=connection).send("Ann").unwrap()
        connection.commit()

    assert stored(app, handle.task_id)


@pytest.mark.parametrize("cursor", [psycopg.Cursor, psycopg.ClientCursor, psycopg.RawCursor])
def test_row_and_cursor_factories_of_the_users_change_nothing(
    app: Horsies, database_url: str, cursor: Any
) -> None:
    factories = {"row_factory": psycopg.rows.dict_row, "cursor_factory": cursor}
    with Connection.connect(database_url, **factories) as connection:
        sent = app.tasks["greet"].with_options(connection=connection).send("Ann")

    assert stored(app, sent.unwrap().task_id)


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda url: object(), "builtins.object is not a PostgreSQL connection"),
        (lambda url: url, "builtins.str is not"),
        (lambda url: create_engine(alchemy_url(url, "psycopg")), "Engine is not"),
        (lambda url: sessionmaker(), "sessionmaker is not"),
        (asyncpg.create_pool, "Pool is not"),
        (
            lambda url: AsyncSession(create_async_engine(alchemy_url(url, "psycopg"))),
            "asynchronous SQLAlchemy connection; use send_async()",
        ),
    ],
    ids=["object", "url", "engine", "session maker", "pool", "awaitable session"],
)
async def test_what_carries_no_transaction_for_this_call_is_refused(
    make: Callable[[str], Any], said: str, app: Horsies, database_url: str
) -> None:
    connection = make(database_url)

    error = app.tasks["greet"].with_options(connection=connection).send("Ann").unwrap_err()

    assert error.code is TaskSendErrorCode.VALIDATION_FAILED
    assert said in error.message


async def test_an_awaited_send_refuses_a_blocking_connection(
    app: Horsies, database_url: str
) -> None:
    with psycopg.connect(database_url) as connection:
        sent = await app.tasks["greet"].with_options(connection=connection).send_async("Ann")

    assert sent.unwrap_err().code is TaskSendErrorCode.VALIDATION_FAILED
    assert "use send()" in sent.unwrap_err().message


def test_a_failed_transaction_of_the_users_is_a_failed_send(
    app: Horsies, database_url: str
) -> None:
    with psycopg.connect(database_url) as connection:
        with pytest.raises(psycopg.errors.UndefinedTable):
            connection.execute("select * from nowhere")
        error = app.tasks["greet"].with_options(connection=connection).send("Ann").unwrap_err()
        connection.rollback()

    assert error.code is TaskSendErrorCode.ENQUEUE_FAILED
    assert not error.retryable
    assert "transaction is aborted" in error.message


@BY_DRIVER
def test_a_failed_send_leaves_the_users_transaction_alive(
    driver: str, app: Horsies, database_url: str, locked: Lock
) -> None:
    with BLOCKING[driver](database_url) as (connection, commit, _):
        execute(connection, "insert into orders values (1)")
        execute(connection, "set local lock_timeout = '50ms'")
        with locked():
            error = app.tasks["greet"].with_options(connection=connection).send("Ann").unwrap_err()
        execute(connection, "insert into orders values (2)")
        later = app.tasks["greet"].with_options(connection=connection).send("Bob").unwrap()
        commit()

    assert error.code is TaskSendErrorCode.ENQUEUE_FAILED
    assert orders(database_url) == [1, 2]
    assert stored(app, later.task_id)


@BY_AWAITABLE_DRIVER
async def test_a_failed_awaited_send_leaves_the_users_transaction_alive(
    driver: str, app: Horsies, database_url: str, locked: Lock
) -> None:
    async with AWAITABLE[driver](database_url) as (connection, commit, _):
        await execute_async(connection, "insert into orders values (1)")
        await execute_async(connection, "set local lock_timeout = '50ms'")
        task = app.tasks["greet"].with_options(connection=connection)
        with locked():
            error = (await task.send_async("Ann")).unwrap_err()
        await execute_async(connection, "insert into orders values (2)")
        later = (await task.send_async("Bob")).unwrap()
        await commit()

    assert error.code is TaskSendErrorCode.ENQUEUE_FAILED
    assert orders(database_url) == [1, 2]
    assert stored(app, later.task_id)


@BY_DRIVER
def test_a_connection_lost_in_a_send_is_never_a_silent_rollback(
    driver: str, app: Horsies, database_url: str, db: Database, locked: Lock
) -> None:
    errors: list[Exception] = []
    with suppress(Exception), BLOCKING[driver](database_url) as (connection, commit, _):
        execute(connection, "insert into orders values (1)")
        with locked(), ThreadPoolExecutor() as threads:
            ending = threads.submit(end_blocked, db)
            try:
                app.tasks["greet"].with_options(connection=connection).send("Ann")
                commit()
            except Exception as error:  # each driver raises its own
                errors.append(error)
            assert ending.result(30)

    assert errors
    assert orders(database_url) == []


@BY_AWAITABLE_DRIVER
async def test_a_connection_lost_in_an_awaited_send_is_never_a_silent_rollback(
    driver: str, app: Horsies, database_url: str, db: Database, locked: Lock
) -> None:
    errors: list[Exception] = []
    with suppress(Exception):
        async with AWAITABLE[driver](database_url) as (connection, commit, _):
            await execute_async(connection, "insert into orders values (1)")
            with locked():
                ending = asyncio.create_task(asyncio.to_thread(end_blocked, db))
                try:
                    task = app.tasks["greet"].with_options(connection=connection)
                    await task.send_async("Ann")
                    await commit()
                except Exception as error:  # each driver raises its own
                    errors.append(error)
                assert await ending

    assert errors
    assert orders(database_url) == []


def test_a_failed_send_of_many_stores_none_of_them(
    app: Horsies, database_url: str, db: Database
) -> None:
    db.execute(
        "alter table horsies_tasks add constraint no_last check (kwargs is null or "
        "kwargs not like '%%1500%%')"
    )
    with psycopg.connect(database_url) as connection:
        execute(connection, "insert into orders values (1)")
        task = app.tasks["greet"].with_options(connection=connection)
        error = task.send_many([{"name": str(number)} for number in range(1_501)]).unwrap_err()
        connection.commit()

    assert error.code is TaskSendErrorCode.ENQUEUE_FAILED
    assert (orders(database_url), db.statuses()) == ([1], {})


def test_a_connection_in_autocommit_needs_no_transaction(
    app: Horsies, database_url: str, locked: Lock
) -> None:
    engine = create_engine(alchemy_url(database_url, "psycopg"), isolation_level="AUTOCOMMIT")
    with psycopg.connect(database_url, autocommit=True) as own, engine.connect() as alchemy:
        for connection in (own, alchemy):
            task = app.tasks["greet"].with_options(connection=connection)
            execute(connection, "set lock_timeout = '50ms'")
            with locked():
                assert task.send("Ann").is_err()
            assert stored(app, task.send("Bob").unwrap().task_id)
    engine.dispose()


def test_a_send_fits_into_the_users_own_pipeline(
    app: Horsies, database_url: str, locked: Lock
) -> None:
    with psycopg.connect(database_url) as connection:
        task = app.tasks["greet"].with_options(connection=connection)
        with connection.pipeline():
            execute(connection, "insert into orders values (1)")
            execute(connection, "set local lock_timeout = '50ms'")
            with locked():
                assert task.send("Ann").is_err()
            sent = task.send("Bob").unwrap()
            execute(connection, "insert into orders values (2)")
        connection.commit()

    assert orders(database_url) == [1, 2]
    assert stored(app, sent.task_id)


DJANGO = """
import sys
from urllib.parse import parse_qs, urlsplit
from django.conf import settings
parts = urlsplit(sys.argv[1])
where = {key: value[0] for key, value in parse_qs(parts.query).items()}
settings.configure(DATABASES={
    "default": {"ENGINE": "django.db.backends.postgresql", "NAME": parts.path[1:],
        "USER": parts.username or "", "PASSWORD": parts.password or "",
        "HOST": where.get("host") or parts.hostname, "PORT": where.get("port") or parts.port or ""},
    "other": {"ENGINE": "django.db.backends.sqlite3", "NAME": ":memory:"}})
import django
django.setup()
from django.db import connection, connections, transaction
from horsies import *
app = Horsies(AppConfig(broker=PostgresConfig(database_url=sys.argv[1])))
@app.task("greet")
def greet(name: str) -> TaskResult[str, TaskError]: ...
def stored(handle): return handle.info().unwrap() is not None
with transaction.atomic():
    kept = greet.with_options(connection=connection).send("Ann").unwrap()
    before = stored(kept)
with connection.cursor() as cursor:
    cursor.execute("create table orders (id integer)")
    cursor.execute("alter table horsies_tasks add constraint no_bob check (args not like '%Bob%')")
with transaction.atomic():
    with connection.cursor() as cursor:
        cursor.execute("insert into orders values (1)")
    failed = greet.with_options(connection=connection).send("Bob").unwrap_err()
with connection.cursor() as cursor:
    cursor.execute("select count(*) from orders")
    order_count = cursor.fetchone()[0]
with transaction.atomic():
    dropped = greet.with_options(connection=connections["default"]).send("Ann").unwrap()
    transaction.set_rollback(True)
refused = greet.with_options(connection=connections["other"]).send("Ann").unwrap_err()
print(before, stored(kept), stored(dropped), refused.code.value, failed.code.value, order_count)
"""


def test_a_django_connection_carries_the_send(database_url: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", DJANGO, database_url], capture_output=True, text=True, check=False
    )

    said = ["False", "True", "False", "VALIDATION_FAILED", "ENQUEUE_FAILED", "1"]
    assert done.stdout.split() == said, done.stderr
