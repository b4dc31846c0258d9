"""Tells the queues when a retry becomes due, so that no worker waits for its next poll."""

import asyncio
import heapq

from horsies.clock import monotonic
from horsies.database.workers import notify
from horsies.worker.link import Link

_CHANNEL_LIMIT = 63  # PostgreSQL's limit for channel names, in bytes


class RetryBell:
    """Due times of the retries this worker has scheduled."""

    def __init__(self, link: Link) -> None:
        self._link = link
        self._due: list[tuple[float, str, str]] = []
        self._wake = asyncio.Event()

    def add(self, task_id: str, queue_name: str, after_s: float) -> None:
        heapq.heappush(self._due, (monotonic() + after_s, task_id, queue_name))
        self._wake.set()

    async def run(self) -> None:
        while True:
            self._wake.clear()
            pause = None if not self._due else max(0.0, self._due[0][0] - monotonic())
            try:
                async with asyncio.timeout(pause):
                    await self._wake.wait()
            except TimeoutError:
                await self._ring()

    async def _ring(self) -> None:
        notifications: list[tuple[str, str]] = []
        while self._due and self._due[0][0] <= monotonic():
            _, task_id, queue_name = heapq.heappop(self._due)
            channel = f"task_queue_{queue_name}"
            if len(channel.encode()) <= _CHANNEL_LIMIT:
                notifications.append((channel, f"retry:{task_id}"))
        if notifications:
            await self._link.persistently(
                "announcing retries", lambda: self._link.run(notify(notifications))
            )
