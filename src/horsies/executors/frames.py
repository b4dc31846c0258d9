"""Messages on a socket: four bytes of length, then a compact JSON array. Never pickle."""

import struct
from collections.abc import Iterator
from typing import Any, TypeAlias

from pydantic_core import from_json, to_json

Message: TypeAlias = list[Any]  # parsed JSON: each reader knows the fields of its messages

_LENGTH = struct.Struct("!I")
# Far beyond any message; text that is no frame reads as a length of at least 512 MiB.
_MAX_BYTES = 1 << 28


class UnreadableFrameError(Exception):
    """The bytes on the socket are no message of ours."""


def pack(*fields: object) -> bytes:
    """Encode one message."""
    body = to_json(fields)
    return _LENGTH.pack(len(body)) + body


class FrameReader:
    """Collects bytes as they arrive and yields whole messages."""

    def __init__(self) -> None:
        self._buffer = bytearray()

    def feed(self, received: bytes) -> Iterator[Message]:
        """Add bytes; yield each message they complete."""
        buffer = self._buffer
        buffer += received
        start = 0
        try:
            while len(buffer) - start >= _LENGTH.size:
                (length,) = _LENGTH.unpack_from(buffer, start)
                if length > _MAX_BYTES:
                    raise UnreadableFrameError(f"a frame of {length} bytes")
                end = start + _LENGTH.size + length
                if len(buffer) < end:
                    break
                body = bytes(memoryview(buffer)[start + _LENGTH.size : end])
                start = end  # before the yield: a reader that stops early loses nothing
                try:
                    message = from_json(body)
                except ValueError as error:
                    raise UnreadableFrameError from error
                yield message
        finally:
            del buffer[:start]
