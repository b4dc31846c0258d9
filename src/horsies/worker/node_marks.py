"""Shows which nodes of workflows run: a node whose task runs for longer than a moment is marked.

Most tasks end without a mark. Only a pause or cancel waits for it (worker/stopped_nodes.py).
"""

from horsies.clock import monotonic
from horsies.worker.dispatcher import Dispatcher
from horsies.worker.service_connection import ServiceConnection
from horsies.workflows.statements import mark_running_nodes

_MOMENT_S = 0.1


class NodeMarks:
    """Looks at the running tasks a few times a second; asks the database only if there is one."""

    name = "node marks"
    interval_s = 0.2

    def __init__(self, connection: ServiceConnection, dispatcher: Dispatcher) -> None:
        self._connection = connection
        self._dispatcher = dispatcher
        self._marked: set[str] = set()

    async def run_once(self) -> int:
        """Mark what has run for a moment; return how many."""
        running = [t for t in self._dispatcher.running.values() if t.is_workflow_task]
        self._marked.intersection_update(task.task_id for task in running)
        began_before = monotonic() - _MOMENT_S
        due = [
            task.task_id
            for task in running
            if task.held_since <= began_before
            and task.task_id not in self._marked
            and self._dispatcher.has_begun(task)
        ]
        if due:
            await self._connection.run(mark_running_nodes(due))
            self._marked.update(due)
        return len(due)
