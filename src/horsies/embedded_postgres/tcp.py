"""Optional TCP for the embedded server: one port of 127.0.0.1, one role, one password."""

import secrets
import socket
from importlib.resources import files
from pathlib import Path

import psycopg

from horsies.embedded_postgres.home import Home
from horsies.embedded_postgres.refusals import refusal

_ADDRESS = "127.0.0.1"
_ROLE = "horsies"


def settings(port: int | None) -> dict[str, str]:
    if port is None:
        return {"listen_addresses": ""}
    return {"listen_addresses": _ADDRESS, "port": str(port)}


def require_free(port: int) -> None:
    """Raise an error if the port is taken, before anything is created."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # as PostgreSQL does
        try:
            probe.bind((_ADDRESS, port))
        except OSError as error:
            raise refusal(
                f"embedded PostgreSQL cannot use port {port} of {_ADDRESS}: {error.strerror}",
                cure="choose another port, or stop the program that uses this one",
            ) from error


def require_port(data: Path, port: int) -> None:
    """Raise an error if the running server does not listen on this port."""
    found = _port(data)
    if found != port:
        listens = "without a TCP port" if found is None else f"on port {found}"
        raise refusal(
            f"embedded PostgreSQL already runs {listens}, so it cannot use port {port}",
            cure=f"stop it first: horsies pg stop, then: horsies pg start --port {port}",
        )


def url(home: Home) -> str | None:
    """Return the URL of the running server with its password; None if it has no TCP port."""
    port = _port(home.data)
    if port is None or not home.password.exists():
        return None
    return f"postgresql://{_ROLE}:{home.password.read_text().strip()}@{_ADDRESS}:{port}/horsies"


def set_password(home: Home, superuser_url: str) -> None:
    """Allow the role to log in by TCP. No other role can, because no other has a password."""
    if not home.password.exists():
        temporary = home.password.with_name("password.tmp")
        temporary.touch(mode=0o600)
        temporary.write_text(f"{secrets.token_urlsafe(24)}\n")
        temporary.replace(home.password)
    password = home.password.read_text().strip()
    statement = files("horsies.embedded_postgres").joinpath("sql", "set_password.sql").read_bytes()
    with psycopg.connect(superuser_url) as connection:
        # We hash the password here: it is always SCRAM, and no log can contain the password.
        verifier = connection.pgconn.encrypt_password(
            password.encode(), _ROLE.encode(), b"scram-sha-256"
        )
        psycopg.ClientCursor(connection).execute(statement, [verifier.decode()])


def _port(data: Path) -> int | None:
    """Read the port from the lock file of the server: line 4, if line 6 names an address."""
    try:
        lines = (data / "postmaster.pid").read_text().splitlines()
    except FileNotFoundError:
        return None
    return int(lines[3]) if len(lines) > 5 and lines[5].strip() else None
