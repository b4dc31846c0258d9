"""A proxy before PostgreSQL that counts what passes: statements, round trips, transactions."""

import re
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from support.proxy import Proxy, proxied
from support.wire import Messages

_WORD = re.compile(rb"horsies_\w+|\w+")


class Traffic(Proxy):
    """What all sessions through it have said since the last `clear`, logging in left out."""

    def __init__(self, target: str, directory: Path) -> None:
        super().__init__(target, directory)
        self.clear()

    def clear(self) -> None:
        # By the SQL function called, or by the statement's first word.
        self.statements: Counter[str] = Counter()
        self.round_trips = 0
        self.transactions = 0

    async def _serve(self, reader: Any, writer: Any) -> None:
        session = _Session(self)
        await super()._serve(_Reader(reader, session), _Writer(writer, session))  # type: ignore[arg-type]


class _Session:
    """One connection's two streams of messages."""

    def __init__(self, traffic: Traffic) -> None:
        self._traffic = traffic
        self._asked = Messages(has_start=True)
        self._answered = Messages(has_start=False)
        self._prepared: dict[bytes, bytes] = {}
        self._next = b""
        self._has_logged_in = False

    def ask(self, data: bytes) -> None:
        for kind, body in self._asked.feed(data):
            if kind == b"P":
                name, text, _ = body.split(b"\0", 2)
                self._prepared[name] = text
            elif kind == b"B":
                self._next = self._prepared[body.split(b"\0", 2)[1]]
            elif kind == b"E":
                self._count(self._next)
            elif kind == b"Q":
                self._count(body)

    def _count(self, text: bytes) -> None:
        words = _WORD.findall(text)
        named = [word for word in words if word.startswith(b"horsies_")]
        self._traffic.statements[(named or words)[0].decode()] += 1

    def answer(self, data: bytes) -> None:
        for kind, body in self._answered.feed(data):
            if kind != b"Z":
                continue
            if self._has_logged_in:
                self._traffic.round_trips += 1
                self._traffic.transactions += body == b"I"
            self._has_logged_in = True


class _Reader:
    def __init__(self, reader: Any, session: _Session) -> None:
        self._reader, self._session = reader, session

    async def read(self, size: int) -> bytes:
        data: bytes = await self._reader.read(size)
        self._session.ask(data)
        return data


class _Writer:
    def __init__(self, writer: Any, session: _Session) -> None:
        self._writer, self._session = writer, session

    def write(self, data: bytes) -> None:
        self._session.answer(data)
        self._writer.write(data)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._writer, name)


@contextmanager
def counted(url: str) -> Iterator[tuple[Traffic, str]]:
    """The counter before the server of `url`, and the URL that leads through it."""
    with proxied(url, Traffic) as (traffic, new_url):
        yield traffic, new_url
