"""Reports tasks that wait because this worker does not know their names (`unknown_tasks="leave"`).

They are left to a worker that knows them, as during a rolling release (decision 0022).
"""

import logging
from collections.abc import Sequence

from horsies.app import Horsies
from horsies.worker.service_connection import ServiceConnection
from horsies.worker.settings import ServedQueue
from horsies.worker.statements import unknown_tasks

_logger = logging.getLogger("horsies.worker")


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
