"""The server of `horsies web`, over real sockets."""

import socket
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from horsies.web import server
from support.eventually import eventually
from support.web_server import serving

HALF_SENT = {
    "nothing": b"",
    "a line": b"GET / HT",
    "headers": b"GET / HTTP/1.1\r\nHost: localhost\r\nX: ",
    "a form": b"POST /tasks/act HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n\r\nx",
    "a second request": b"GET /workers HTTP/1.1\r\nHost: localhost\r\n\r\nGET / HT",
}


@pytest.fixture
def url(shop: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    monkeypatch.setattr(server, "REQUEST_S", 0.3)
    with serving(shop.app, has_worker=False) as made:
        yield made


def is_closed(connection: socket.socket, dripped: bytes = b"") -> bool:
    """Whether the server has ended the connection, after it was sent this."""
    try:
        connection.sendall(dripped)
        while connection.recv(100_000):
            pass
    except TimeoutError:
        return False
    except OSError:
        return True
    return True


def connect(url: str) -> socket.socket:
    made = socket.create_connection(("127.0.0.1", int(url.rpartition(":")[2])))
    made.settimeout(0.01)
    return made


@pytest.mark.parametrize("case", HALF_SENT)
def test_a_request_that_stops_half_way_is_ended(url: str, case: str) -> None:
    with connect(url) as connection:
        connection.sendall(HALF_SENT[case])

        eventually(lambda: is_closed(connection))


def test_a_request_that_comes_byte_by_byte_is_ended(url: str) -> None:
    with connect(url) as connection:
        connection.sendall(HALF_SENT["headers"])

        eventually(lambda: is_closed(connection, b"x"))


def test_a_page_that_waits_for_news_is_not_ended(url: str) -> None:
    with httpx.stream("GET", f"{url}/events", timeout=30) as events:
        lines = [line for line, _ in zip(events.iter_lines(), range(5), strict=False)]

    assert "data: changed" in lines, "it came after seconds, which is longer than the limit"
