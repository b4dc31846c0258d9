"""Tasks whose names this worker does not know, as during a rolling release (decision 0022).

With `unknown_tasks="fail"` they fail, unless another worker knows them; with "leave" they wait.
"""

import logging
from collections.abc import Callable, Sequence

from horsies.app import Horsies
from horsies.clock import monotonic
from horsies.tasks.definition import TaskDefinition
from horsies.worker.held_task import HeldTask
from horsies.worker.lanes import Lanes
from horsies.worker.service_connection import ServiceConnection
from horsies.worker.settings import ServedQueue
from horsies.worker.statements import names_known_to_peers, unknown_tasks

_logger = logging.getLogger("horsies.worker")
_ASK_AGAIN_S = 60.0


class UnknownNames:
    """Leaves names that a living peer knows to that peer; what nobody knows fails here."""

    def __init__(
        self,
        connection: ServiceConnection,
        worker_id: str,
        lanes: Lanes,
        definition_of: Callable[[str], TaskDefinition | None],
    ) -> None:
        self._connection = connection
        self._worker_id = worker_id
        self._lanes = lanes
        self._definition_of = definition_of
        self._left: set[str] = set()
        self._ask_again_at = 0.0

    async def leave_to_peers(self, tasks: Sequence[HeldTask]) -> None:
        """Mark claimed tasks that a peer can run: they go back, and no more of them are claimed."""
        names = {t.task_name for t in tasks if self._definition_of(t.task_name) is None}
        if not names:
            return
        statement = names_known_to_peers(self._worker_id, sorted(names))
        known = {str(row.value) for row in await self._connection.run(statement)}
        if not known:
            return
        for task in tasks:
            if task.task_name in known:
                task.stop = "drain"
        self._left |= known
        self._ask_again_at = monotonic() + _ASK_AGAIN_S
        self._lanes.leave_out(self._left)
        _logger.info("left to workers that know them: %s", ", ".join(sorted(known)))

    def take_again(self) -> None:
        """Now and then such tasks are claimed again: their workers may have gone."""
        if self._left and monotonic() >= self._ask_again_at:
            self._left.clear()
            self._lanes.leave_out(self._left)


class UnknownTasks:
    """Looks now and then for tasks that nobody here can run."""

    name = "unknown tasks"
    interval_s = 60.0

    def __init__(
        self, connection: ServiceConnection, queues: Sequence[str], names: Sequence[str]
    ) -> None:
        self._connection = connection
        self._queues = list(queues)
        self._names = list(names)

    async def run_once(self) -> int:
        """Tell which names wait; return how many there are."""
        found = await self._connection.run(unknown_tasks(self._queues, self._names))
        if found:
            shown = ", ".join(f"{one.task_name} ({one.waiting_count})" for one in found)
            _logger.warning("tasks wait whose names this worker does not know: %s", shown)
        return len(found)


def unknown_tasks_reports(
    app: Horsies, connection: ServiceConnection, queues: Sequence[ServedQueue]
) -> list[UnknownTasks]:
    """The service, if tasks of unknown names are left."""
    if app.config.unknown_tasks == "fail":
        return []
    return [UnknownTasks(connection, [queue.name for queue in queues], app.list_tasks())]
