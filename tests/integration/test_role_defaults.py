"""Whatever a role's or a database's defaults are: sends, runs and results are the same."""

from collections.abc import Callable
from typing import Any

import psycopg
import pytest
from psycopg import sql

from horsies import Horsies
from horsies.config import PostgresConfig
from horsies.errors import ConfigurationError
from horsies.result import TaskError, TaskResult
from support.apps import good, make_app, working
from support.cluster import Server

NewApp = Callable[..., Horsies]

DEFAULTS = [
    ("default_transaction_isolation", "serializable"),
    ("default_transaction_isolation", "repeatable read"),
    ("statement_timeout", "1ms"),
    ("lock_timeout", "1ms"),
    ("idle_in_transaction_session_timeout", "1ms"),
    ("idle_session_timeout", "100ms"),
    ("timezone", "Asia/Kathmandu"),
    ("datestyle", "German"),
    ("datestyle", "SQL, DMY"),
    ("intervalstyle", "sql_standard"),
    ("array_nulls", "off"),
    ("standard_conforming_strings", "off"),
    ("extra_float_digits", "-15"),
    ("bytea_output", "escape"),
    ("enable_indexscan", "off"),
    ("row_security", "off"),
    ("client_encoding", "LATIN1"),
    ("default_transaction_deferrable", "on"),
    ("jit_above_cost", "0"),
]


@pytest.fixture
def with_default(server: Server, database_url: str) -> Callable[[str, str], None]:
    """Change a default of the test's database."""

    def change(setting: str, value: str) -> None:
        name = psycopg.conninfo.conninfo_to_dict(database_url)["dbname"]
        statement = sql.SQL("alter database {} set {} = {}").format(
            sql.Identifier(str(name)), sql.Identifier(setting), sql.Literal(value)
        )
        with psycopg.connect(server.url, autocommit=True) as connection:
            connection.execute(statement)

    return change


@pytest.mark.parametrize(("setting", "value"), DEFAULTS)
async def test_everything_works_under_any_default(
    new_app: NewApp, with_default: Callable[[str, str], None], setting: str, value: str
) -> None:
    with_default(setting, value)

    assert await sent_and_run(new_app()) == SENT


SENT = ["naïve \\ 'ü' 🐎"] * 3 + ["a", "b", "c"]


async def sent_and_run(app: Horsies) -> list[str]:
    """What comes back of what was sent in every way."""

    @app.task("echo")
    async def echo(text: str) -> TaskResult[str, TaskError]:
        return TaskResult(ok=text)

    good(await app.get_broker().ensure_schema_initialized())
    async with working(app):
        handles = [good(await echo.send_async(text)) for text in SENT[:3]]
        handles += good(await echo.send_many_async([("a",), ("b",)]))
        keyed = good(await echo.with_options(unique_key="k", tags=["t"]).send_async("c"))
        results = [await handle.get_async(10_000) for handle in (*handles, keyed)]

    return [result.ok_value for result in results]


@pytest.mark.parametrize(
    ("setting", "value"),
    [
        ("datestyle", "German"),
        ("intervalstyle", "iso_8601"),
        ("default_transaction_isolation", "serializable"),
        ("array_nulls", "off"),
    ],
)
def test_behind_a_pooler_the_start_says_what_it_cannot_work_with(
    database_url: str, with_default: Callable[[str, str], None], setting: str, value: str
) -> None:
    """There our sessions cannot set anything: they are not ours alone."""
    with_default(setting, value)
    broker = PostgresConfig(database_url=database_url, pgbouncer_transaction_mode=True)
    app = make_app(database_url, broker=broker)

    with pytest.raises(ConfigurationError, match=setting) as caught:
        app.get_broker().database.ensure_schema()

    assert "alter role" in str(caught.value.help_text)
    app.get_broker().close()


def test_a_database_that_checks_no_texts_is_refused(server: Server) -> None:
    name = "horsies_test_sql_ascii"
    with psycopg.connect(server.url, autocommit=True) as connection:
        connection.execute(f"drop database if exists {name}".encode())
        statement = f"create database {name} encoding 'SQL_ASCII' locale 'C' template template0"
        connection.execute(statement.encode())
    app = make_app(server.database_url(name))
    try:
        with pytest.raises(ConfigurationError, match="SQL_ASCII"):
            app.get_broker().database.ensure_schema()
    finally:
        app.get_broker().close()
        server.drop_database(name)


async def test_tables_in_a_named_schema_need_no_search_path(
    new_app: NewApp, with_default: Callable[[str, str], None], database_url: str
) -> None:
    with_default("search_path", "elsewhere")

    app = new_app(broker=PostgresConfig(database_url=database_url, schema="jobs"))

    assert await sent_and_run(app) == SENT


def test_search_path_without_a_schema_is_told_at_start(
    database_url: str, with_default: Callable[[str, str], None]
) -> None:
    with_default("search_path", "elsewhere")
    app = make_app(database_url)

    with pytest.raises(ConfigurationError, match="search_path"):
        app.get_broker().database.ensure_schema()

    app.get_broker().close()


async def test_search_path_may_lead_elsewhere(
    new_app: NewApp, with_default: Callable[[str, str], None], database_url: str
) -> None:
    """Functions and triggers know their own schema."""
    app = new_app()
    await app.get_broker().ensure_schema_initialized()

    with psycopg.connect(database_url, autocommit=True) as connection:
        connection.execute("create schema elsewhere")
        connection.execute("set search_path = elsewhere")
        connection.execute(
            "insert into public.horsies_tasks (id, task_name, queue_name, enqueue_sha) "
            "values ('by-hand', 'x', 'default', 'x')"
        )
        connection.execute("update public.horsies_tasks set status = 'CANCELLED'")
        found: Any = connection.execute("select status from public.horsies_tasks").fetchone()

    assert found == ("CANCELLED",)
