"""Stores what running tasks report of themselves, once a second and only what is new."""

from horsies.executors.base import Progress
from horsies.worker.dispatcher import Dispatcher
from horsies.worker.held_task import HeldTask
from horsies.worker.lanes import Lane
from horsies.worker.service_connection import ServiceConnection
from horsies.worker.statements import store_progress

_BATCH = 500


class ProgressReports:
    """The last report of an attempt is not stored here but with its end, by the completer."""

    name = "progress reports"
    interval_s = 1.0

    def __init__(
        self, connection: ServiceConnection, lanes: list[Lane], dispatcher: Dispatcher
    ) -> None:
        self._connection = connection
        self._lanes = lanes
        self._dispatcher = dispatcher
        self._stored: dict[str, Progress] = {}

    async def run_once(self) -> int:
        """Store the reports that have changed; return how many."""
        for lane in self._lanes:
            lane.executor.collect_progress()
        reports = {
            task.task_id: (task, task.progress)
            for task in self._dispatcher.running.values()
            if task.progress is not None
        }
        new = [one for one in reports.values() if self._stored.get(one[0].task_id) != one[1]]
        for start in range(0, len(new), _BATCH):
            await self._store(new[start : start + _BATCH])
        self._stored = {task_id: progress for task_id, (_, progress) in reports.items()}
        return len(new)

    async def _store(self, reports: list[tuple[HeldTask, Progress]]) -> None:
        await self._connection.run(store_progress(reports))
