"""The server process: start and stop it, find its pid, check whether it accepts logins."""

import contextlib
import os
import signal
import subprocess
import time
from importlib.resources import files
from pathlib import Path
from urllib.parse import quote

import psutil
import psycopg

from horsies.embedded_postgres import logins, tcp
from horsies.embedded_postgres.home import all_socket_files, socket_file
from horsies.embedded_postgres.launch import Launch
from horsies.embedded_postgres.privileges import is_private

_STOP_SECONDS = 60.0


def url(socket_directory: Path, *, user: str = "horsies", database: str = "horsies") -> str:
    return (
        f"postgresql://{user}@/{database}?host={quote(str(socket_directory), safe='/')}&port=5432"
    )


def answering_version(socket_directory: Path, uid: int) -> str | None:
    """Return the version of the server if it accepts a login, else None.

    Only a login proves readiness: the socket also answers during crash recovery. As superuser we
    use a reserved connection, so that a server without free connections still counts as running.
    """
    if not is_private(socket_directory, uid):
        return None
    try:
        with psycopg.connect(
            url(socket_directory, user="postgres"), connect_timeout=5
        ) as connection:
            return (connection.info.parameter_status("server_version") or "?").split()[0]
    except psycopg.OperationalError:
        return None


def has_clients(socket_directory: Path) -> bool:
    query = files("horsies.embedded_postgres").joinpath("sql", "client_backends.sql").read_bytes()
    try:
        with psycopg.connect(
            url(socket_directory, user="postgres"), connect_timeout=5
        ) as connection:
            row = connection.execute(query).fetchone()
    except psycopg.OperationalError:
        return True  # no free connection: certainly not idle
    return row is None or row[0] > 0


def recorded_pid(data: Path) -> int | None:
    try:
        return int((data / "postmaster.pid").read_text().split("\n", 1)[0])
    except (FileNotFoundError, ValueError):
        return None


def live_pid(data: Path) -> int | None:
    """Return the pid of the server that runs in this data directory.

    A recorded pid alone proves nothing: after a reboot it may belong to any process, and a zombie
    still accepts signals. The working directory of a server is its data directory.
    """
    pid = recorded_pid(data)
    if pid is None:
        return None
    try:
        process = psutil.Process(pid)
        is_ours = process.name() == "postgres" and Path(process.cwd()).samefile(data)
    except (psutil.Error, OSError):
        return None
    return pid if is_ours else None


def start(launch: Launch, log: int) -> "subprocess.Popen[bytes]":
    """Start the server; the caller holds the supervisor lock and has found no live server."""
    environment: dict[str, str] = {}
    if (stale := recorded_pid(launch.home.data)) is not None:
        # PostgreSQL refuses to start while a process with that pid is alive, even an unrelated
        # one. It ignores the pid of a grandparent but still checks the shared memory. Deleting the
        # file would skip that check (patroni/patroni pull request 681).
        environment["PG_GRANDPARENT_PID"] = str(stale)
    for leftover in all_socket_files(launch.socket_directory):
        leftover.unlink(missing_ok=True)
    socket = socket_file(launch.socket_directory)
    if launch.port is not None and not socket.name.endswith(f".{launch.port}"):
        # PostgreSQL names its socket after the port, but our URLs must not depend on the port.
        socket.symlink_to(f".s.PGSQL.{launch.port}")
    logins.write_rules(launch)
    return launch.account.start(_command(launch), log=log, environment=environment)


def stop(data: Path) -> bool:
    """Stop the server of this data directory by a fast shutdown; False if none is running."""
    pid = live_pid(data)
    if pid is None:
        return False
    deadline = time.monotonic() + _STOP_SECONDS
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGINT)
    while live_pid(data) == pid:
        if time.monotonic() > deadline:
            os.kill(pid, signal.SIGQUIT)  # the next start runs crash recovery
            break
        time.sleep(0.05)
    return True


def _command(launch: Launch) -> list[str | Path]:
    settings = {
        **tcp.settings(launch.port),
        **logins.settings(launch),
        "unix_socket_directories": str(launch.socket_directory),
        "unix_socket_permissions": "0700",
        "cluster_name": "horsies-embedded",
        "max_connections": "100",
        **({"io_method": "sync"} if launch.binaries.major >= 18 else {}),
        **launch.settings,
    }
    options = [part for name, value in settings.items() for part in ("-c", f"{name}={value}")]
    return [launch.binaries.directory / "postgres", "-D", launch.home.data, *options]
