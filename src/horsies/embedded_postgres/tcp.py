"""TCP for the embedded server, when asked for: one port of 127.0.0.1, one role, one password."""

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
    """Refuse a port that the server could not have, before anything is made for it."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # as PostgreSQL does
        try:
            probe.bind((_ADDRESS, port))
        except OSError as error:
            raise refusal(
                f"embedded PostgreSQL cannot have port {port} of {_ADDRESS}: {error.strerror}",
                cure="choose another port, or end the program that has this one",
            ) from error


def require_port(data: Path, port: int) -> None:
    """Refuse a running server that does not listen on this port."""
    found = _port(data)
    if found != port:
        listens = "without a TCP port" if found is None else f"on port {found}"
        raise refusal(
            f"embedded PostgreSQL already runs {listens}, so it cannot have port {port}",
            cure=f"stop it first: horsies pg stop, then: horsies pg start --port {port}",
        )


def url(home: Home) -> str | None:
    """The URL, password included, of a server that runs; None when it has no TCP port."""
    port = _port(home.data)
    if port is None or not home.password.exists():
        return None
    return f"postgresql://{_ROLE}:{home.password.read_text().strip()}@{_ADDRESS}:{port}/horsies"


def set_password(home: Home, superuser_url: str) -> None:
    """Let the role log in by TCP. No other role has a password, so no other can."""
    if not home.password.exists():
        temporary = home.password.with_name("password.tmp")
        temporary.touch(mode=0o600)
        temporary.write_text(f"{secrets.token_urlsafe(24)}\n")
        temporary.replace(home.password)
    password = home.password.read_text().strip()
    statement = files("horsies.embedded_postgres").joinpath("sql", "set_password.sql").read_bytes()
    with psycopg.connect(superuser_url) as connection:
        # Hashed on our side: always SCRAM, and no log can show the password.
        verifier = connection.pgconn.encrypt_password(
            password.encode(), _ROLE.encode(), b"scram-sha-256"
        )
        psycopg.ClientCursor(connection).execute(statement, [verifier.decode()])


def _port(data: Path) -> int | None:
    """The port in the server's own lock file: line 4, when line 6 names an address."""
    try:
        lines = (data / "postmaster.pid").read_text().splitlines()
    except FileNotFoundError:
        return None
    return int(lines[3]) if len(lines) > 5 and lines[5].strip() else None
