"""What kind of server it is, and what does not disturb it."""

import os
from collections.abc import Callable
from pathlib import Path

import psutil
import psycopg
import pytest

from horsies import embedded_postgres
from horsies.config import PostgresConfig
from horsies.database.database import Database
from horsies.database.migrate import pending
from horsies.embedded_postgres import EmbeddedServer, supervisor
from horsies.errors import ConfigurationError
from support.embedded import Holder, Someone, ordinary_user, postmaster_pid, require_root

Acquire = Callable[..., EmbeddedServer]
Hold = Callable[..., Holder]


def test_role_is_no_superuser_and_owns_its_database(idle_server: EmbeddedServer) -> None:
    with psycopg.connect(idle_server.url) as connection:
        role = connection.execute(
            "select rolsuper, rolcreatedb, rolcreaterole from pg_roles where rolname = current_user"
        ).fetchone()
        connection.execute("create schema mine")
        owner = connection.execute(
            "select pg_get_userbyid(datdba) from pg_database where datname = current_database()"
        ).fetchone()

    assert role == (False, False, False)
    assert owner == ("horsies",)


@pytest.mark.parametrize(
    ("setting", "value"),
    [
        ("listen_addresses", ""),
        ("unix_socket_permissions", "0700"),
        ("fsync", "on"),
        ("synchronous_commit", "on"),
        ("full_page_writes", "on"),
        ("data_checksums", "on"),
        ("server_encoding", "UTF8"),
        ("cluster_name", "horsies-embedded"),
        ("max_connections", "100"),
    ],
)
def test_setting(idle_server: EmbeddedServer, setting: str, value: str) -> None:
    with psycopg.connect(idle_server.url) as connection:
        found = connection.execute("select current_setting(%s)", [setting]).fetchone()

    assert found == (value,)


def test_locales_and_settings_of_the_environment_do_not_matter(hold: Hold) -> None:
    misleading = {
        "LANG": "xx_XX.UTF-8",
        "LC_ALL": "tlh_QO.UTF-8",
        "PGDATA": "/nonexistent",
        "PGPORT": "1",
        "PGHOST": "nowhere.invalid",
        "PGUSER": "somebody",
    }

    holder = hold(environment=misleading)

    with psycopg.connect(holder.url) as connection:
        assert connection.execute("select lower('Ä')").fetchone() == ("ä",)


@pytest.mark.usefixtures("has_data")
def test_one_line_on_stderr_says_what_runs_where(hold: Hold, project: Path) -> None:
    holder = hold()
    version = holder.version

    assert holder.release() == (
        f"embedded PostgreSQL {version} at {project}/.horsies/pg (development only)\n"
    )


@pytest.mark.usefixtures("has_data")
def test_failed_start_shows_the_end_of_the_log(acquire: Acquire) -> None:
    with pytest.raises(ConfigurationError) as raised:
        acquire(settings={"shared_buffers": "plenty"})

    assert 'invalid value for parameter "shared_buffers": "plenty"' in str(raised.value)


@pytest.mark.usefixtures("has_data")
def test_long_log_is_rotated_at_the_start(acquire: Acquire, project: Path) -> None:
    log = project / ".horsies/pg/log"
    log.write_bytes(b"x" * (supervisor._LOG_LIMIT_BYTES + 1))

    acquire()

    assert log.with_name("log.1").stat().st_size == supervisor._LOG_LIMIT_BYTES + 1
    assert b"xxx" not in log.read_bytes()


def test_cluster_cut_short_while_being_created_is_made_anew(
    acquire: Acquire, project: Path
) -> None:
    unfinished = project / ".horsies/pg/data.tmp"
    unfinished.mkdir(parents=True)
    (unfinished / "PG_VERSION").write_text("18")

    with psycopg.connect(acquire().url) as connection:
        assert connection.execute("select 1").fetchone() == (1,)

    assert not unfinished.exists()


@pytest.mark.usefixtures("has_data")
def test_full_server_is_still_recognized_as_running(acquire: Acquire) -> None:
    server = acquire(settings={"max_connections": "5", "superuser_reserved_connections": "2"})
    connections = [psycopg.connect(server.url) for _ in range(3)]

    assert acquire().url == server.url

    for connection in connections:
        connection.close()


@pytest.mark.usefixtures("has_data")
def test_reset_deletes_everything_but_not_under_a_user(acquire: Acquire, project: Path) -> None:
    server = acquire()
    with psycopg.connect(server.url) as connection:
        connection.execute("create table kept ()")

    with pytest.raises(ConfigurationError, match="other processes use"):
        embedded_postgres.reset(project)
    server.release()

    assert embedded_postgres.reset(project)
    with psycopg.connect(acquire().url) as connection:
        assert connection.execute("select to_regclass('kept')").fetchone() == (None,)


def test_other_users_cannot_log_in(idle_server: EmbeddedServer) -> None:
    require_root()
    code = f"import psycopg; psycopg.connect({idle_server.url!r})"

    stranger = ordinary_user().start(["-c", code])

    assert "Permission denied" in stranger.communicate()[1]


def test_user_without_a_name_is_told_what_to_do(project: Path) -> None:
    require_root()
    nameless = Someone(54321)
    code = (
        "from pathlib import Path; from horsies.embedded_postgres import acquire; "
        f"acquire(Path({str(nameless.own(project))!r}))"
    )

    errors = nameless.start(["-c", code]).communicate()[1]

    assert "cannot run as user 54321" in errors
    assert "HORSIES_DATABASE_URL" in errors


def test_root_runs_the_server_as_the_configured_user(
    acquire: Acquire, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    require_root()
    monkeypatch.setenv("HORSIES_PG_USER", "daemon")

    acquire()

    pid = embedded_postgres.status(project).postmaster_pid
    assert psutil.Process(pid).username() == "daemon"
    assert embedded_postgres.stop(project)


def test_unknown_server_user_is_named(acquire: Acquire, monkeypatch: pytest.MonkeyPatch) -> None:
    require_root()

    with monkeypatch.context() as environment:
        environment.setenv("HORSIES_PG_USER", "no-such-user")
        with pytest.raises(ConfigurationError, match="no user 'no-such-user'"):
            acquire()

        environment.setenv("HORSIES_PG_USER", "root")
        with pytest.raises(ConfigurationError, match="that is root"):
            acquire()


def test_postmaster_is_not_root(idle_server: EmbeddedServer) -> None:
    pid = postmaster_pid(idle_server.directory.parents[1])

    assert psutil.Process(pid).uids().real != 0
    assert os.getsid(pid or 0) == pid  # a Ctrl-C in the terminal does not reach it


def test_tables_of_an_earlier_release_are_upgraded_at_the_first_use(project: Path) -> None:
    before, after = (Database(PostgresConfig.embedded(project)) for _ in range(2))
    before.ensure_schema()
    with before.pool.connection() as connection:
        connection.execute("delete from horsies_schema_version where version = 0")

        after.ensure_schema()

        assert pending(connection) == []
    after.close()
    before.close()
