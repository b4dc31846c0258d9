"""Use the embedded server, which all processes of a project share until the last one ends."""

import contextlib
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from horsies.embedded_postgres import locks, postmaster, tcp
from horsies.embedded_postgres.binaries import choose, require_available
from horsies.embedded_postgres.home import Home, locate, prepare, socket_directory
from horsies.embedded_postgres.launch import START_SECONDS, Launch
from horsies.embedded_postgres.locks import FileLock
from horsies.embedded_postgres.privileges import scrubbed_environment, server_account
from horsies.embedded_postgres.refusals import refusal

_LOCK_SECONDS = 3 * START_SECONDS  # other processes may try to start the server first
_LOG_TAIL_BYTES = 3000


@dataclass(frozen=True, slots=True)
class EmbeddedServer:
    """A reference to the running server, valid until `release()` or the end of this process."""

    url: str
    superuser_url: str
    tcp_url: str | None = field(repr=False)  # holds a password
    version: str
    directory: Path
    _reference: FileLock

    def release(self) -> None:
        self._reference.release()


@dataclass(frozen=True, slots=True)
class ServerStatus:
    directory: Path
    is_running: bool
    version: str | None
    url: str | None
    tcp_url: str | None = field(repr=False)  # holds a password
    postmaster_pid: int | None


def acquire(
    directory: Path | None = None,
    *,
    idle_timeout: float = 300.0,
    quiet: bool = False,
    settings: Mapping[str, str] | None = None,
    port: int | None = None,
) -> EmbeddedServer:
    """Join the server of the project and start it if necessary. Blocks; safe from any thread.

    `directory` is the project; it defaults to HORSIES_HOME, then to the nearest project.
    `idle_timeout` and `settings` (server parameters) apply only if this call starts the server.
    With `port`, the server also listens there on 127.0.0.1; a running one without it is an error.
    """
    require_available()
    home = locate(directory)
    if port is not None and not home.directory.exists():
        tcp.require_free(port)
    home = prepare(home)
    with contextlib.ExitStack() as undo:
        reference = undo.enter_context(locks.shared(home.use_lock, within=_LOCK_SECONDS))
        # Hold this lock while logging in: a supervisor takes it before it stops an idle server.
        with locks.exclusive(home.start_lock, within=_LOCK_SECONDS):
            socket = _socket_directory(home)
            version = postmaster.answering_version(socket, server_account().uid)
            if version is None:
                version, socket = _start(home, idle_timeout, settings or {}, port)
            if port is not None:
                tcp.require_port(home.data, port)
        undo.pop_all()
    if not quiet:
        place = f"embedded PostgreSQL {version} at {home.directory}"
        sys.stderr.write(f"{place} (development only)\n")
    return EmbeddedServer(
        url=postmaster.url(socket),
        superuser_url=postmaster.url(socket, user="postgres", database="postgres"),
        tcp_url=tcp.url(home),
        version=version,
        directory=home.directory,
        _reference=reference,
    )


def status(directory: Path | None = None) -> ServerStatus:
    """Return the current state; start and create nothing."""
    home = locate(directory)
    socket = _socket_directory(home)
    version = postmaster.answering_version(socket, server_account().uid)
    return ServerStatus(
        directory=home.directory,
        is_running=version is not None,
        version=version,
        url=postmaster.url(socket) if version else None,
        tcp_url=tcp.url(home) if version else None,
        postmaster_pid=postmaster.live_pid(home.data),
    )


def stop(directory: Path | None = None) -> bool:
    """Stop the server even if it is in use; False if none was running."""
    home = locate(directory)
    if not home.data.exists():
        return False
    with locks.exclusive(home.start_lock, within=_LOCK_SECONDS):
        return _stop(home)


def reset(directory: Path | None = None) -> bool:
    """Stop the server and delete all its data; raise an error while other processes use it."""
    home = locate(directory)
    if not home.directory.exists():
        return False
    with locks.exclusive(home.start_lock, within=_LOCK_SECONDS):
        unused = locks.try_exclusive(home.use_lock)
        if unused is None:
            raise refusal(
                "embedded PostgreSQL: other processes use the server",
                cure="end them, then try again",
            )
        with unused:
            _stop(home)
            existed = home.data.exists()
            for remains in (home.data, home.data.with_name("data.tmp")):
                if remains.exists():
                    shutil.rmtree(remains)
            for file in (home.record, home.password):
                file.unlink(missing_ok=True)
            return existed


def psql_program(directory: Path | None = None) -> Path:
    """Find the `psql` that belongs to the server of the project."""
    program = choose(locate(directory).data, server_account()).directory / "psql"
    found = program if program.exists() else shutil.which("psql")
    if found is None:
        raise refusal("psql is not installed", cure="install the PostgreSQL client programs")
    return Path(found)


def _socket_directory(home: Home) -> Path:
    """Return where the server listens, from its record: our environment may imply another place."""
    with contextlib.suppress(FileNotFoundError):
        return Path(json.loads(home.record.read_text())["socket_directory"])
    return socket_directory(home, server_account())


def _start(
    home: Home, idle_timeout: float, settings: Mapping[str, str], port: int | None
) -> tuple[str, Path]:
    if port is not None and postmaster.live_pid(home.data) is None:
        tcp.require_free(port)
    account = server_account()
    socket = socket_directory(home, account)
    binaries = choose(home.data, account)
    launch = Launch(home, binaries, account, socket, idle_timeout, settings, port)
    _write_record(home, launch)
    # The supervisor has another working directory but must import the same modules.
    environment = scrubbed_environment() | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    started = subprocess.run(
        [sys.executable, "-P", "-m", "horsies.embedded_postgres.supervisor", launch.to_json()],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        check=False,
        text=True,
        errors="replace",
        cwd="/",
        env=environment,
    )
    version = postmaster.answering_version(socket, account.uid)
    if started.returncode != 0 or version is None:
        message, *notes = started.stderr.strip().split("\n", 1) or [""]
        raise refusal(
            message or "embedded PostgreSQL stopped right after its start",
            *notes,
            f"end of {home.log}:\n{_log_tail(home.log)}",
            cure="fix the cause above, or set HORSIES_DATABASE_URL to a PostgreSQL of your own",
        )
    return version, socket


def _write_record(home: Home, launch: Launch) -> None:
    temporary = home.record.with_name("server.json.tmp")
    fields = {
        "socket_directory": str(launch.socket_directory),
        "version": launch.binaries.version,
    }
    temporary.write_text(json.dumps(fields))
    temporary.replace(home.record)


def _stop(home: Home) -> bool:
    was_running = postmaster.stop(home.data)
    locks.exclusive(
        home.supervisor_lock, within=START_SECONDS
    ).release()  # wait until the supervisor has exited too
    return was_running


def _log_tail(log: Path) -> str:
    try:
        content = log.read_bytes()
    except FileNotFoundError:
        return "(empty)"
    return content[-_LOG_TAIL_BYTES:].decode(errors="replace").strip()
