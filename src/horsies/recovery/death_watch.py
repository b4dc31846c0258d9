"""Notices dead workers within seconds, where the reaper waits for missing heartbeats.

A worker whose session lock is free is gone: its claims, and what it took ahead without a permit,
go back at once (the fence makes a mistake harmless). Its other runs are lost when its process is
gone from this host; elsewhere they wait for the heartbeat threshold: user code may still run.
"""

import logging
from collections.abc import Callable
from datetime import timedelta

from horsies.config import RecoveryConfig
from horsies.recovery.begun_slots import find_begun_slots
from horsies.recovery.lost_runs import Connection, end_runs_of_dead_worker
from horsies.recovery.process_identity import process_started_at
from horsies.recovery.statements import (
    LostRun,
    WorkerWithoutLock,
    requeue_stale_claims,
    return_unpermitted_runs,
    running_tasks_of_worker,
    watch_workers,
)
from horsies.recovery.telling import Tell

_logger = logging.getLogger("horsies.reaper")
# Only claims of dead owners, whatever their age.
_NEVER = timedelta(days=36_500)
_RECENT = timedelta(minutes=2)


class DeathWatch:
    """One per worker; whichever notices a death first settles it for all."""

    name = "death watch"

    def __init__(
        self,
        connection: Connection,
        config: RecoveryConfig,
        *,
        host_key: str,
        own_id: str,
        is_electable: bool = True,
        peer_count: Callable[[], int] = lambda: 1,
        tell: Tell | None = None,
    ) -> None:
        self._connection = connection
        self._config = config
        self._host_key = host_key
        self._own_id = own_id
        self._peer_count = peer_count
        self._tell = tell
        # One watch per host is enough, and there must be one: only there does a pid tell.
        self._office = f"death watch:{host_key}" if is_electable else None
        self._settled: set[str] = set()
        self._is_first = True
        self._is_elected = True

    @property
    def interval_s(self) -> float:
        """Seldom where nobody else was seen lately: only one that comes and dies can be missed.

        Candidates for the office ask the less often the more there are: together once a second.
        """
        peer_count = self._peer_count()
        if not peer_count:
            return 5.0
        return 2.0 if self._is_elected else min(30.0, max(2.0, peer_count))

    async def run_once(self) -> int:
        """Look once, if this worker is the elected one; return how many tasks were recovered."""
        # At first all that were ever seen: nobody may have been there to notice.
        seen_within = _RECENT if self._office or not self._is_first else None
        watched = await self._connection.run(watch_workers(self._office, seen_within))
        self._is_first = False
        candidates = [worker for worker in watched if worker is not None]
        self._is_elected = len(candidates) == len(watched)
        # Settled only as long as it is called dead: a worker may have been cut off for a moment.
        self._settled &= {worker.worker_id for worker in candidates}
        recovered = 0
        for worker in candidates:
            if worker.worker_id not in self._settled and worker.worker_id != self._own_id:
                recovered += await self._recover(worker)
        return recovered

    async def _recover(self, worker: WorkerWithoutLock) -> int:
        requeued = lost = 0
        if self._config.auto_requeue_stale_claimed:
            requeue = requeue_stale_claims(_NEVER, [worker.worker_id])
            requeued = int((await self._connection.run(requeue))[0].value)
        if _is_alive(worker, self._host_key):
            if requeued:
                _logger.warning(
                    "worker %s (pid %d on %s) has lost its session: %d claims requeued",
                    worker.worker_id, worker.pid, worker.hostname, requeued,
                )  # fmt: skip
            return requeued
        if self._config.auto_fail_stale_running:
            unpermitted = return_unpermitted_runs(worker.worker_id)
            requeued += int((await self._connection.run(unpermitted))[0].value)
        runs: list[LostRun] = []
        if self._config.auto_fail_stale_running and worker.host_key == self._host_key:
            runs = await self._connection.run(running_tasks_of_worker(worker.worker_id))
        if runs:
            returned, lost = await end_runs_of_dead_worker(
                self._connection, worker.worker_id, runs, self._tell
            )
            requeued += returned
        if requeued or lost:
            _logger.warning(
                "worker %s (pid %d on %s) is dead: %d claims requeued, %d lost runs ended",
                worker.worker_id, worker.pid, worker.hostname, requeued, lost,
            )  # fmt: skip
        elif not runs:
            self._settled.add(worker.worker_id)
            if begun_slots := find_begun_slots(worker.worker_id):
                begun_slots.remove()
        return requeued + lost


def _is_alive(worker: WorkerWithoutLock, host_key: str) -> bool:
    """Whether the very process exists, by its begun slots or, on this host, its pid and age."""
    begun_slots = find_begun_slots(worker.worker_id)
    if begun_slots is not None:
        is_held = not begun_slots.is_abandoned
        begun_slots.close()
        if is_held:
            return True
    if worker.host_key != host_key:
        return False
    started_at = process_started_at(worker.pid)
    if started_at is None or worker.pid_started_at is None:
        return started_at is not None
    return abs(started_at - worker.pid_started_at) < 1.0
