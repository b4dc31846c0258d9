"""The dashboard and a worker, served from a thread for a browser."""

import asyncio
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from horsies import Horsies
from horsies.web import WebOptions
from horsies.web.server import make_server
from support.apps import working
from support.eventually import eventually
from support.web import operators


@contextmanager
def serving(
    app: Horsies, *, has_worker: bool = True, port: int = 0, **settings: Any
) -> Iterator[str]:
    """The URL of the app's dashboard with these settings, while a worker serves its tasks."""
    with socket.create_server(("127.0.0.1", port)) as listening:
        server = make_server(app, WebOptions(**{"authenticate": operators, **settings}))

        async def run() -> None:
            if not has_worker:
                await server.serve(sockets=[listening])
                return
            async with working(app):
                await server.serve(sockets=[listening])

        thread = threading.Thread(target=lambda: asyncio.run(run()), name="dashboard under test")
        thread.start()
        try:
            eventually(lambda: server.started)
            yield f"http://127.0.0.1:{listening.getsockname()[1]}"
        finally:
            server.should_exit = True
            thread.join(30)
