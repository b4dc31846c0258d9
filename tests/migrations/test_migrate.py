"""Creating and upgrading the tables: once, from anywhere, without losing anything."""

import subprocess
import sys
import threading
from typing import Any

import psycopg
import pytest

from horsies import Horsies
from horsies.codes import BrokerErrorCode
from horsies.config import AppConfig, PostgresConfig
from horsies.database.migrate import (
    FUNCTIONS_VERSION,
    MigrationBlockedError,
    build_indexes,
    migrate,
    migration_sql,
    missing_indexes,
    pending,
    pending_sql,
)
from horsies.database.sql_files import functions_sql, migrations, query
from horsies.errors import ConfigurationError
from horsies.result import TaskError, TaskResult
from support.apps import bad, good, working
from support.database import Database, connect
from support.urls import changed

# One interpreter that has imported everything forks the rest: all begin at the same instant.
MIGRATE_AT_ONCE = """
import multiprocessing, sys, psycopg
from horsies.database.migrate import migrate

def create(barrier):
    with psycopg.connect(sys.argv[1]) as connection:
        barrier.wait(30)
        migrate(connection)

context = multiprocessing.get_context("fork")
barrier = context.Barrier(20)
processes = [context.Process(target=create, args=[barrier]) for _ in range(20)]
for process in processes:
    process.start()
for process in processes:
    process.join()
sys.exit(max(abs(process.exitcode) for process in processes))
"""
CATALOG = {
    "columns": """
        select c.relname, a.attname, format_type(a.atttypid, a.atttypmod), a.attnotnull,
            pg_get_expr(d.adbin, d.adrelid)
        from pg_attribute a join pg_class c on c.oid = a.attrelid and c.relkind = 'r'
        left join pg_attrdef d on d.adrelid = a.attrelid and d.adnum = a.attnum
        where c.relnamespace = 'public'::regnamespace and a.attnum > 0 order by 1, 2
    """,
    "constraints": """
        select conrelid::regclass::text, pg_get_constraintdef(oid) from pg_constraint
        where connamespace = 'public'::regnamespace order by 1, 2
    """,
    "indexes": "select indexdef from pg_indexes where schemaname = 'public' order by 1",
    "triggers": "select pg_get_triggerdef(oid) from pg_trigger where not tgisinternal order by 1",
    "functions": """
        select pg_get_functiondef(oid) from pg_proc
        where pronamespace = 'public'::regnamespace order by 1
    """,
    "versions": "select version, name from horsies_schema_version order by 1",
}


def catalog(url: str) -> dict[str, list[Any]]:
    with psycopg.connect(url) as connection:
        return {
            name: connection.execute(statement.encode()).fetchall()
            for name, statement in CATALOG.items()
        }


def apply_first(connection: psycopg.Connection[Any], count: int) -> None:
    """The tables of an earlier release."""
    connection.execute(query("database", "create_version_table").encode())
    connection.execute(functions_sql().encode())
    for migration in migrations()[:count]:
        connection.execute(migration.sql.encode())
        connection.execute(
            query("database", "record_version").encode(),
            {"version": migration.version, "name": migration.name},
        )


@pytest.mark.seed("S136", "S137")
def test_twenty_processes_create_the_schema_at_once(
    empty_database_url: str, database_url: str
) -> None:
    done = subprocess.run(
        [sys.executable, "-c", MIGRATE_AT_ONCE, empty_database_url],
        capture_output=True,
        check=False,
        text=True,
        timeout=60,
    )

    assert (done.returncode, done.stderr) == (0, "")
    assert catalog(empty_database_url) == catalog(database_url)


@pytest.mark.seed("S136")
def test_second_run_changes_nothing(database_url: str) -> None:
    db = connect(database_url)
    task_id = db.insert()
    before = (db.task(task_id), db.execute("select * from horsies_schema_version"))

    with psycopg.connect(database_url) as connection:
        applied = migrate(connection)

    after = (db.task(task_id), db.execute("select * from horsies_schema_version"))
    db.connection.close()
    assert applied == []
    assert after == before


