"""Messages on a socket: four bytes of length, then a compact JSON array. Never pickle.

A long text travels ahead of its message, as plain UTF-8 in frames of its own. So neither side
holds more than a small part of it besides the text itself.
"""

import struct
from collections.abc import Iterator
from typing import Any, TypeAlias

from pydantic_core import from_json, to_json

Message: TypeAlias = list[Any]  # parsed JSON: each reader knows the fields of its messages

# Messages with texts of more characters than this are sent by `pack_long`.
LONG_TEXT = 1 << 18

_LENGTH = struct.Struct("!I")
_IS_TEXT = 1 << 31
# Far beyond any message; text that is no frame reads as a length of at least 512 MiB.
_MAX_BYTES = 1 << 28


class UnreadableFrameError(Exception):
    """The bytes on the socket are no message of ours."""


def pack(*fields: object) -> bytes:
    """Encode one message."""
    body = to_json(fields)
    return _LENGTH.pack(len(body)) + body


def pack_long(*fields: object) -> Iterator[bytes]:
    """Encode one message as several frames, made one by one; their order matters."""
    short_fields: list[object] = []
    for field in fields:
        if isinstance(field, str) and len(field) > LONG_TEXT:
            starts = range(0, len(field), LONG_TEXT)
            for start in starts:
                piece = field[start : start + LONG_TEXT].encode()
                yield _LENGTH.pack(_IS_TEXT | len(piece)) + piece
            short_fields.append([len(starts)])  # the only kind of field that is a list
        else:
            short_fields.append(field)
    yield pack(*short_fields)


class FrameReader:
    """Collects bytes as they arrive and yields whole messages."""

    def __init__(self) -> None:
        self._buffer = bytearray()
        self._pieces: list[str] = []

    def feed(self, received: bytes) -> Iterator[Message]:
        """Add bytes; yield each message they complete, or raise UnreadableFrameError."""
        buffer = self._buffer
        buffer += received
        start = 0
        try:
            while len(buffer) - start >= _LENGTH.size:
                (head,) = _LENGTH.unpack_from(buffer, start)
                length = head & ~_IS_TEXT
                if length > _MAX_BYTES:
                    raise UnreadableFrameError(f"a frame of {length} bytes")
                end = start + _LENGTH.size + length
                if len(buffer) < end:
                    break
                body = bytes(memoryview(buffer)[start + _LENGTH.size : end])
                start = end  # before the yield: a reader that stops early loses nothing
                if head & _IS_TEXT:
                    self._pieces.append(body.decode())
                else:
                    yield self._read(body)
        except ValueError as error:
            raise UnreadableFrameError from error
        finally:
            del buffer[:start]

    def _read(self, body: bytes) -> Message:
        message: Message = from_json(body)
        if not self._pieces:
            return message
        return [self._take_text(*field) if type(field) is list else field for field in message]

    def _take_text(self, piece_count: int) -> str:
        text = "".join(self._pieces[:piece_count])
        del self._pieces[:piece_count]
        return text
