"""Keeps the promise of pause and cancel: once they have answered, no further node begins.

A worker holds tasks that are RUNNING and wait for their slot. When it hears that a workflow stops,
it gives back those that have not begun, and marks the nodes of those that have; the call that
stops the workflow waits for both (`horsies_stop_workflow`).
"""

import asyncio

from horsies.clock import monotonic
from horsies.worker.dispatcher import Dispatcher
from horsies.worker.service_connection import ServiceConnection
from horsies.workflows.statements import mark_running_nodes, unmarked_stopped_tasks

# A little longer than the call waits; then nothing is owed to it.
_WATCHES_S = 1.0
_AGAIN_S = 0.01


class StoppedNodes:
    """Looks when it is told that a workflow stops, until all its tasks here are settled."""

    name = "stopped nodes"
    interval_s = 3600.0

    def __init__(
        self, connection: ServiceConnection, dispatcher: Dispatcher, worker_id: str
    ) -> None:
        self._connection = connection
        self._dispatcher = dispatcher
        self._worker_id = worker_id
        self._until = 0.0
        self.woken = asyncio.Event()

    def wake(self) -> None:
        """A workflow has just been stopped."""
        self._until = monotonic() + _WATCHES_S
        self.woken.set()

    async def run_once(self) -> int:
        """Settle the tasks of stopped workflows; return how many had begun."""
        if monotonic() >= self._until:
            return 0
        rows = await self._connection.run(unmarked_stopped_tasks(self._worker_id))
        begun: list[str] = []
        for row in rows:
            task = self._dispatcher.running.get(row.value)
            if task and not self._dispatcher.withdraw(task) and self._dispatcher.has_begun(task):
                begun.append(task.task_id)
        if begun:
            await self._connection.run(mark_running_nodes(begun))
        if rows:
            # What goes back is written in a moment; of others the claim's answer is on its way.
            asyncio.get_running_loop().call_later(_AGAIN_S, self.woken.set)
        return len(begun)
