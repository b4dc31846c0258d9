"""Reading PostgreSQL's wire protocol as it passes by: which statement is asked, when it is done."""

from collections.abc import Iterator


class Messages:
    """Cuts a stream of bytes into typed messages; only a client's first one has no type."""

    def __init__(self, *, has_start: bool) -> None:
        self._buffer = bytearray()
        self._is_typed = not has_start

    def feed(self, data: bytes) -> Iterator[tuple[bytes, bytes]]:
        self._buffer += data
        while True:
            prefix = 1 if self._is_typed else 0
            if len(self._buffer) < prefix + 4:
                return
            end = prefix + int.from_bytes(self._buffer[prefix : prefix + 4], "big")
            if len(self._buffer) < end:
                return
            yield bytes(self._buffer[:prefix]), bytes(self._buffer[prefix + 4 : end])
            del self._buffer[:end]
            self._is_typed = True


class Questions:
    """The statements a client asks for on one connection, also those it has prepared earlier."""

    def __init__(self) -> None:
        self._messages = Messages(has_start=True)
        self._prepared: dict[bytes, bytes] = {}

    def feed(self, data: bytes) -> Iterator[bytes]:
        """Text and parameters of each statement whose execution these bytes ask for."""
        for kind, body in self._messages.feed(data):
            if kind == b"P":
                name, text, _ = body.split(b"\0", 2)
                self._prepared[name] = text
            elif kind == b"B":
                _, name, parameters = body.split(b"\0", 2)
                yield self._prepared.get(name, b"") + parameters
            elif kind == b"Q":
                yield body


class Answers:
    """The server's side of one connection."""

    def __init__(self) -> None:
        self._messages = Messages(has_start=False)

    def is_settled_by(self, data: bytes) -> bool:
        """Whether these bytes say that the server is idle again: what was asked has committed."""
        return (b"Z", b"I") in list(self._messages.feed(data))
