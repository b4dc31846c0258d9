"""Who gets in by the socket, and what the app's role may not do there."""

import os
import stat
from collections.abc import Callable
from pathlib import Path

import psycopg
import pytest

from horsies import embedded_postgres
from horsies.embedded_postgres import EmbeddedServer
from horsies.embedded_postgres.privileges import server_account
from support.embedded import Holder, Someone, require_root

Acquire = Callable[..., EmbeddedServer]
Hold = Callable[..., Holder]


def _errors_of_a_login_by_the_server_user(url: str) -> str:
    """What a program of the server's own user is told; nothing if it gets in."""
    intruder = Someone(server_account().uid)
    return intruder.start(["-c", f"import psycopg; psycopg.connect({url!r})"]).communicate()[1]


@pytest.mark.parametrize("role", ["horsies", "postgres"])
def test_other_processes_of_the_server_user_cannot_log_in(
    idle_server: EmbeddedServer, role: str
) -> None:
    require_root()
    url = {"horsies": idle_server.url, "postgres": idle_server.superuser_url}[role]

    errors = _errors_of_a_login_by_the_server_user(url)

    assert f'Peer authentication failed for user "{role}"' in errors


@pytest.mark.usefixtures("has_data")
def test_server_of_an_earlier_release_is_closed_at_its_next_start(
    acquire: Acquire, project: Path
) -> None:
    require_root()
    earlier_rules = project / ".horsies/pg/data/pg_hba.conf"
    server = acquire(settings={"hba_file": str(earlier_rules)})
    with psycopg.connect(server.url) as connection:
        connection.execute("create table kept as select 1 as number")
    assert _errors_of_a_login_by_the_server_user(server.superuser_url) == ""
    embedded_postgres.stop(project)

    upgraded = acquire()

    assert upgraded.url == server.url
    with psycopg.connect(upgraded.url) as connection:
        assert connection.execute("select number from kept").fetchone() == (1,)
    errors = _errors_of_a_login_by_the_server_user(upgraded.superuser_url)
    assert "Peer authentication failed" in errors


def test_root_may_log_in_as_a_role_of_its_own(idle_server: EmbeddedServer) -> None:
    require_root()
    with psycopg.connect(idle_server.superuser_url) as connection:
        connection.execute("create role viewer login")

    with psycopg.connect(idle_server.url.replace("//horsies@", "//viewer@")) as connection:
        assert connection.execute("select current_user").fetchone() == ("viewer",)


def test_rules_can_be_read_but_not_changed_by_the_server_user(acquire: Acquire) -> None:
    require_root()
    previous = os.umask(0o077)
    try:
        directory = acquire().directory
    finally:
        os.umask(previous)

    for name in ("pg_hba.conf", "pg_ident.conf"):
        found = (directory / name).stat()
        assert (found.st_uid, stat.S_IMODE(found.st_mode)) == (0, 0o644)


@pytest.mark.usefixtures("has_data")
def test_server_of_an_ordinary_user_needs_no_rules(hold: Hold, project: Path) -> None:
    holder = hold()

    with psycopg.connect(holder.url) as connection:
        assert connection.execute("select current_user").fetchone() == ("horsies",)
    assert not (project / ".horsies/pg/pg_hba.conf").exists()


def test_role_of_the_app_cannot_run_programs(idle_server: EmbeddedServer) -> None:
    with psycopg.connect(idle_server.url, autocommit=True) as connection:
        connection.execute("create table printed (line text)")

        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            connection.execute("copy printed from program 'id'")
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            connection.execute("grant pg_execute_server_program to current_user")
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            connection.execute("set role postgres")
