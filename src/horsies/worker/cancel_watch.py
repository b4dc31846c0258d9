"""Ends running tasks on request, which it learns by notification or by a look every two seconds."""

import asyncio

from horsies.worker.dispatcher import Dispatcher
from horsies.worker.service_connection import ServiceConnection
from horsies.worker.statements import cancel_requests


class CancelWatch:
    """Looks for stored cancel requests while anything runs."""

    name = "cancel watch"
    interval_s = 2.0

    def __init__(
        self, connection: ServiceConnection, dispatcher: Dispatcher, worker_id: str
    ) -> None:
        self._connection = connection
        self._dispatcher = dispatcher
        self._worker_id = worker_id
        self.woken = asyncio.Event()

    def is_concerned(self, task_id: str) -> bool:
        """Whether a request to end this task matters here, asked from any thread."""
        return not task_id or task_id in self._dispatcher.running

    async def run_once(self) -> int:
        """Stop the tasks that someone asked to stop; return how many."""
        if not self._dispatcher.running:
            return 0
        rows = await self._connection.run(cancel_requests(self._worker_id))
        for row in rows:
            self._dispatcher.stop(row.value, "cancel")
        return len(rows)
