"""A proxy before PostgreSQL that can hang up, go mute, be slow, or hold one statement."""

import asyncio
import contextlib
import shutil
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal

from support.eventually import eventually
from support.urls import Place, changed, place_of
from support.wire import Answers, Questions

Side = Literal["asked", "answered"]


class Hold:
    """One statement held on its way: asked but unseen by the server, or committed but untold."""

    def __init__(self, texts: tuple[str, ...], side: Side) -> None:
        self._texts = [text.encode() for text in texts]
        self.side = side
        self.is_taken = False
        self.is_held = threading.Event()

    def matches(self, statement: bytes) -> bool:
        return not self.is_taken and all(text in statement for text in self._texts)

    def wait(self, within: float = 30.0) -> None:
        """Until a statement is held."""
        eventually(self.is_held.is_set, within=within)


class Proxy:
    """Forwards bytes between clients and the server, unless told otherwise."""

    def __init__(self, target: Place, directory: Path) -> None:
        self._target = target
        self._path = str(directory / ".s.PGSQL.5432")
        self._loop = asyncio.new_event_loop()
        self._writers: set[asyncio.StreamWriter] = set()
        self._flowing = asyncio.Event()
        self._flowing.set()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._is_up = threading.Event()
        self._holds: list[Hold] = []
        self.delay_s = 0.0
        self.refuses = False

    def start(self) -> None:
        self._thread.start()
        assert self._is_up.wait(10)

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        server = self._loop.run_until_complete(asyncio.start_unix_server(self._serve, self._path))
        Path(self._path).chmod(0o777)  # a pooler of another account may stand before it
        self._is_up.set()
        self._loop.run_forever()
        server.close()
        self._loop.run_until_complete(self._end_all())
        self._loop.close()

    async def _end_all(self) -> None:
        """Every connection ends, and its socket is closed: that takes the loop another round."""
        serving = asyncio.all_tasks() - {asyncio.current_task()}
        for task in serving:
            task.cancel()
        await asyncio.gather(*serving, return_exceptions=True)
        for _ in range(5):
            await asyncio.sleep(0.01)

    def mute(self) -> None:
        """Accept, take, and never answer."""
        self._loop.call_soon_threadsafe(self._flowing.clear)

    def unmute(self) -> None:
        self._loop.call_soon_threadsafe(self._flowing.set)

    def hold(self, *texts: str, side: Side) -> Hold:
        """Hold the next statement with all these texts, and its connection, until they end."""
        hold = Hold(texts, side)
        self._holds.append(hold)
        return hold

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
        try:
            server_reader, server_writer = await self._connect()
        except BaseException:
            writer.transport.abort()
            raise
        self._writers |= {writer, server_writer}
        line = _Line(self._holds)
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(self._pump(reader, server_writer, line.may_ask))
                group.create_task(self._pump(server_reader, writer, line.may_answer))
        except* (OSError, asyncio.CancelledError):
            pass
        finally:
            for one in (writer, server_writer):
                self._writers.discard(one)
                one.transport.abort()

    async def _connect(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        if self._target.socket:
            return await asyncio.open_unix_connection(self._target.socket)
        return await asyncio.open_connection(*self._target)

    async def _pump(
        self,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        may_pass: Callable[[bytes], bool],
    ) -> None:
        with contextlib.suppress(ConnectionError):
            while data := await reader.read(65_536):
                await self._flowing.wait()
                if self.delay_s:
                    await asyncio.sleep(self.delay_s)
                if may_pass(data):
                    writer.write(data)
                    await writer.drain()
        raise ConnectionResetError

    def close(self) -> None:
        self.hang_up()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(10)


class _Line:
    """One connection: what is held on it stays held, and nothing passes after it."""

    def __init__(self, holds: list[Hold]) -> None:
        self._holds = holds
        self._questions = Questions()
        self._answers = Answers()
        self._hold: Hold | None = None

    def may_ask(self, data: bytes) -> bool:
        for statement in self._questions.feed(data):
            for hold in self._holds:
                if hold.matches(statement):
                    hold.is_taken = True
                    self._hold = hold
        if self._hold is None or self._hold.side == "answered":
            return True
        self._hold.is_held.set()
        return False

    def may_answer(self, data: bytes) -> bool:
        is_settled = self._answers.is_settled_by(data)
        if self._hold is not None and self._hold.side == "answered" and is_settled:
            self._hold.is_held.set()
        return self._hold is None or not self._hold.is_held.is_set()


@contextmanager
def proxied(url: str, kind: type[Proxy] = Proxy) -> Iterator[tuple[Any, str]]:
    """A proxy before the server of `url`, and the URL that leads through it."""
    directory = Path(tempfile.mkdtemp(prefix="horsies-proxy-"))
    directory.chmod(0o755)
    proxy = kind(place_of(url), directory)
    proxy.start()
    try:
        yield proxy, changed(url, place=Place(str(directory), 5432))
    finally:
        proxy.close()
        shutil.rmtree(directory)
