"""Starts and events in the user's own transaction: they appear with its commit, or not at all."""

import subprocess
import sys
from collections.abc import Callable
from typing import Any

import psycopg
import pytest
from psycopg import AsyncConnection
from sqlalchemy import text
from sqlalchemy.exc import SQLAlchemyError

from horsies import Horsies, TaskError, TaskResult, WorkflowStartErrorCode
from support.apps import bad, good, working
from support.database import Database
from support.transactions import AWAITABLE, BLOCKING

NewApp = Callable[..., Horsies]


@pytest.fixture
def app(new_app: NewApp) -> Horsies:
    app = new_app()
    app.event("paid", int)

    @app.task("ship")
    async def ship(amount: TaskResult[int, TaskError]) -> TaskResult[int, TaskError]:
        return TaskResult(ok=amount.unwrap())

    return app


def shipping(app: Horsies) -> Any:
    payment: Any = app.events.by_name["paid"].node(key="42", node_id="payment")
    ship = app.tasks["ship"].node(
        node_id="ship", args_from={"amount": payment}, waits_for=[payment]
    )
    return app.workflow("shipping", [payment, ship()], output=None, definition_key="own.shipping")


def events(db: Database) -> list[str]:
    return [row["payload"] for row in db.execute("select payload from horsies_events")]


@pytest.mark.parametrize("end", ["commit", "rollback"])
@pytest.mark.parametrize("driver", ["psycopg", "SQLAlchemy connection", "SQLAlchemy session"])
def test_event_appears_with_the_users_commit(
    app: Horsies, db: Database, database_url: str, driver: str, end: str
) -> None:
    with BLOCKING[driver](database_url) as begun:
        good(app.send_event("paid", "42", 5, connection=begun.connection))
        before = events(db)
        getattr(begun, end)()

    assert before == []
    assert events(db) == (["5"] if end == "commit" else [])


@pytest.mark.parametrize("end", ["commit", "rollback"])
@pytest.mark.parametrize("driver", ["psycopg", "asyncpg", "SQLAlchemy session, asyncpg"])
async def test_event_sent_awaitably_appears_with_the_users_commit(
    app: Horsies, db: Database, database_url: str, driver: str, end: str
) -> None:
    async with AWAITABLE[driver](database_url) as begun:
        good(await app.send_event_async("paid", "42", 5, connection=begun.connection))
        before = events(db)
        await getattr(begun, end)()

    assert before == []
    assert events(db) == (["5"] if end == "commit" else [])


async def test_waiting_node_goes_on_with_the_commit_and_not_before(
    app: Horsies, database_url: str
) -> None:
    async with working(app), await AsyncConnection.connect(database_url) as connection:
        handle = good(await shipping(app).start_async())
        good(await app.send_event_async("paid", "42", 5, connection=connection))
        early = await handle.get_async(300)
        await connection.commit()
        late = await handle.get_async(10_000)

    assert early.err_value.error_code == "WAIT_TIMEOUT"
    assert late.unwrap()["ship"].unwrap() == 5


@pytest.mark.parametrize("driver", ["psycopg", "SQLAlchemy connection"])
def test_failed_transaction_of_the_users_is_a_failed_start_and_a_failed_event(
    app: Horsies, database_url: str, driver: str
) -> None:
    with BLOCKING[driver](database_url) as (connection, *_):
        with pytest.raises((psycopg.Error, SQLAlchemyError)):
            connection.execute("selec" if driver == "psycopg" else text("selec"))
        start = bad(shipping(app).start(connection=connection))
        event = bad(app.send_event("paid", "42", 5, connection=connection))

    assert (start.code, start.retryable) == (WorkflowStartErrorCode.ENQUEUE_FAILED, False)
    assert "transaction is aborted" in start.message
    assert (event.code.value, event.retryable) == ("ENQUEUE_FAILED", False)


@pytest.mark.parametrize("driver", ["psycopg", "SQLAlchemy session"])
def test_failed_start_and_event_leave_the_users_transaction_alive(
    app: Horsies, db: Database, database_url: str, driver: str
) -> None:
    run = (lambda sql: sql) if driver == "psycopg" else text
    db.execute("create table orders (id integer)")
    with BLOCKING[driver](database_url) as (connection, commit, _):
        connection.execute(run("insert into orders values (1)"))
        connection.execute(run("set local lock_timeout = '50ms'"))
        with db.connection.transaction():
            db.execute("lock table horsies_workflows, horsies_events in exclusive mode")
            start = bad(shipping(app).start(connection=connection))
            event = bad(app.send_event("paid", "42", 5, connection=connection))
        kept = good(shipping(app).start(connection=connection))
        commit()

    assert (start.code.value, event.code.value) == ("ENQUEUE_FAILED", "ENQUEUE_FAILED")
    assert (db.value("select count(*) from orders"), events(db)) == (1, [])
    assert kept.status().is_ok()


async def test_failed_awaited_start_leaves_the_users_transaction_alive(
    app: Horsies, db: Database, database_url: str
) -> None:
    db.execute("create table orders (id integer)")
    async with AWAITABLE["asyncpg"](database_url) as (connection, commit, _):
        await connection.execute("insert into orders values (1)")
        await connection.execute("set local lock_timeout = '50ms'")
        with db.connection.transaction():
            db.execute("lock table horsies_workflows, horsies_events in exclusive mode")
            bad(await shipping(app).start_async(connection=connection))
            bad(await app.send_event_async("paid", "42", 5, connection=connection))
        kept = good(await shipping(app).start_async(connection=connection))
        await commit()

    assert db.value("select count(*) from orders") == 1
    assert kept.status().is_ok()


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
paid = app.event("paid", int)
@app.task("greet")
def greet(name: str) -> TaskResult[str, TaskError]: ...
spec = app.workflow("greeting", [greet.node(node_id="greet")(name="Ann"),
    paid.node(key="1", node_id="paid")], definition_key="own.greeting")
def stored(handle): return handle.status().is_ok()
def event_count():
    with connection.cursor() as cursor:
        cursor.execute("select count(*) from horsies_events")
        return cursor.fetchone()[0]
with transaction.atomic():
    kept = spec.start(connection=connection).unwrap()
    app.send_event("paid", "1", 5, connection=connection).unwrap()
    before = stored(kept)
with transaction.atomic():
    dropped = spec.start(connection=connections["default"]).unwrap()
    app.send_event("paid", "2", 5, connection=connection).unwrap()
    transaction.set_rollback(True)
with transaction.atomic():
    many = app.start_many([spec] * 3, connection=connection).unwrap()
refused = spec.start(connection=connections["other"]).unwrap_err()
are_stored = all(map(stored, many))
print(before, stored(kept), stored(dropped), event_count(), are_stored, refused.code.value)
"""


def test_django_connection_carries_starts_and_events(database_url: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", DJANGO, database_url], capture_output=True, text=True, check=False
    )

    found = done.stdout.split()
    assert found == ["False", "True", "False", "1", "True", "VALIDATION_FAILED"], done.stderr
