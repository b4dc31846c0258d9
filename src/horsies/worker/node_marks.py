"""Shows which nodes of workflows run: a node whose task runs for longer than a moment is marked.

Nothing depends on the mark, so most tasks end without one.
"""

import asyncio

from horsies.clock import monotonic
from horsies.worker.dispatcher import Dispatcher
from horsies.worker.service_connection import ServiceConnection
from horsies.workflows.statements import mark_running_nodes

_MOMENT_S = 0.1


class NodeMarks:
    """Looks at the running tasks ten times a second while any of them belongs to a workflow."""

    name = "node marks"

    def __init__(self, connection: ServiceConnection, dispatcher: Dispatcher) -> None:
        self._connection = connection
        self._dispatcher = dispatcher
        self._marked: set[str] = set()
        self.interval_s = 3600.0
        self.woken = asyncio.Event()

    def wake(self) -> None:
        """A task of a workflow has begun."""
        if self.interval_s > _MOMENT_S:
            self.interval_s = _MOMENT_S
            self.woken.set()

    async def run_once(self) -> int:
        """Mark what has run for a moment; return how many."""
        running = [t for t in self._dispatcher.running.values() if t.is_workflow_task]
        self._marked.intersection_update(task.task_id for task in running)
        began_before = monotonic() - _MOMENT_S
        due = [
            task.task_id
            for task in running
            if task.held_since <= began_before and task.task_id not in self._marked
        ]
        if due:
            await self._connection.run(mark_running_nodes(due))
            self._marked.update(due)
        if len(self._marked) == len(running):
            self.interval_s = 3600.0
        return len(due)
