"""Notices dead workers at the speed of their kind, every two seconds, beside the reaper.

A worker whose session lock is free is gone from the database: its unstarted claims go back at once
(the fence makes a mistake harmless). Its runs are given up when it lived on this host and its
process is gone; on other hosts they wait for the heartbeat threshold: user code may still run.
"""

import asyncio
import logging
from datetime import timedelta

from horsies.clock import jittered
from horsies.config import RecoveryConfig
from horsies.database import recovery
from horsies.database.rows import AbsentWorker, StaleRun
from horsies.database.statement import is_passing
from horsies.executors.journal import find_journal
from horsies.maintenance.giving_up import Connection, give_up_runs
from horsies.maintenance.processes import process_started_at

_logger = logging.getLogger("horsies.reaper")
_INTERVAL_S = 2.0
# Only claims of owners proven gone, whatever their age.
_NEVER = timedelta(days=36_500)
_RECENT = timedelta(minutes=2)


class DeathWatch:
    """One per worker; what one has settled the others find settled."""

    def __init__(
        self, connection: Connection, config: RecoveryConfig, *, hostname: str, own_id: str
    ) -> None:
        self._connection = connection
        self._config = config
        self._hostname = hostname
        self._own_id = own_id
        self._settled: set[str] = set()
        self._is_first = True

    async def run(self) -> None:
        while True:
            try:
                await self.run_once()
            except Exception as error:  # a service loop: the next look tries again
                if not is_passing(error):
                    raise
                _logger.warning("death watch: next look tries again: %s", error)
            await asyncio.sleep(jittered(_INTERVAL_S, low=0.9, high=1.1))

    async def run_once(self) -> int:
        """One look; how many tasks were recovered."""
        # At first all that were ever seen: nobody may have been there to notice.
        seen_within = None if self._is_first else _RECENT
        absent = await self._connection.run(recovery.absent_workers(seen_within))
        self._is_first = False
        recovered = 0
        for worker in absent:
            if worker.worker_id not in self._settled and worker.worker_id != self._own_id:
                recovered += await self._recover(worker)
        return recovered

    async def _recover(self, worker: AbsentWorker) -> int:
        requeued = lost = 0
        if self._config.auto_requeue_stale_claimed:
            requeue = recovery.requeue_stale_claims(_NEVER, [worker.worker_id])
            requeued = int((await self._connection.run(requeue))[0].value)
        runs: list[StaleRun] = []
        if self._config.auto_fail_stale_running and worker.hostname == self._hostname:
            runs = await self._connection.run(recovery.runs_of(worker.worker_id))
        if runs and not _is_alive(worker):
            returned, lost = await give_up_runs(self._connection, worker.worker_id, runs)
            requeued += returned
        if requeued or lost:
            _logger.warning(
                "worker %s (pid %d on %s) is gone: %d claims requeued, %d runs given up",
                worker.worker_id, worker.pid, worker.hostname, requeued, lost,
            )  # fmt: skip
        elif not runs:
            self._settled.add(worker.worker_id)
            if journal := find_journal(worker.worker_id):
                journal.remove()
        return requeued + lost


def _is_alive(worker: AbsentWorker) -> bool:
    """Whether the very process still exists: the same pid, started at the same time."""
    started_at = process_started_at(worker.pid)
    if started_at is None or worker.pid_started_at is None:
        return started_at is not None
    return abs(started_at - worker.pid_started_at) < 1.0
