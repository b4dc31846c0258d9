"""A proxy before PostgreSQL's socket that can hang up, go mute, or be slow."""

import asyncio
import contextlib
import shutil
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit, urlunsplit


class Proxy:
    """Forwards bytes between clients and the server, unless told otherwise."""

    def __init__(self, target: str, directory: Path) -> None:
        self._target = target
        self._path = str(directory / ".s.PGSQL.5432")
        self._loop = asyncio.new_event_loop()
        self._writers: set[asyncio.StreamWriter] = set()
        self._flowing = asyncio.Event()
        self._flowing.set()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._is_up = threading.Event()
        self.delay_s = 0.0
        self.refuses = False

    def start(self) -> None:
        self._thread.start()
        assert self._is_up.wait(10)

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        server = self._loop.run_until_complete(asyncio.start_unix_server(self._serve, self._path))
        self._is_up.set()
        self._loop.run_forever()
        server.close()
        for task in asyncio.all_tasks(self._loop):
            task.cancel()
        self._loop.run_until_complete(asyncio.sleep(0.05))
        self._loop.close()

    def mute(self) -> None:
        """Accept, take, and never answer."""
        self._loop.call_soon_threadsafe(self._flowing.clear)

    def unmute(self) -> None:
        self._loop.call_soon_threadsafe(self._flowing.set)

    def hang_up(self) -> None:
        """End every connection that exists."""
        self._loop.call_soon_threadsafe(self._close_all)

    def _close_all(self) -> None:
        for writer in tuple(self._writers):
            writer.transport.abort()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self.refuses:
            writer.transport.abort()
            return
        server_reader, server_writer = await asyncio.open_unix_connection(self._target)
        self._writers |= {writer, server_writer}
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(self._pump(reader, server_writer))
                group.create_task(self._pump(server_reader, writer))
        except* (OSError, asyncio.CancelledError):
            pass
        finally:
            for one in (writer, server_writer):
                self._writers.discard(one)
                one.transport.abort()

    async def _pump(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(ConnectionError):
            while data := await reader.read(65_536):
                await self._flowing.wait()
                if self.delay_s:
                    await asyncio.sleep(self.delay_s)
                writer.write(data)
                await writer.drain()
        raise ConnectionResetError

    def close(self) -> None:
        self.hang_up()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(10)


@contextmanager
def proxied(url: str, kind: type[Proxy] = Proxy) -> Iterator[tuple[Any, str]]:
    """A proxy before the server of `url`, and the URL that leads through it."""
    parts = urlsplit(url)
    query: dict[str, Any] = parse_qs(parts.query)
    directory = Path(tempfile.mkdtemp(prefix="horsies-proxy-"))
    target = f"{query['host'][0]}/.s.PGSQL.{query.get('port', ['5432'])[0]}"
    proxy = kind(target, directory)
    proxy.start()
    try:
        new_query = urlencode({"host": str(directory), "port": "5432"})
        yield proxy, urlunsplit(parts._replace(query=new_query))
    finally:
        proxy.close()
        shutil.rmtree(directory)
