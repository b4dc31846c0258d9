"""Workers and commands in surroundings that are wrong: what they say and how they end."""

import signal
import textwrap
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import psycopg
import pytest
from psycopg import sql

from horsies import AppConfig, Horsies, PostgresConfig, TaskError, TaskResult
from horsies.database.migrate import migrate
from support.cluster import Server
from support.command import run_horsies, start_horsies, write_project
from support.eventually import eventually
from support.programs import worker
from support.urls import changed

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
    process = start_horsies(directory, "worker", "queue_app", HORSIES_DATABASE_URL=NOWHERE)
    try:
        log = directory / "log.txt"
        eventually(lambda: log.read_text().count("trying again") >= 3, within=60)
        assert process.poll() is None
        process.send_signal(signal.SIGTERM)
        assert process.wait(15) == 0
    finally:
        process.kill()
        process.wait()


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
    name = urlsplit(empty_database_url).path[1:]
    role = f"reader_{name[-12:]}"
    server.close_public_schema(name)
    with psycopg.connect(server.url, autocommit=True) as connection:
        connection.execute(sql.SQL("create role {} login").format(sql.Identifier(role)))
    url = changed(empty_database_url, user=role)

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
    process = start_horsies(directory, "worker", "queue_app", HORSIES_DATABASE_URL=database_url)
    try:
        eventually(lambda: "read-only transaction" in (directory / "log.txt").read_text())
        assert process.poll() is None
        set_read_only(server, name, "off")
        with psycopg.connect(database_url) as connection:
            connection.execute(
                "insert into horsies_tasks (id, task_name, queue_name, enqueue_sha)"
                " values ('one', 'job', 'default', '')"
            )
        eventually(lambda: status(database_url, "one") == "COMPLETED", within=20)
        process.terminate()
        assert process.wait(15) == 0
    finally:
        process.kill()
        process.wait()


WRONG_TASKS = """
import os, sys
from typing import Any
from horsies import *
app = Horsies()
@app.task("wrong")
def wrong(way: str) -> TaskResult[Any, TaskError]:
    if way == "object":
        return TaskResult(ok=object())
    if way == "large":
        return TaskResult(ok="x" * 20_000_000)
    if way == "nul":
        print("printed\\0text")
        raise ValueError("raised\\0text")
    if way == "surrogate":
        print("printed\\ud800text")
        raise ValueError("raised\\ud800text")
    if way == "exit":
        sys.exit("leaving")
    if way == "die":
        os._exit(3)
    if way == "closed":
        os.close(1), os.close(2)
    if way == "endless":
        def endless(): return endless()
        return endless()
    return TaskResult(ok=way)
"""


def test_wrong_tasks_in_child_processes_end_as_told_and_the_worker_goes_on(
    tmp_path: Path, database_url: str
) -> None:
    project = write_project(tmp_path, {"queue_app.py": WRONG_TASKS})
    app = Horsies(AppConfig(broker=PostgresConfig(database_url=database_url)))

    @app.task("wrong")
    def wrong(way: str) -> TaskResult[Any, TaskError]:
        raise NotImplementedError

    with worker(project, "queue_app", HORSIES_DATABASE_URL=database_url):
        ways = ("object", "large", "nul", "surrogate", "exit", "die", "closed", "endless", "fine")
        handles = {way: wrong.send(way).unwrap() for way in ways}
        results = {way: handle.get(timeout_ms=30_000) for way, handle in handles.items()}
    infos = {way: handle.info(include_log=True).unwrap() for way, handle in handles.items()}
    app.get_broker().close()

    codes = {way: result.err and str(result.err.error_code) for way, result in results.items()}
    assert codes == {
        "object": "WORKER_SERIALIZATION_ERROR",
        "large": None,
        "nul": "UNHANDLED_EXCEPTION",
        "surrogate": "UNHANDLED_EXCEPTION",
        "exit": "UNHANDLED_EXCEPTION",
        "die": "WORKER_CRASHED",
        "closed": None,
        "endless": "UNHANDLED_EXCEPTION",
        "fine": None,
    }
    assert len(results["large"].unwrap()) == 20_000_000
    assert "printed\ufffdtext" in infos["nul"].log
    assert infos["surrogate"].log.startswith("printed")
    assert "raised?text" in str(results["surrogate"].unwrap_err().message)
    assert results["fine"].unwrap() == "fine"


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
        connection.execute(
            "update horsies_schema_version set name = '99:50:from-the-future' where version = 0"
        )
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
