"""Databases as they are found: each works from its first migration on, or is refused by name."""

import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import psycopg
import pytest
from psycopg import sql

from horsies import Horsies, RetryPolicy, TaskError, TaskResult
from horsies.config import PostgresConfig
from support.apps import bad, good, make_app, working
from support.cluster import Server
from support.urls import changed

ENCODINGS = ["LATIN1", "LATIN9", "WIN1252", "EUC_JP", "KOI8R"]
WORKING: dict[str, dict[str, str]] = {
    **{encoding: {"encoding": encoding} for encoding in ENCODINGS},
    "standard_conforming_strings": {"standard_conforming_strings": "off"},
    "plpgsql.extra_errors": {"plpgsql.extra_errors": "all"},
    "plpgsql.variable_conflict": {"plpgsql.variable_conflict": "use_column"},
    "search_path": {"search_path": '"$user", public, pg_temp'},
}
MESSAGE = "\\u0000 \\ 'c'"
HORSE = "\N{HORSE}"  # in none of these encodings


@contextmanager
def found(server: Server, settings: dict[str, str]) -> Iterator[str]:
    """A database without our tables, with these defaults for its sessions."""
    name = f"horsies_test_{uuid.uuid4().hex[:12]}"
    owner = f'owner "{server.owner}"' if server.owner else ""
    encoding = settings.get("encoding", "UTF8")
    with psycopg.connect(server.url, autocommit=True) as connection:
        connection.execute(
            f"create database {name} {owner} encoding '{encoding}' locale 'C' template template0"
        )
        for setting, value in settings.items():
            if setting != "encoding":
                given = sql.SQL(value) if setting == "search_path" else sql.Literal(value)
                change = sql.SQL(f"alter database {name} set {setting} = ") + given
                connection.execute(change)
    try:
        yield server.database_url(name)
    finally:
        server.drop_database(name)


def make_tasks(app: Horsies) -> None:
    @app.task("echo")
    async def echo(text: str) -> TaskResult[str, TaskError]:
        return TaskResult(ok=text)

    policy = RetryPolicy.fixed([1], auto_retry_for=["BROKEN"], jitter=False)

    @app.task("broken", retry_policy=policy)
    async def broken() -> TaskResult[int, TaskError]:
        return TaskResult(err=TaskError(error_code="BROKEN", message=MESSAGE))

    @app.task("odd", execution="blocking")
    def odd(*, raises: bool) -> TaskResult[str, TaskError]:
        if raises:
            raise ValueError(HORSE)
        return TaskResult(ok=HORSE)


def pair(app: Horsies) -> Any:
    first = app.tasks["echo"].node(node_id="first")(text="a")
    last = app.tasks["echo"].node(node_id="last", waits_for=[first])(text="b")
    return app.workflow("pair", [first, last], definition_key="found.pair")


@pytest.mark.parametrize("name", WORKING)
async def test_everything_works_in_a_database_as_it_is_found(server: Server, name: str) -> None:
    with found(server, WORKING[name]) as url:
        app = make_app(url)
        make_tasks(app)

        good(await app.get_broker().ensure_schema_initialized())
        async with working(app):
            texts = ["plain", "\\'; -- \\", "%s {} $1"]
            handles = [good(await app.tasks["echo"].send_async(text)) for text in texts]
            handles += good(app.tasks["echo"].send_many([(str(n),) for n in range(60)]))
            results = [(await handle.get_async(20_000)).unwrap() for handle in handles]
            flow = await good(pair(app).start()).get_async(20_000)
            broken = good(app.tasks["broken"].send())
            error = (await broken.get_async(20_000)).unwrap_err()

        good(app.get_broker().requeue_task_sync(broken.task_id))
        with psycopg.connect(url) as connection:
            row = connection.execute(
                "select max_retries from horsies_tasks where id = %s", [broken.task_id]
            ).fetchone()
        await app.get_broker().close_async()

    assert results == texts + [str(n) for n in range(60)]
    assert flow.is_ok()
    assert error.message == MESSAGE
    assert row == (3,)  # two attempts, and one more retry of its policy


@pytest.mark.parametrize("encoding", ENCODINGS)
async def test_text_that_the_encoding_lacks_costs_its_own_task(
    server: Server, encoding: str
) -> None:
    with found(server, {"encoding": encoding}) as url:
        app = make_app(url)
        make_tasks(app)

        sends = [
            bad(app.tasks["echo"].send(HORSE)),
            bad(await app.tasks["echo"].send_async(HORSE)),
            bad(app.tasks["echo"].send_many([(HORSE,)] * 60)),
        ]
        async with working(app):
            odd = [good(app.tasks["odd"].send(raises=raises)) for raises in (False, True)]
            errors = [(await handle.get_async(20_000)).unwrap_err() for handle in odd]
            plain = await good(app.tasks["echo"].send("plain")).get_async(20_000)
        await app.get_broker().close_async()

    assert all(f'encoding "{encoding}"' in str(error) for error in sends)
    assert not any(error.retryable for error in sends)
    assert [error.error_code for error in errors] == ["WORKER_SERIALIZATION_ERROR"] * 2
    assert plain.ok_value == "plain"


FOREIGN = {
    "view": "create view horsies_tasks as select 1 as id",
    "table": "create table horsies_tasks (id integer)",
    "foreign table": "create foreign data wrapper w; create server s foreign data wrapper w; "
    "create foreign table horsies_tasks (id text) server s",
}


@pytest.mark.parametrize("kind", FOREIGN)
def test_relation_of_others_with_our_name_is_refused(server: Server, kind: str) -> None:
    with found(server, {}) as url:
        with psycopg.connect(changed(server.url, database=name_of(url))) as connection:
            connection.execute(FOREIGN[kind])
        apps = [
            make_app(url, broker=PostgresConfig(database_url=url, schema=schema))
            for schema in (None, "jobs")
        ]
        for app in apps:
            make_tasks(app)

        refused = bad(apps[0].tasks["echo"].send("a"))
        good(apps[1].tasks["echo"].send("a"))
        for app in apps:
            app.get_broker().close()

    assert f"schema 'public' has a {kind} named 'horsies_tasks' that is not ours" in str(refused)
    assert not refused.retryable


@pytest.mark.parametrize("search_path", ["pg_temp", '"$user", pg_temp, public'])
def test_search_path_that_begins_with_pg_temp_is_refused(server: Server, search_path: str) -> None:
    with found(server, {"search_path": search_path}) as url:
        apps = [
            make_app(url, broker=PostgresConfig(database_url=url, schema=schema))
            for schema in (None, "public")
        ]
        for app in apps:
            make_tasks(app)

        refused = bad(apps[0].tasks["echo"].send("a"))
        good(apps[1].tasks["echo"].send("a"))
        for app in apps:
            app.get_broker().close()

    assert "the search_path of this database begins with pg_temp" in str(refused)
    assert not refused.retryable


def name_of(url: str) -> str:
    return str(psycopg.conninfo.conninfo_to_dict(url)["dbname"])
