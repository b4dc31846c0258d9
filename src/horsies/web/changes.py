"""Tells open pages that something has changed: often enough to look alive, no oftener."""

import asyncio
from collections.abc import AsyncIterator

from horsies.clock import monotonic
from horsies.operations.operations import Operations
from horsies.web.reads import Reads

# Ages grow and workers fall silent without any notification.
_AT_LEAST_EVERY_S = 5.0


class Changes:
    """Turns a flood of notifications into at most one word per tick for every open page."""

    def __init__(self, operations: Operations, reads: Reads, tick_s: float) -> None:
        self._operations = operations
        self._reads = reads
        self._tick_s = tick_s
        self._loop: asyncio.AbstractEventLoop | None = None
        self._changed = asyncio.Event()
        self._told_at = 0.0
        self._told_count = 0
        self._is_due = False

    async def stream(self) -> AsyncIterator[bytes]:
        """The lines of a text/event-stream, until the reader goes away."""
        await self._listen()
        seen = self._told_count
        yield b"retry: 2000\ndata: open\n\n"
        while True:
            # What was told while the reader was slow to take the last line counts too.
            if seen == self._told_count:
                await self._until_told()
            seen = self._told_count
            yield b"data: changed\n\n"

    async def _until_told(self) -> None:
        try:
            async with asyncio.timeout(_AT_LEAST_EVERY_S):
                await self._changed.wait()
        except TimeoutError:
            pass

    async def _listen(self) -> None:
        if self._loop is None:
            self._loop = asyncio.get_running_loop()
            # Connecting may take a while, or fail: then pages still hear something now and then.
            await asyncio.to_thread(self._operations.on_change, self._heard)

    def _heard(self) -> None:
        """On the listener's thread."""
        loop = self._loop
        if loop is not None and not loop.is_closed():
            loop.call_soon_threadsafe(self._tell_soon, loop)

    def _tell_soon(self, loop: asyncio.AbstractEventLoop) -> None:
        if not self._is_due:
            self._is_due = True
            loop.call_later(max(0.0, self._told_at + self._tick_s - monotonic()), self._tell)

    def _tell(self) -> None:
        self._is_due, self._told_at = False, monotonic()
        self._told_count += 1
        self._reads.heard_of_change()
        changed, self._changed = self._changed, asyncio.Event()
        changed.set()
