"""Claimed, not yet started: the soft cap's prefetched rows.

Started in claim order as slots free up, or given back.
"""

import logging
from collections import deque
from datetime import timedelta

from horsies.clock import monotonic
from horsies.database.tasks import return_tasks, start_tasks
from horsies.tasks.claims import ClaimedTask
from horsies.worker.dispatcher import Dispatcher
from horsies.worker.lanes import Lane
from horsies.worker.link import Link

_logger = logging.getLogger("horsies.worker")


class Buffer:
    """CLAIMED rows of this worker."""

    def __init__(
        self, link: Link, owner: tuple[str, str, int], lanes: list[Lane], dispatcher: Dispatcher
    ) -> None:
        self._link = link
        self._owner_id, self._hostname, self._own_pid = owner
        self._lanes = lanes
        self._dispatcher = dispatcher
        self.tasks: deque[ClaimedTask] = deque()
        self.since: dict[str, float] = {}

    def add(self, task: ClaimedTask) -> None:
        self.tasks.append(task)
        self.since[task.id] = monotonic()

    def room(self, prefetch: int, lane_count: int) -> list[int]:
        """How many more rows each lane may have waiting here."""
        waiting = [0] * lane_count
        for task in self.tasks:
            waiting[task.lane - 1] += 1
        return [max(0, prefetch - count) for count in waiting]

    async def start_waiting(self) -> None:
        """Start what has a slot now, in one statement (T4)."""
        chosen: list[ClaimedTask] = []
        pids: list[int] = []
        rooms = [lane.room(may_prefetch=False) for lane in self._lanes]
        plans = [
            lane.pids(room, self._own_pid) for lane, room in zip(self._lanes, rooms, strict=True)
        ]
        for task in self.tasks:
            if plans[task.lane - 1]:
                pids.append(plans[task.lane - 1].pop(0))
                chosen.append(task)
        if not chosen:
            return
        for task in chosen:
            self._forget(task)
        statement = start_tasks(self._owner_id, self._hostname, chosen, pids)
        try:
            receipts = await self._link.run(statement)
        except BaseException:
            # Unconfirmed: the lease or the reaper repairs what was not committed; user code must
            # not run.
            _logger.warning("could not confirm the start of %d claimed tasks", len(chosen))
            raise
        by_id = {task.id: (task, pid) for task, pid in zip(chosen, pids, strict=True)}
        for receipt in receipts:
            task, pid = by_id[receipt.task_id]
            if receipt.outcome == "started":
                self._dispatcher.start([task._replace(worker_pid=pid)])
            elif receipt.outcome == "paused":
                await self._link.run(return_tasks(self._owner_id, [task]))
            else:
                _logger.info("task %s not started: %s", task.id, receipt.outcome)

    async def give_back(self, *, older_than: timedelta | None = None) -> int:
        """Return claims unstarted (T13): all of them, or those that have waited too long."""
        now = monotonic()
        limit = 0.0 if older_than is None else older_than.total_seconds()
        given = [task for task in self.tasks if now - self.since[task.id] >= limit]
        for task in given:
            self._forget(task)
        if given:
            await self._link.run(return_tasks(self._owner_id, given))
        return len(given)

    def _forget(self, task: ClaimedTask) -> None:
        self.tasks.remove(task)
        del self.since[task.id]
