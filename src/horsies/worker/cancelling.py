"""Ends running tasks on request: told by a notification, sure by a look every two seconds."""

import asyncio
import logging

from horsies.database.statement import is_passing
from horsies.database.workers import cancel_requests
from horsies.worker.dispatcher import Dispatcher
from horsies.worker.link import Link

CANCEL_CHANNEL = "horsies_cancel"
_logger = logging.getLogger("horsies.worker")
_INTERVAL_S = 2.0


class CancelWatch:
    """Looks for stored cancel requests while anything runs."""

    def __init__(self, link: Link, dispatcher: Dispatcher, worker_id: str) -> None:
        self._link = link
        self._dispatcher = dispatcher
        self._worker_id = worker_id
        self._wake = asyncio.Event()

    def look(self, task_id: str) -> None:
        """Someone asked to end this task; it matters if it runs here."""
        if not task_id or task_id in self._dispatcher.running:
            self._wake.set()

    async def run(self) -> None:
        while True:
            try:
                async with asyncio.timeout(_INTERVAL_S):
                    await self._wake.wait()
            except TimeoutError:
                pass
            self._wake.clear()
            try:
                await self.run_once()
            except Exception as error:  # a service loop: the next look tries again
                if not is_passing(error):
                    raise
                _logger.warning("cancel requests not read, the next look tries again: %s", error)

    async def run_once(self) -> int:
        """Stop what was asked to stop; how many."""
        if not self._dispatcher.running:
            return 0
        rows = await self._link.run(cancel_requests(self._worker_id))
        for row in rows:
            self._dispatcher.stop(row.value, "cancel")
        return len(rows)