@pytest.mark.seed("S137")
def test_creators_wait_for_each_other(empty_database_url: str) -> None:
    observer = connect(empty_database_url)
    applied: list[list[str]] = []
    waiter = psycopg.connect(empty_database_url)

    def create() -> None:
        applied.append(migrate(waiter))

    with psycopg.connect(empty_database_url) as first:
        first.execute(query("database", "lock_schema").encode(), {"schema": "public"})
        thread = threading.Thread(target=create)
        thread.start()
        observer.wait_until_blocked(waiter.info.backend_pid)
        assert applied == []
    thread.join(timeout=20)
    waiter.close()
    observer.connection.close()

    assert applied[0][0] == "functions"


@pytest.mark.parametrize("count", [1, 2])
def test_database_of_an_earlier_release_becomes_as_a_fresh_one(
    empty_database_url: str, database_url: str, count: int
) -> None:
    with psycopg.connect(empty_database_url) as connection:
        apply_first(connection, count)
        Database(connection).insert(id="kept")
    with psycopg.connect(empty_database_url) as connection:
        missing = pending(connection)
        applied = migrate(connection)

    assert applied == missing != []
    assert catalog(empty_database_url) == catalog(database_url)
    kept = connect(empty_database_url)
    assert kept.status("kept") == "PENDING"
    kept.connection.close()


def test_printed_sql_leaves_nothing_to_do(empty_database_url: str, database_url: str) -> None:
    with psycopg.connect(empty_database_url, autocommit=True) as connection:
        connection.execute(migration_sql().encode())

    with psycopg.connect(empty_database_url) as connection:
        assert pending(connection) == []
    assert catalog(empty_database_url) == catalog(database_url)


def make_app(url: str, **broker: Any) -> Horsies:
    app = Horsies(AppConfig(broker=PostgresConfig(database_url=url, **broker)))

    @app.task("add")
    async def add(a: int, b: int) -> TaskResult[int, TaskError]:
        return TaskResult(ok=a + b)

    return app


async def test_newer_schema_is_refused(database_url: str) -> None:
    with psycopg.connect(database_url) as connection:
        connection.execute(
            "update horsies_schema_version set name = '99:50:from-the-future' where version = 0"
        )
    app = make_app(database_url)

    with psycopg.connect(database_url) as connection, pytest.raises(ConfigurationError) as refused:
        migrate(connection)
    error = bad(await app.get_broker().ensure_schema_initialized())
    send = bad(app.tasks["add"].send(1, 2))
    await app.get_broker().close_async()

    assert "newer" in str(refused.value)
    assert (error.code, error.retryable) == (BrokerErrorCode.SCHEMA_INIT_FAILED, False)
    assert send.retryable is False


async def test_release_before_works_on_and_changes_nothing(database_url: str) -> None:
    """The next release has migrated; its functions serve ours, and ours are not put back."""
    with psycopg.connect(database_url) as connection:
        connection.execute("insert into horsies_schema_version values (9999, 'of_the_next')")
        connection.execute(
            f"update horsies_schema_version set name = '{FUNCTIONS_VERSION + 1}:"
            f"{FUNCTIONS_VERSION}:other' where version = 0"
        )
    before = catalog(database_url)
    app = make_app(database_url)

    async with working(app):
        result = await good(await app.tasks["add"].send_async(1, 2)).get_async(10_000)
    await app.get_broker().close_async()

    assert result.ok_value == 3
    assert catalog(database_url) == before
    with psycopg.connect(database_url) as connection:
        stored = connection.execute(
            "select name from horsies_schema_version where version = 0"
        ).fetchone()
    assert stored == (f"{FUNCTIONS_VERSION + 1}:{FUNCTIONS_VERSION}:other",)


@pytest.mark.parametrize("known", ["0123456789abcdef", "1:1:0123456789abcdef", None])
def test_functions_of_the_release_before_are_replaced(
    empty_database_url: str, database_url: str, known: str | None
) -> None:
    """Also when parameters or the returned columns have changed meanwhile."""
    with psycopg.connect(empty_database_url) as connection:
        migrate(connection)
        connection.execute("drop function horsies_next_due")
        connection.execute(
            "create function horsies_next_due(queues text[]) returns text "
            "language sql as 'select 1::text'"
        )
        connection.execute(
            "create function horsies_forgotten(a integer) returns void language sql as ''"
        )
        connection.execute(
            "delete from horsies_schema_version where version = 0"
            if known is None
            else f"update horsies_schema_version set name = '{known}' where version = 0"
        )
    with psycopg.connect(empty_database_url) as connection:
        assert migrate(connection) == ["functions"]

    assert catalog(empty_database_url) == catalog(database_url)


