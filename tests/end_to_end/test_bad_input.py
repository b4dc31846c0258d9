"""Workers and commands in surroundings that are wrong: what they say and how they end."""

import signal
import textwrap
from pathlib import Path
from urllib.parse import urlsplit

import psycopg
import pytest
from psycopg import sql

from horsies.database.migrate import migrate
from support.cluster import Server
from support.command import run_horsies, start_horsies, write_project
from support.eventually import eventually

NOWHERE = "postgresql://nobody:s3cret@127.0.0.1:1/nowhere"
APP = """
from horsies import *
app = Horsies(AppConfig(resilience=WorkerResilienceConfig(
    db_retry_initial_ms=100, db_retry_max_ms=500, db_retry_max_attempts={attempts})))
@app.task("job")
async def job() -> TaskResult[int, TaskError]:
    return TaskResult(ok=1)
"""


def project(directory: Path, *, attempts: int = 0) -> Path:
    source = textwrap.dedent(APP).format(attempts=attempts)
    return write_project(directory, {"queue_app.py": source})


def test_a_worker_gives_up_after_the_configured_tries(tmp_path: Path) -> None:
    done = run_horsies(
        project(tmp_path, attempts=3), "worker", "queue_app", HORSIES_DATABASE_URL=NOWHERE
    )

    assert done.returncode == 1
    assert done.stderr.count("trying again") == 2
    assert "failed 3 times in a row" in done.stderr
    assert "Connection refused" in done.stderr
    assert "s3cret" not in done.stderr
    assert "Traceback" not in done.stderr


def test_a_worker_without_a_limit_keeps_trying_until_it_is_stopped(tmp_path: Path) -> None:
    directory = project(tmp_path)
    worker = start_horsies(directory, "worker", "queue_app", HORSIES_DATABASE_URL=NOWHERE)
    try:
        eventually(lambda: (directory / "log.txt").read_text().count("trying again") >= 3)
        assert worker.poll() is None
        worker.send_signal(signal.SIGTERM)
        assert worker.wait(15) == 0
    finally:
        worker.kill()
        worker.wait()


def test_a_worker_does_not_wait_for_a_database_that_does_not_exist(
    tmp_path: Path, server: Server
) -> None:
    url = server.database_url("no_such_database")

    done = run_horsies(project(tmp_path), "worker", "queue_app", HORSIES_DATABASE_URL=url)

    assert done.returncode == 1
    assert '"no_such_database" does not exist' in done.stderr
    assert "Traceback" not in done.stderr


def test_a_worker_says_what_to_grant(
    tmp_path: Path, server: Server, empty_database_url: str
) -> None:
    with psycopg.connect(server.url, autocommit=True) as connection:
        role = f"reader_{urlsplit(empty_database_url).path[-12:]}"
        connection.execute(sql.SQL("create role {} login").format(sql.Identifier(role)))
    url = empty_database_url.replace(f"{server.owner}@", f"{role}@")

    done = run_horsies(project(tmp_path), "worker", "queue_app", HORSIES_DATABASE_URL=url)
    with psycopg.connect(server.url, autocommit=True) as connection:
        connection.execute(sql.SQL("drop role {}").format(sql.Identifier(role)))

    assert done.returncode == 1
    assert f'grant usage, create on schema "public" to "{role}"' in done.stderr
    assert "Traceback" not in done.stderr


def test_a_worker_waits_for_a_read_only_database_to_become_writable(
    tmp_path: Path, server: Server, database_url: str
) -> None:
    """As after a failover: the old primary is read-only until the new one takes over."""
    name = urlsplit(database_url).path[1:]
    directory = project(tmp_path)
    set_read_only(server, name, "on")
    worker = start_horsies(directory, "worker", "queue_app", HORSIES_DATABASE_URL=database_url)
    try:
        eventually(lambda: "read-only transaction" in (directory / "log.txt").read_text())
        assert worker.poll() is None
        set_read_only(server, name, "off")
        with psycopg.connect(database_url) as connection:
            connection.execute(
                "insert into horsies_tasks (id, task_name, queue_name, enqueue_sha)"
                " values ('one', 'job', 'default', '')"
            )
        eventually(lambda: status(database_url, "one") == "COMPLETED", within=20)
        worker.terminate()
        assert worker.wait(15) == 0
    finally:
        worker.kill()
        worker.wait()


@pytest.mark.parametrize("command", ["migrate", "ping", "check --live"])
def test_a_command_without_its_database_ends_with_one_clear_error(
    command: str, tmp_path: Path
) -> None:
    done = run_horsies(
        project(tmp_path), *command.split(), "queue_app", HORSIES_DATABASE_URL=NOWHERE
    )

    assert done.returncode == 1
    assert "Connection refused" in done.stderr
    assert "Traceback" not in done.stderr
    assert "s3cret" not in done.stderr


def test_a_newer_schema_is_refused_by_name(tmp_path: Path, empty_database_url: str) -> None:
    with psycopg.connect(empty_database_url) as connection:
        migrate(connection)
        connection.execute("insert into horsies_schema_version values (9999, 'from the future')")
    environment = {"HORSIES_DATABASE_URL": empty_database_url}

    migrated = run_horsies(project(tmp_path), "migrate", "queue_app", **environment)
    worked = run_horsies(project(tmp_path), "worker", "queue_app", **environment)

    assert (migrated.returncode, worked.returncode) == (1, 1)
    assert "error[HRS-211]" in migrated.stderr
    for done in (migrated, worked):
        assert "newer than this horsies" in done.stderr
        assert "Traceback" not in done.stderr


def set_read_only(server: Server, name: str, value: str) -> None:
    statement = sql.SQL("alter database {} set default_transaction_read_only = {}")
    with psycopg.connect(server.url, autocommit=True) as connection:
        connection.execute(statement.format(sql.Identifier(name), sql.SQL(value)))  # type: ignore[arg-type]
        # Sessions keep the setting they began with, as those on a failed-over server do.
        connection.execute(
            "select pg_terminate_backend(pid) from pg_stat_activity where datname = %s", [name]
        )


def status(url: str, task_id: str) -> str | None:
    with psycopg.connect(url) as connection:
        row = connection.execute(
            "select status from horsies_tasks where id = %s", [task_id]
        ).fetchone()
    return row[0] if row else None
