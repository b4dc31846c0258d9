"""PostgreSQL for the tests: one fast private server per run, and ones that crash tests may kill."""

import os
import shutil
import signal
import subprocess
import tempfile
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import psutil
import psycopg
from psycopg import sql

from horsies import embedded_postgres
from horsies.embedded_postgres import locks
from horsies.embedded_postgres.home import locate
from support.eventually import eventually
from support.urls import changed

RUN_DIRECTORY = "HORSIES_TEST_RUN_DIRECTORY"  # set by the controlling process, inherited by workers
CONFIGURED_URL = "HORSIES_TEST_DATABASE_URL"
_SHARED_MEMORY = Path("/dev/shm")
_ROOM_BYTES = 4 * 2**30  # the run's server may keep 1 GB of write-ahead log


def fast_settings(directory: Path) -> dict[str, str]:
    """Settings for a server that loses data with the machine and lets in whoever reaches it.

    A server of root otherwise lets in root alone; PgBouncer runs as the server's user, and before
    PostgreSQL 16 root could not log in as the roles that tests make.
    """
    return {
        "fsync": "off",
        "synchronous_commit": "off",
        "full_page_writes": "off",
        "max_connections": "200",
        "hba_file": str(locate(directory).data / "pg_hba.conf"),
    }


@dataclass(frozen=True, slots=True)
class Server:
    """A server to make databases on: `url` may create them, `owner` is who the tests log in as."""

    url: str
    owner: str | None

    def database_url(self, name: str) -> str:
        return changed(self.url, user=self.owner, database=name)

    def create_database(self, name: str, *, template: str = "template0") -> None:
        statement = sql.SQL("create database {} template {}").format(
            sql.Identifier(name), sql.Identifier(template)
        )
        if self.owner:
            statement += sql.SQL(" owner {}").format(sql.Identifier(self.owner))
        self._execute(statement)

    def rename_database(self, name: str, new_name: str) -> None:
        self._execute(
            sql.SQL("alter database {} rename to {}").format(
                sql.Identifier(name), sql.Identifier(new_name)
            )
        )

    def drop_database(self, name: str) -> None:
        self._execute(
            sql.SQL("drop database if exists {} with (force)").format(sql.Identifier(name))
        )

    def has_database(self, name: str) -> bool:
        with psycopg.connect(self.url) as connection:
            found = connection.execute("select 1 from pg_database where datname = %s", [name])
            return found.fetchone() is not None

    def close_public_schema(self, name: str) -> None:
        """Let only the owner create tables in this database, as is usual from PostgreSQL 15 on."""
        with psycopg.connect(changed(self.url, database=name)) as connection:
            connection.execute("revoke create on schema public from public")
            grant = sql.SQL("grant create on schema public to {}")
            connection.execute(grant.format(sql.Identifier(self.owner or connection.info.user)))

    @contextmanager
    def temporary_database(self, *, template: str = "template0") -> Iterator[str]:
        """The URL of a database that exists for the length of the block."""
        name = f"horsies_test_{uuid.uuid4().hex[:12]}"
        self.create_database(name, template=template)
        try:
            yield self.database_url(name)
        finally:
            self.drop_database(name)

    def _execute(self, statement: sql.Composed) -> None:
        with psycopg.connect(self.url, autocommit=True) as connection:
            connection.execute(statement)


@contextmanager
def run_server() -> Iterator[Server]:
    """The server shared by all processes of this test run."""
    if configured := os.environ.get(CONFIGURED_URL):
        yield Server(configured, owner=_make_owner(configured))
        return
    directory = run_directory()
    server = embedded_postgres.acquire(
        directory, idle_timeout=5, quiet=True, settings=fast_settings(directory)
    )
    try:
        yield Server(server.superuser_url, owner="horsies")
    finally:
        server.release()


def _make_owner(url: str) -> str | None:
    """On a server given by a superuser the tests log in as the plain role `horsies`, made here.

    Missing rights must show there too. It needs a server that lets local roles in without password.
    """
    with psycopg.connect(url, autocommit=True) as connection:
        if connection.info.parameter_status("is_superuser") != "on":
            return None
        with locks.exclusive(run_directory() / "owner.lock", within=60):
            found = connection.execute("select 1 from pg_roles where rolname = 'horsies'")
            if found.fetchone() is None:
                connection.execute("create role horsies login")
    return "horsies"