def test_migration_names_who_stands_in_its_way(empty_database_url: str) -> None:
    with psycopg.connect(empty_database_url) as connection:
        migrate(connection)
        connection.execute("delete from horsies_schema_version where version = 5")
    with (
        psycopg.connect(empty_database_url, application_name="a report") as reader,
        psycopg.connect(empty_database_url) as connection,
    ):
        reader.execute("select count(*) from horsies_heartbeats")

        with pytest.raises(MigrationBlockedError) as blocked:
            migrate(connection, patience_s=0)

        assert f"pid {reader.info.backend_pid} (a report, idle in transaction" in str(blocked.value)
        assert "horsies_heartbeats" in str(blocked.value)
        reader.rollback()
        assert migrate(connection) == ["0005_hosts_and_wide_ids"]


async def test_migration_that_hangs_keeps_nobody_waiting_for_ever(empty_database_url: str) -> None:
    app = make_app(empty_database_url)
    with psycopg.connect(empty_database_url, application_name="a migration") as other:
        other.execute(query("database", "lock_schema").encode(), {"schema": "public"})

        error = bad(await app.get_broker().ensure_schema_initialized())

        assert f"pid {other.info.backend_pid} (a migration, idle in transaction" in error.message
        assert "the lock of another migration" in error.message
    good(await app.get_broker().ensure_schema_initialized())
    await app.get_broker().close_async()


def test_sql_of_what_is_missing_can_be_run_by_hand(
    empty_database_url: str, database_url: str
) -> None:
    with psycopg.connect(empty_database_url) as connection:
        migrate(connection)
        connection.execute("delete from horsies_schema_version where version in (0, 5)")
    with psycopg.connect(empty_database_url, autocommit=True) as connection:
        script = pending_sql(connection)
        connection.execute(script.encode())
        assert pending(connection) == []
        assert pending_sql(connection).startswith("-- nothing to do")

    assert "create table if not exists horsies_tasks" not in script
    assert catalog(empty_database_url) == catalog(database_url)


@pytest.mark.seed("S136")
async def test_first_send_creates_the_tables(empty_database_url: str) -> None:
    app = make_app(empty_database_url)

    handle = good(await app.tasks["add"].send_async(1, 2))
    await app.get_broker().close_async()

    db = connect(empty_database_url)
    assert db.status(handle.task_id) == "PENDING"
    db.connection.close()


async def test_new_database_is_set_up_with_one_line_in_the_log(
    empty_database_url: str, caplog: pytest.LogCaptureFixture
) -> None:
    app = make_app(empty_database_url)

    with caplog.at_level("INFO", logger="horsies.database"):
        for _ in range(2):
            good(await app.get_broker().ensure_schema_initialized())
    await app.get_broker().close_async()

    (said,) = [one.getMessage() for one in caplog.records if one.name == "horsies.database"]
    assert said.startswith("created the tables: functions, 0001_tasks, ")


OLDER = {
    "tables": "delete from horsies_schema_version where version = 8",
    "functions": "update horsies_schema_version set name = '1:1:older' where version = 0",
}


@pytest.mark.parametrize("what", OLDER)
def test_existing_schema_is_migrated_only_when_asked(database_url: str, what: str) -> None:
    missing = {"tables": "0008_permits", "functions": "functions"}[what]
    app = make_app(database_url)
    with psycopg.connect(database_url, autocommit=True) as connection:
        connection.execute(OLDER[what].encode())

        error = bad(app.tasks["add"].send(1, 2))

        assert pending(connection) == [missing]
        assert not error.retryable
        assert "older than this horsies" in error.message
        assert "run `horsies migrate MODULE`" in error.message
        migrate(connection)
    good(app.tasks["add"].send(1, 2))
    app.get_broker().close()


