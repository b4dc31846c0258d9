"""The HTTP server of `horsies web`: uvicorn, with a limit on how long a request may arrive."""

import asyncio
import logging

import h11
import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from horsies.app import Horsies
from horsies.web.application import create_app
from horsies.web.options import WebOptions

# The largest form has 1 MiB; a client that takes longer holds the connection without end.
REQUEST_S = 20.0
_ARRIVING = (h11.IDLE, h11.SEND_BODY)


class TimedProtocol(H11Protocol):
    """Closes a connection on which no whole request has arrived within the limit."""

    _deadline: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._set_deadline()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        if self.conn.their_state not in _ARRIVING:
            self._drop_deadline()
        elif self._deadline is None:
            self._set_deadline()

    def connection_lost(self, exc: Exception | None) -> None:
        self._drop_deadline()
        super().connection_lost(exc)

    def _set_deadline(self) -> None:
        self._deadline = self.loop.call_later(REQUEST_S, self.transport.abort)

    def _drop_deadline(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None


def make_server(app: Horsies, options: WebOptions, root_path: str = "") -> uvicorn.Server:
    """The server of a dashboard; it is given the sockets to listen on."""
    return uvicorn.Server(
        uvicorn.Config(
            create_app(app, options),
            http=TimedProtocol,
            ws="none",
            log_level=logging.WARNING,
            root_path=root_path,
            proxy_headers=False,  # who asks is known by the address, which a header could forge
            server_header=False,
            timeout_graceful_shutdown=1,  # open pages wait for news without end
        )
    )
