"""A small HTTP server for health checks and metrics, in threads of its own.

It answers while the event loop of its process is blocked, unless a C extension holds the
interpreter's lock.
"""

import contextlib
import json
import logging
import socket
import threading
from collections.abc import Callable, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple

from horsies.clock import monotonic
from horsies.codes import ErrorCode
from horsies.errors import ConfigurationError

_logger = logging.getLogger("horsies.http")
# A client that sends nothing, or a byte now and then, must not hold a thread for ever.
_REQUEST_S = 10.0


class Page(NamedTuple):
    status: int
    content_type: str
    body: bytes


Pages = Mapping[str, Callable[[str], Page]]  # by path; each is given the Accept header


def json_page(status: int, value: object) -> Page:
    return Page(status, "application/json", json.dumps(value).encode() + b"\n")


class PageServer:
    """Serves pages until it is closed."""

    def __init__(self, host: str, port: int, pages: Pages) -> None:
        try:
            self._server = _make_server(host, port, pages)
        except OSError as error:
            raise ConfigurationError(
                f"cannot serve on {host}:{port}: {error.strerror or error}",
                ErrorCode.CLI_INVALID_ARGS,
                help_text="choose another port or host; port 0 takes a free one",
            ) from error
        self._thread = threading.Thread(
            target=self._server.serve_forever, name="horsies-http", daemon=True
        )

    @property
    def address(self) -> str:
        host, port = self._server.server_address[:2]
        shown = f"[{host!s}]" if ":" in str(host) else str(host)
        return f"http://{shown}:{port}"

    def start(self) -> None:
        self._thread.start()
        _logger.info("serving %s", self.address)

    def serve_forever(self) -> None:
        """Serve in this thread."""
        self._server.serve_forever()

    def close(self) -> None:
        if self._thread.is_alive():
            self._server.shutdown()
        self._server.server_close()


def _make_server(host: str, port: int, pages: Pages) -> ThreadingHTTPServer:
    class Handler(BaseHTTPRequestHandler):
        timeout = _REQUEST_S

        def do_GET(self) -> None:
            page = self._page()
            self.send_response(page.status)
            self.send_header("Content-Type", page.content_type)
            self.send_header("Content-Length", str(len(page.body)))
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(page.body)

        do_HEAD = do_GET  # noqa: N815 - as above

        def _page(self) -> Page:
            path = self.path.partition("?")[0]
            make = pages.get(path.rstrip("/") or "/")
            if make is None:
                return json_page(404, {"error": f"there is no {path}", "pages": sorted(pages)})
            return make(self.headers.get("Accept", ""))

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - its own name
            _logger.debug(format, *args)

    return _Server(host, port, Handler)


class _Server(ThreadingHTTPServer):
    """A thread for each request; one that takes too long to arrive is ended."""

    daemon_threads = True

    def __init__(self, host: str, port: int, handler: type[BaseHTTPRequestHandler]) -> None:
        self.address_family = socket.AF_INET6 if ":" in host else socket.AF_INET
        self._deadlines: dict[socket.socket, float] = {}
        super().__init__((host, port), handler)

    def process_request(self, request: Any, client_address: Any) -> None:
        self._deadlines[request] = monotonic() + _REQUEST_S
        super().process_request(request, client_address)

    def shutdown_request(self, request: Any) -> None:
        self._deadlines.pop(request, None)
        super().shutdown_request(request)

    def service_actions(self) -> None:
        """Twice a second. The end of the connection wakes the thread that waits for its request."""
        now = monotonic()
        for request, deadline in list(self._deadlines.items()):
            if deadline < now:
                with contextlib.suppress(OSError):  # it has just ended by itself
                    request.shutdown(socket.SHUT_RDWR)
