"""The process that runs one server for as long as it is in use; one per data directory.

It is started as `python -m horsies.embedded_postgres.supervisor <launch>`. The started process
exits when the server is ready or has failed; its detached child remains.
"""

import contextlib
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

from horsies.embedded_postgres import locks, postmaster, tcp
from horsies.embedded_postgres.home import socket_file
from horsies.embedded_postgres.initdb import create_cluster
from horsies.embedded_postgres.launch import START_SECONDS, Launch
from horsies.embedded_postgres.locks import FileLock
from horsies.embedded_postgres.privileges import make_private
from horsies.embedded_postgres.refusals import refusal
from horsies.errors import ConfigurationError

_READY = "ready"
_LOG_LIMIT_BYTES = 5_000_000
_STARTS = 10  # backends of a killed server need a moment to detach from its shared memory


def main() -> None:
    launch = Launch.from_json(sys.argv[1])
    reader, writer = os.pipe()
    if os.fork() == 0:
        os.close(reader)
        _detach(launch.home.log)
        _serve(launch, writer)
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader) as report:
        message = report.read()
    if message != _READY:
        sys.exit(message or "embedded PostgreSQL: the supervisor ended unexpectedly")


def _detach(log: Path) -> None:
    os.setsid()
    if log.exists() and log.stat().st_size > _LOG_LIMIT_BYTES:
        log.replace(log.with_name("log.1"))
    descriptor = os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW, 0o600)
    os.dup2(descriptor, 1)
    os.dup2(descriptor, 2)
    os.close(descriptor)


def _serve(launch: Launch, writer: int) -> None:
    def report(message: str) -> None:
        with os.fdopen(writer, "w") as pipe:
            pipe.write(message)

    try:
        lock = _wait_for_turn(launch)
        if lock is None:
            return report(_READY)
        server = _start_server(launch)
    except ConfigurationError as error:
        return report("\n".join([error.message, *error.notes]))
    try:
        signal.signal(signal.SIGTERM, _exit_on_signal)
        if launch.port is not None:
            superuser_url = postmaster.url(launch.socket_directory, user="postgres")
            tcp.set_password(launch.home, superuser_url)
        report(_READY)
        _wait_until_unused(launch, server, lock)
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        _end(server)
        if not (socket := socket_file(launch.socket_directory)).exists():
            # Our link points to a socket that the server has removed.
            socket.unlink(missing_ok=True)
        if launch.socket_directory != launch.home.run:
            # A killed server leaves its socket behind, and the next start removes it.
            with contextlib.suppress(OSError):
                launch.socket_directory.rmdir()
    return None


def _exit_on_signal(signal_number: int, frame: object) -> None:
    raise SystemExit(0)


def _wait_for_turn(launch: Launch) -> FileLock | None:
    """Wait for the supervisor lock and return it; None if a server answers first."""
    deadline = time.monotonic() + START_SECONDS
    lock = None
    while postmaster.answering_version(launch.socket_directory, launch.account.uid) is None:
        lock = lock or locks.try_exclusive(launch.home.supervisor_lock)
        # A live server without a supervisor is starting or stopping, so wait for it as well.
        if lock and postmaster.live_pid(launch.home.data) is None:
            return lock
        if time.monotonic() > deadline:
            raise refusal("embedded PostgreSQL: an earlier server neither answers nor stops")
        time.sleep(0.05)
    return None


def _start_server(launch: Launch) -> "subprocess.Popen[bytes]":
    if not launch.home.data.exists():
        create_cluster(launch.binaries, launch.account, launch.home.data)
    make_private(launch.socket_directory, launch.account)
    for _ in range(_STARTS):
        is_restart = postmaster.recorded_pid(launch.home.data) is not None
        server = postmaster.start(launch, log=1)
        if _becomes_ready(launch, server):
            return server
        if not is_restart:
            break
        time.sleep(0.5)
    raise refusal("embedded PostgreSQL did not start")


def _becomes_ready(launch: Launch, server: "subprocess.Popen[bytes]") -> bool:
    deadline = time.monotonic() + START_SECONDS
    while server.poll() is None:
        if postmaster.answering_version(launch.socket_directory, launch.account.uid) is not None:
            return True
        if time.monotonic() > deadline:
            _end(server)
            raise refusal(f"embedded PostgreSQL did not accept a login in {START_SECONDS:.0f} s")
        time.sleep(0.05)
    return False


def _wait_until_unused(launch: Launch, server: "subprocess.Popen[bytes]", lock: FileLock) -> None:
    """Return when the server has stopped by itself, or when it was stopped because it is idle."""
    pause = min(1.0, max(0.25, launch.idle_timeout / 4))
    used_at = time.monotonic()
    while not _has_ended(server, within=pause):
        if not lock.is_still_at(launch.home.supervisor_lock):
            # The directory was deleted or moved. A clean shutdown would also remove the socket of a
            # successor that has started in a new directory with this name.
            return server.kill()
        if not socket_file(launch.socket_directory).exists():
            return None  # no client can find it any more, for example after a cleanup of /tmp
        if _is_used(launch):
            used_at = time.monotonic()
        elif time.monotonic() - used_at >= launch.idle_timeout and _end_if_unused(launch, server):
            return None
    return None


def _has_ended(server: "subprocess.Popen[bytes]", *, within: float) -> bool:
    try:
        server.wait(timeout=within)
    except subprocess.TimeoutExpired:
        return False
    return True


def _is_used(launch: Launch) -> bool:
    lock = locks.try_exclusive(launch.home.use_lock)
    if lock is None:
        return True
    lock.release()
    return postmaster.has_clients(launch.socket_directory)


def _end_if_unused(launch: Launch, server: "subprocess.Popen[bytes]") -> bool:
    """Stop the server unless a user has arrived; users that come later wait for the start lock."""
    arriving = locks.try_exclusive(launch.home.start_lock)
    if arriving is None:
        return False
    with arriving:
        if _is_used(launch):
            return False
        _end(server)
        return True


def _end(server: "subprocess.Popen[bytes]") -> None:
    for request in (signal.SIGINT, signal.SIGQUIT, signal.SIGKILL):
        with contextlib.suppress(subprocess.TimeoutExpired):
            server.send_signal(request)
            server.wait(timeout=60)
            return


if __name__ == "__main__":
    main()
