"""Databases for tests: each a clone of one template that has our tables."""

import os
import uuid
from collections.abc import Generator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path

import psycopg
from psycopg import sql
from psycopg.conninfo import make_conninfo

from horsies import embedded_postgres
from horsies.config.database import to_psycopg_url
from horsies.database.migrate import migrate

# Nothing of a test outlives it, so nothing has to reach the disk.
_FAST = {"fsync": "off", "synchronous_commit": "off", "full_page_writes": "off"}

_TABLES = (
    "select relname from pg_class "
    "where relkind = 'r' and relnamespace = 'public'::regnamespace order by relname"
)
_END_OTHERS = (
    "select pg_terminate_backend(pid) from pg_stat_activity "
    "where datname = current_database() and pid <> pg_backend_pid()"
)


class Databases:
    """Clones of a template on one server; one that a test has left is emptied and used again.

    A clone costs some hundred milliseconds, emptying it a few.
    """

    def __init__(self, url: str) -> None:
        self._url = to_psycopg_url(url)
        self._template = f"horsies_template_{uuid.uuid4().hex[:12]}"
        self._execute("create database {}", self._template)
        with psycopg.connect(make_conninfo(self._url, dbname=self._template)) as connection:
            migrate(connection)
            self._tables = [table for (table,) in connection.execute(_TABLES).fetchall()]
        self._free: list[str] = []

    @contextmanager
    def clone(self) -> Generator[str, None, None]:
        """The URL of a fresh database with our tables, dropped afterwards."""
        name = self._free.pop() if self._free else self._create()
        try:
            yield _with_database(self._url, name)
        finally:
            if self._empty(name):
                self._free.append(name)
            else:
                self._execute("drop database if exists {} with (force)", name)

    def _create(self) -> str:
        name = f"horsies_test_{uuid.uuid4().hex[:12]}"
        self._execute("create database {} template {}", name, self._template)
        return name

    def _empty(self, name: str) -> bool:
        """Take out what a test has left; `False` when it has made or locked something there."""
        try:
            with psycopg.connect(
                make_conninfo(self._url, dbname=name), autocommit=True, options="-c lock_timeout=1s"
            ) as connection:
                connection.execute(_END_OTHERS)
                found = [table for (table,) in connection.execute(_TABLES).fetchall()]
                if found != self._tables:
                    return False
                connection.execute(
                    sql.SQL(";").join(
                        sql.SQL("delete from {}").format(sql.Identifier(table))
                        for table in found
                        if table != "horsies_schema_version"
                    )
                )
                connection.execute(
                    sql.SQL("alter database {} reset all").format(sql.Identifier(name))
                )
        except psycopg.Error:
            return False
        return True

    def close(self) -> None:
        for name in self._free:
            self._execute("drop database if exists {} with (force)", name)
        self._execute("drop database if exists {} with (force)", self._template)

    def _execute(self, statement: str, *names: str) -> None:
        with psycopg.connect(self._url, autocommit=True) as connection:
            identifiers = [sql.Identifier(name) for name in names]
            connection.execute(sql.SQL(statement).format(*identifiers))  # pyright: ignore[reportArgumentType]  # constant texts


@contextmanager
def server_for_tests(directory: Path) -> Generator[str, None, None]:
    """HORSIES_TEST_DATABASE_URL if it is set, else an embedded server in this directory."""
    if configured := os.environ.get("HORSIES_TEST_DATABASE_URL"):
        yield configured
        return
    server = embedded_postgres.acquire(directory, idle_timeout=10, quiet=True, settings=_FAST)
    try:
        yield server.superuser_url
    finally:
        server.release()
        embedded_postgres.stop(directory)


def set_now(url: str, now: datetime | None) -> None:
    """Set the time for all later sessions of a test's database; `None` is the real one."""
    with psycopg.connect(to_psycopg_url(url), autocommit=True) as connection:
        name = sql.Identifier(connection.info.dbname)
        if now is None:
            statement = sql.SQL("alter database {} reset horsies.now").format(name)
        else:
            text = sql.Literal(now.isoformat())
            statement = sql.SQL("alter database {} set horsies.now = {}").format(name, text)
        connection.execute(statement)


def _with_database(url: str, name: str) -> str:
    head, _, tail = url.partition("?")
    start = head.rpartition("/")[0]
    return f"{start}/{name}" + (f"?{tail}" if tail else "")
