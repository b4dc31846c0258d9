"""Claimed, not yet started: rows prefetched under the soft cap.

Started in claim order as slots become free, or given back.
"""

import logging

from psycopg.errors import LockNotAvailable

from horsies.clock import monotonic
from horsies.database.statement import Receipt
from horsies.worker.dispatcher import Dispatcher
from horsies.worker.held_task import HeldTask
from horsies.worker.identity import WorkerIdentity
from horsies.worker.lanes import Lane
from horsies.worker.service_connection import ServiceConnection
from horsies.worker.statements import return_tasks, start_tasks, unlocked_tasks
from horsies.workflows.statements import advance_tasks, lock_workflows_of_tasks

_logger = logging.getLogger("horsies.worker")
# Each try at a row that is still locked holds up the claims for as long as the session waits.
_LOCKED_RETRY_S = 60.0


class Buffer:
    """CLAIMED rows of this worker by id, in claim order."""

    def __init__(
        self,
        connection: ServiceConnection,
        identity: WorkerIdentity,
        lanes: list[Lane],
        dispatcher: Dispatcher,
    ) -> None:
        self._connection = connection
        self._identity = identity
        self._lanes = lanes
        self._dispatcher = dispatcher
        self.tasks: dict[str, HeldTask] = {}
        self._locked_until: dict[str, float] = {}

    def add(self, task: HeldTask) -> None:
        task.held_since = task.beat_at = monotonic()
        self.tasks[task.task_id] = task

    def room(self, prefetch: int) -> list[int]:
        """How many more rows each lane may have waiting here."""
        waiting = [0] * len(self._lanes)
        for task in self.tasks.values():
            waiting[task.lane - 1] += 1
        return [max(0, prefetch - count) for count in waiting]

    async def start_waiting(self) -> None:
        """Start what has a slot now, in one statement (T4)."""
        chosen, pids = self._choose()
        if not chosen:
            return
        for task in chosen:
            del self.tasks[task.task_id]
        try:
            receipts = await self._start(chosen, pids)
        except LockNotAvailable:
            await self._set_aside_locked(chosen)
            await self.start_waiting()
            return
        except BaseException:
            # Unconfirmed: the lease or the reaper repairs what was not committed; user code must
            # not run.
            _logger.warning("could not confirm the start of %d claimed tasks", len(chosen))
            raise
        for task, pid, receipt in zip(chosen, pids, receipts, strict=True):
            if receipt.outcome == "started":
                task.pid = pid
                self._dispatcher.start([task])
            elif receipt.outcome == "paused":
                await self._connection.run(return_tasks(self._identity.worker_id, [task]))
            else:
                _logger.info("task %s not started: %s", task.task_id, receipt.outcome)
                if receipt.outcome == "expired":
                    self._dispatcher.events.on_expired(task)

    async def _start(self, chosen: list[HeldTask], pids: list[int]) -> list[Receipt]:
        statement = start_tasks(self._identity, chosen, pids)
        of_workflows = [task.task_id for task in chosen if task.is_workflow_task]
        if not of_workflows:
            return await self._connection.run(statement)
        # What expires instead of starting ends a node.
        _, receipts, _ = await self._connection.run_together(
            [lock_workflows_of_tasks(of_workflows), statement, advance_tasks(of_workflows)]
        )
        return receipts

    def _choose(self) -> tuple[list[HeldTask], list[int]]:
        """What has a slot now, in claim order, and the pids it will run under."""
        chosen: list[HeldTask] = []
        pids: list[int] = []
        free = [
            lane.pids(lane.room(may_prefetch=False), self._identity.pid) for lane in self._lanes
        ]
        now = monotonic()
        for task in self.tasks.values():
            if free[task.lane - 1] and self._locked_until.get(task.task_id, now) <= now:
                pids.append(free[task.lane - 1].pop(0))
                chosen.append(task)
        return chosen, pids

    async def _set_aside_locked(self, chosen: list[HeldTask]) -> None:
        """None was started: those that another session has locked wait, the others come first."""
        self.tasks = {task.task_id: task for task in chosen} | self.tasks
        statement = unlocked_tasks([task.task_id for task in chosen])
        free = {row.value for row in await self._connection.run(statement)}
        locked = [task.task_id for task in chosen if task.task_id not in free]
        held = {key: until for key, until in self._locked_until.items() if key in self.tasks}
        self._locked_until = held | dict.fromkeys(locked, monotonic() + _LOCKED_RETRY_S)
        _logger.warning("%d claimed tasks are locked by another session; they wait", len(locked))

    async def give_back(self) -> int:
        """Return all claims unstarted (T13); return how many."""
        given = list(self.tasks.values())
        self.tasks.clear()
        if given:
            await self._connection.run(return_tasks(self._identity.worker_id, given))
        return len(given)
