"""The TCP port of a server: only when asked for, only on 127.0.0.1, only with the password."""

import json
import os
import socket
import stat
from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.parse import urlsplit

import psutil
import psycopg
import pytest

from horsies import embedded_postgres
from horsies.embedded_postgres import EmbeddedServer
from horsies.errors import ConfigurationError
from support.cluster import give_data, make_directory, remove_directory
from support.embedded import Someone, kill9, postmaster_pid

Acquire = Callable[..., EmbeddedServer]

_START = """
import json, sys
from pathlib import Path
from urllib.parse import urlsplit
from horsies.embedded_postgres import acquire
project, port = json.loads(sys.argv[1])
print(acquire(Path(project), port=port, idle_timeout=60, quiet=True).tcp_url)
"""


@pytest.fixture
def port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        found: int = probe.getsockname()[1]
        return found


@pytest.fixture
def taken_port() -> Iterator[int]:
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server.getsockname()[1]


@pytest.fixture(scope="module")
def open_server() -> Iterator[EmbeddedServer]:
    """A server with a port, for tests that only look at it."""
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port = probe.getsockname()[1]
    project = give_data(make_directory())
    server = embedded_postgres.acquire(project, quiet=True, port=port)
    yield server
    server.release()
    remove_directory(project)


def _project(server: EmbeddedServer) -> Path:
    return server.directory.parents[1]


def _port(server: EmbeddedServer) -> int:
    return urlsplit(server.tcp_url or "").port or 0


def _who(url: str) -> tuple[object, ...] | None:
    with psycopg.connect(url) as connection:
        return connection.execute("select current_user, host(inet_server_addr())").fetchone()


@pytest.mark.usefixtures("has_data")
@pytest.mark.parametrize("someone", ["root", "ordinary user"], indirect=True)
def test_password_in_a_private_file_lets_its_owner_in(
    project: Path, someone: Someone, port: int
) -> None:
    arguments = json.dumps([str(someone.own(project)), port])

    printed, errors = someone.start(["-c", _START, arguments]).communicate()

    assert errors == ""
    assert _who(printed.strip()) == ("horsies", "127.0.0.1")
    file = project / ".horsies/pg/password"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert file.stat().st_uid == (os.geteuid() if someone.uid is None else someone.uid)
    assert f":{file.read_text().strip()}@" in printed


def test_password_does_not_show_in_a_repr(open_server: EmbeddedServer) -> None:
    password = (open_server.directory / "password").read_text().strip()

    assert password in (open_server.tcp_url or "")
    assert password not in repr(open_server)
    assert password not in repr(embedded_postgres.status(_project(open_server)))


def test_nobody_gets_in_without_the_password(open_server: EmbeddedServer) -> None:
    port = _port(open_server)

    with pytest.raises(psycopg.OperationalError, match="password authentication failed"):
        psycopg.connect(f"postgresql://horsies:guess@127.0.0.1:{port}/horsies")
    with pytest.raises(psycopg.OperationalError, match="no password supplied"):
        psycopg.connect(f"postgresql://horsies@127.0.0.1:{port}/horsies")
    with pytest.raises(psycopg.OperationalError, match="password authentication failed"):
        psycopg.connect(f"postgresql://postgres:guess@127.0.0.1:{port}/horsies")


def test_other_addresses_of_the_machine_are_closed(open_server: EmbeddedServer) -> None:
    port = _port(open_server)
    found = [address for addresses in psutil.net_if_addrs().values() for address in addresses]
    internet = {a.address for a in found if a.family in (socket.AF_INET, socket.AF_INET6)}

    for address in (internet | {"127.0.0.2"}) - {"127.0.0.1"}:
        with pytest.raises(OSError, match="refused"):
            socket.create_connection((address, port), timeout=5)
    socket.create_connection(("127.0.0.1", port), timeout=5).close()


@pytest.mark.usefixtures("has_data")
def test_socket_keeps_its_url_and_password_its_value(acquire: Acquire, port: int) -> None:
    plain = acquire()
    assert plain.tcp_url is None
    project = plain.directory.parents[1]
    embedded_postgres.stop(project)

    first = acquire(port=port)
    assert first.url == plain.url
    assert _who(first.url) == ("horsies", None)
    pid = postmaster_pid(project)
    assert pid
    kill9(pid)

    assert acquire(port=port).tcp_url == first.tcp_url
    assert _who(first.tcp_url or "") == ("horsies", "127.0.0.1")
    embedded_postgres.stop(project)
    assert list((plain.directory / "run").iterdir()) == []
    assert acquire().tcp_url is None


def test_long_project_path_has_room_for_a_port(acquire: Acquire, project: Path, port: int) -> None:
    server = acquire(directory=give_data(project / ("d" * 150)), port=port)

    assert _who(server.url) == ("horsies", None)
    assert _who(server.tcp_url or "") == ("horsies", "127.0.0.1")
    embedded_postgres.stop(project / ("d" * 150))


def test_taken_port_is_named_and_nothing_is_left_behind(
    acquire: Acquire, project: Path, taken_port: int
) -> None:
    with pytest.raises(ConfigurationError, match=f"port {taken_port} .*already in use"):
        acquire(port=taken_port)
    assert list(project.iterdir()) == []

    server = acquire()
    embedded_postgres.stop(project)
    with pytest.raises(ConfigurationError, match=f"port {taken_port} .*already in use"):
        acquire(port=taken_port)
    assert not (server.directory / "password").exists()
    assert _who(acquire().url) == ("horsies", None)


def test_port_belongs_to_the_running_server(
    acquire: Acquire, open_server: EmbeddedServer, taken_port: int
) -> None:
    running, port = {"directory": _project(open_server)}, _port(open_server)

    assert acquire(**running, port=port).tcp_url == open_server.tcp_url
    assert acquire(**running).tcp_url == open_server.tcp_url
    with pytest.raises(ConfigurationError, match=f"already runs on port {port}") as raised:
        acquire(**running, port=taken_port)
    assert "horsies pg stop" in str(raised.value)
    assert _who(open_server.tcp_url or "") == ("horsies", "127.0.0.1")


def test_server_without_a_port_does_not_get_one(
    acquire: Acquire, idle_server: EmbeddedServer, port: int
) -> None:
    with pytest.raises(ConfigurationError, match="already runs without a TCP port"):
        acquire(directory=_project(idle_server), port=port)