@pytest.mark.parametrize("what", OLDER)
def test_auto_migrate_upgrades_at_the_first_use(
    database_url: str, what: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HORSIES_BROKER__AUTO_MIGRATE", "1")
    app = Horsies(database_url)
    with psycopg.connect(database_url, autocommit=True) as connection:
        connection.execute(OLDER[what].encode())

        app.get_broker().database.ensure_schema()

        assert pending(connection) == []
    app.get_broker().close()


@pytest.mark.parametrize("schema", ["jobs", 'odd "name"'])
async def test_tables_may_live_in_another_schema(empty_database_url: str, schema: str) -> None:
    app = make_app(empty_database_url, schema=schema)

    handle = good(await app.tasks["add"].send_async(1, 2))
    async with working(app):
        result = await handle.get_async(15_000)
    await app.get_broker().close_async()

    with psycopg.connect(empty_database_url) as connection:
        schemas = connection.execute(
            "select distinct schemaname from pg_tables where tablename like 'horsies%'"
        ).fetchall()
    assert result.ok_value == 3
    assert schemas == [(schema,)]


async def test_current_schema_needs_no_right_to_create(server_url: str, database_url: str) -> None:
    db = connect(database_url)
    name = db.value("select current_database()")
    role = f"plain_{name}"
    with psycopg.connect(server_url, autocommit=True) as admin:
        admin.execute(f'create role "{role}" login')
    try:
        db.execute(f'grant select on horsies_schema_version to "{role}"')
        with psycopg.connect(changed(database_url, user=role)) as connection:
            assert connection.info.user == role
            assert migrate(connection) == []
        db.execute(f'revoke all on horsies_schema_version from "{role}"')
    finally:
        db.connection.close()
        with psycopg.connect(server_url, autocommit=True) as admin:
            admin.execute(f'drop role "{role}"')


@pytest.mark.parametrize(
    "index", ["horsies_task_attempts_finished_at_brin", "horsies_tasks_other_ids_idx"]
)
def test_index_of_a_large_table_is_left_for_the_command(database_url: str, index: str) -> None:
    """A worker that starts must not build it, nor wait for it; an unfinished build is repeated."""
    indexdef = f"select indexdef from pg_indexes where indexname = '{index}'".encode()
    with psycopg.connect(database_url, autocommit=True) as connection:
        as_migrated = connection.execute(indexdef).fetchone()
        connection.execute(f"drop index {index}".encode())
        (drop, create) = missing_indexes(connection)
        assert pending(connection) == []
        assert "concurrently" in create
        assert create in pending_sql(connection)
        with psycopg.connect(database_url) as holder:
            holder.execute("lock table horsies_tasks, horsies_task_attempts in row exclusive mode")
            connection.execute("set lock_timeout = '50ms'")
            with pytest.raises(psycopg.errors.LockNotAvailable):  # it waits for writers
                connection.execute(create.encode())

        assert missing_indexes(connection) == [drop, create], "it is there, but not valid"
        assert build_indexes(connection) == [drop, create]
        assert missing_indexes(connection) == []
        assert connection.execute(indexdef).fetchone() == as_migrated


def test_large_attempts_are_not_indexed_under_a_lock(empty_database_url: str) -> None:
    """What a database of the release before holds stays usable while it is migrated."""
    with psycopg.connect(empty_database_url, autocommit=True) as connection:
        apply_first(connection, 9)
        connection.execute(
            "insert into horsies_tasks (id, task_name, queue_name, enqueue_sha) "
            "values ('t', 'a', 'q', '')"
        )
        connection.execute(
            "insert into horsies_task_attempts "
            "(task_id, attempt, outcome, started_at, finished_at, failed_reason) "
            "select 't', n, 'FAILED', now(), now(), repeat('x', 1900) "
            "from generate_series(1, 18000) n"
        )

        migrate(connection)

        assert len(missing_indexes(connection)) == 2, "the attempts' own"
        connection.execute("delete from horsies_tasks")
        left = connection.execute("select count(*) from horsies_task_attempts").fetchone()
    assert left == (0,)
