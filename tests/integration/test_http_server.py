"""The small HTTP server of workers, over real sockets."""

import socket
from collections.abc import Iterator

import httpx
import pytest

from horsies.observability import http_server
from horsies.observability.http_server import PageServer, json_page
from support.eventually import eventually


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[PageServer]:
    monkeypatch.setattr(http_server, "_REQUEST_S", 0.3)
    made = PageServer("127.0.0.1", 0, {"/health": lambda _: json_page(200, {"ok": True})})
    made.start()
    yield made
    made.close()


def connect(server: PageServer) -> socket.socket:
    host, _, port = server.address.removeprefix("http://").rpartition(":")
    made = socket.create_connection((host, int(port)))
    made.settimeout(0.01)
    return made


def is_closed(connection: socket.socket, dripped: bytes = b"") -> bool:
    """Whether the server has ended the connection, after it was sent this."""
    try:
        connection.sendall(dripped)
        return connection.recv(100) == b""
    except TimeoutError:
        return False
    except OSError:
        return True


@pytest.mark.parametrize("begun", [b"", b"GET /hea", b"GET /health HTTP/1.1\r\nX: "])
def test_a_request_that_stops_half_way_is_ended(server: PageServer, begun: bytes) -> None:
    with connect(server) as connection:
        connection.sendall(begun)

        eventually(lambda: is_closed(connection))


def test_a_request_that_comes_byte_by_byte_is_ended(server: PageServer) -> None:
    with connect(server) as connection:
        connection.sendall(b"GET /health HTTP/1.1\r\nX: ")

        eventually(lambda: is_closed(connection, b"x"))

    assert httpx.get(f"{server.address}/health").json() == {"ok": True}