def migrated_template(server: Server) -> str:
    """The name of a database with our schema, made by the first process that asks."""
    from horsies.database.migrate import migrate

    name = template_name()
    with locks.exclusive(run_directory() / "template.lock", within=120):
        if not server.has_database(name):
            unfinished = f"{name}_unfinished"
            server.drop_database(unfinished)
            server.create_database(unfinished)
            with psycopg.connect(server.database_url(unfinished)) as connection:
                migrate(connection)
            server.rename_database(unfinished, name)
    return name


def template_name() -> str:
    return f"horsies_template_{run_directory().name[-8:].lower()}"


def run_directory() -> Path:
    return Path(os.environ[RUN_DIRECTORY])


def start_run() -> None:
    os.environ[RUN_DIRECTORY] = str(make_directory())


def end_run() -> None:
    if configured := os.environ.get(CONFIGURED_URL):
        Server(configured, owner=None).drop_database(template_name())
    remove_directory(run_directory())
    shutil.rmtree(programs_directory(), ignore_errors=True)


def programs_directory() -> Path:
    """A directory of the run whose programs may be run, by all users; it need not exist."""
    return Path(tempfile.gettempdir()) / f"{run_directory().name}-programs"


def make_directory(*, holds_programs: bool = False) -> Path:
    """A short temporary directory that the server's user can reach, unlike pytest's own."""
    place = None if holds_programs else _memory()
    directory = Path(tempfile.mkdtemp(prefix="horsies-test-", dir=place))
    directory.chmod(0o755)
    return directory


def _memory() -> Path | None:
    """Where files are kept in memory, if there is room; programs often may not run from there.

    On a disk a clone of the template costs four times the CPU time, and every commit of a durable
    server waits. A killed server finds its files again in both places.
    """
    if not os.access(_SHARED_MEMORY, os.W_OK):
        return None
    is_roomy = shutil.disk_usage(_SHARED_MEMORY).free >= _ROOM_BYTES
    return _SHARED_MEMORY if is_roomy and psutil.virtual_memory().available >= _ROOM_BYTES else None


def remove_directory(directory: Path) -> None:
    embedded_postgres.stop(directory)
    shutil.rmtree(directory)


def kill_process(pid: int) -> bool:
    """`kill -9`, counted for the summary of the run; False when it was gone already."""
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        return False
    with _kills().open("ab") as file:
        file.write(b"x")
    return True


def kill_count() -> int:
    return _kills().stat().st_size if _kills().exists() else 0


def _kills() -> Path:
    return run_directory() / "kills"


def give_data(project: Path, *, uid: int | None = None) -> Path:
    """Give a project the data of a new server, as its first start would make them in a second.

    They are a copy of data that a server made, once for all processes of the run, and belong to
    the server's user or to `uid`.
    """
    copied = locate(project).data
    copied.parent.mkdir(parents=True)
    subprocess.run(["cp", "-a", _new_data(), copied], check=True)
    if uid is not None:
        subprocess.run(["chown", "-R", str(uid), project / ".horsies"], check=True)
    return project


def _new_data() -> Path:
    data = run_directory() / "new-data"
    with locks.exclusive(run_directory() / "new-data.lock", within=120):
        if not data.exists():
            project = run_directory() / "new-project"
            project.mkdir()
            embedded_postgres.acquire(project, quiet=True).release()
            embedded_postgres.stop(project)
            locate(project).data.rename(data)
    return data


class DurableCluster:
    """A server of its own with durable settings, to be killed and started again."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self._server: embedded_postgres.EmbeddedServer | None = None

    @property
    def url(self) -> str:
        assert self._server is not None
        return self._server.url

    @property
    def superuser_url(self) -> str:
        assert self._server is not None
        return self._server.superuser_url

    @property
    def postmaster_pid(self) -> int:
        pid = embedded_postgres.status(self.directory).postmaster_pid
        assert pid is not None
        return pid

    def start(self) -> None:
        previous = self._server
        self._server = embedded_postgres.acquire(self.directory, idle_timeout=5, quiet=True)
        if previous:
            previous.release()

    def stop(self) -> None:
        embedded_postgres.stop(self.directory)

    def kill9(self) -> None:
        """Kill the server as a power cut would, and wait until it is gone."""
        kill_process(self.postmaster_pid)
        eventually(lambda: embedded_postgres.status(self.directory).postmaster_pid is None)

    def close(self) -> None:
        if self._server:
            self._server.release()
        remove_directory(self.directory)
