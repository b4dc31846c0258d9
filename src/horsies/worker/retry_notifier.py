"""Tells the queues when a retry becomes due, so that no worker waits for its next poll."""

import asyncio
import heapq
import logging

import psycopg

from horsies.clock import monotonic
from horsies.database.notifications import notify, queue_channel
from horsies.worker.service_connection import ServiceConnection

_logger = logging.getLogger("horsies.worker")
# Beyond these, polls and looks ahead find what is due: memory must not grow with what has failed.
_MAX_PENDING = 10_000


class RetryNotifier:
    """Due times of the retries this worker has scheduled."""

    def __init__(self, connection: ServiceConnection) -> None:
        self._connection = connection
        self._due: list[tuple[float, str, str]] = []
        self._wake = asyncio.Event()

    def add(self, task_id: str, queue_name: str, after_s: float) -> None:
        if len(self._due) >= _MAX_PENDING:
            return
        heapq.heappush(self._due, (monotonic() + after_s, task_id, queue_name))
        self._wake.set()

    async def run(self) -> None:
        """Notify at each due time, until cancelled."""
        while True:
            self._wake.clear()
            pause = None if not self._due else max(0.0, self._due[0][0] - monotonic())
            try:
                async with asyncio.timeout(pause):
                    await self._wake.wait()
            except TimeoutError:
                await self._notify()

    async def _notify(self) -> None:
        due: list[tuple[str, str]] = []
        while self._due and self._due[0][0] <= monotonic():
            _, task_id, queue_name = heapq.heappop(self._due)
            due.append((queue_channel(queue_name), f"retry:{task_id}"))
        if due:
            try:
                await self._connection.persistently(
                    "announcing retries", lambda: self._connection.run(notify(due))
                )
            except psycopg.Error:  # polling finds them, too
                _logger.exception("could not announce %d retries", len(due))
