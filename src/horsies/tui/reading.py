"""Reading for views: a failure ends the reading, not the viewer; slow reads are rare."""

from collections.abc import Awaitable, Callable
from typing import Generic, TypeVar

from horsies.clock import monotonic
from horsies.result import Err
from horsies.result.broker import BrokerResult

T = TypeVar("T")


class ReadError(Exception):
    """The database did not answer; the text says why."""


def value(result: BrokerResult[T]) -> T:
    if isinstance(result, Err):
        raise ReadError(result.err_value.message)
    return result.ok_value


class Paced(Generic[T]):
    """The answer of a read that is not worth repeating at every refresh."""

    def __init__(self, read: Callable[[], Awaitable[BrokerResult[T]]], every_s: float) -> None:
        self._read = read
        self._every_s = every_s
        self._answer: T | None = None
        self._read_at: float | None = None

    def forget(self) -> None:
        """Read anew next time."""
        self._read_at = None

    async def get(self) -> T:
        if self._read_at is None or monotonic() - self._read_at >= self._every_s:
            self._answer = value(await self._read())
            self._read_at = monotonic()
        assert self._answer is not None
        return self._answer
