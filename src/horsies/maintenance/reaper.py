"""The reaper: repairs rows whose worker is gone, ends overdue ones, deletes old ones.

Any worker's pass is as good as another's.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, fields
from datetime import timedelta

from horsies.broker.lost import judge_lost
from horsies.clock import jittered, monotonic
from horsies.config import RecoveryConfig
from horsies.database import recovery
from horsies.database.rows import Scalar, StaleRun
from horsies.database.statement import Statement, is_connection_failure, is_passing
from horsies.database.workers import release_sweep_lock, try_sweep_lock
from horsies.maintenance.giving_up import GONE, Connection, give_up_runs, has_left_journal
from horsies.maintenance.processes import is_executing
from horsies.states import TASK_TERMINAL_STATES

_logger = logging.getLogger("horsies.reaper")
_RETENTION_EVERY_S = 3600.0
_STRIKES = 3


@dataclass(slots=True)
class Swept:
    """What one pass changed."""

    requeued: int = 0
    lost: int = 0
    expired: int = 0
    pruned: int = 0

    def __bool__(self) -> bool:
        return any(getattr(self, field.name) for field in fields(self))


class Reaper:
    """Runs the steps in order; a failing step never stops the others."""

    def __init__(
        self, connection: Connection, config: RecoveryConfig, *, hostname: str, elects: bool = True
    ) -> None:
        self._connection = connection
        self._config = config
        self._hostname = hostname
        self._elects = elects
        self._retention_at = 0.0
        self._strikes: dict[str, int] = {}

    async def run(self) -> None:
        """First pass at once, then one per interval."""
        interval_s = self._config.check_interval_ms / 1000
        _logger.info("reaper started: every %.0f s, %s", interval_s, self._config.model_dump())
        while True:
            swept = await self._run_elected()
            if swept:
                _logger.info("reaper: %s", swept)
            await asyncio.sleep(jittered(interval_s, low=0.9, high=1.1))

    async def _run_elected(self) -> Swept:
        """One of all workers sweeps at a time; where session locks are unavailable, each does."""
        if not self._elects:
            return await self.run_once()
        try:
            if not (await self._connection.run(try_sweep_lock()))[0].value:
                return Swept()
            swept = await self.run_once()
            await self._connection.run(release_sweep_lock())
        except Exception as error:  # a service loop: the next pass tries again
            if not is_passing(error):
                raise
            _logger.warning("reaper: next pass tries again: %s", error)
            return Swept()
        return swept

    async def run_once(self) -> Swept:
        """One pass over all steps."""
        swept = Swept()
        if self._config.auto_requeue_stale_claimed:
            await self._step("requeue stale claims", self._requeue_claims, swept)
        if self._config.auto_fail_stale_running:
            await self._step("give up lost runs", self._give_up_runs, swept)
        await self._step("expire overdue tasks", self._expire, swept)
        await self._step("prune heartbeats", self._prune_heartbeats, swept)
        if monotonic() >= self._retention_at:
            await self._step("prune old records", self._prune_records, swept)
        return swept

    async def _step(
        self, name: str, step: Callable[[Swept], Awaitable[None]], swept: Swept
    ) -> None:
        if self._strikes.get(name, 0) >= _STRIKES:
            return
        try:
            await step(swept)
            self._strikes.pop(name, None)
        except Exception as error:  # a service loop: the other steps and the next pass go on
            if is_connection_failure(error) or is_passing(error):
                _logger.warning("reaper: could not %s, next pass tries again: %s", name, error)
                return
            self._strikes[name] = self._strikes.get(name, 0) + 1
            _logger.exception("reaper: could not %s", name)
            if self._strikes[name] >= _STRIKES:
                _logger.critical("reaper: '%s' failed %d times and is switched off", name, _STRIKES)

    async def _requeue_claims(self, swept: Swept) -> None:
        stale_after = timedelta(milliseconds=self._config.claimed_stale_threshold_ms)
        swept.requeued += await self._repeat(recovery.requeue_stale_claims(stale_after, []))

    async def _give_up_runs(self, swept: Swept) -> None:
        """Runs silent for the whole threshold; sooner those whose process is gone from here."""
        threshold = timedelta(milliseconds=self._config.running_stale_threshold_ms)
        two_beats = timedelta(milliseconds=2 * self._config.runner_heartbeat_interval_ms)
        while runs := await self._connection.run(recovery.stale_runs(min(threshold, two_beats))):
            dead_ids = await self._give_up_dead(runs, swept)
            rest = [run for run in runs if run.owner_id not in dead_ids]
            silent = [judge_lost(run, threshold) for run in rest if _is_silent(run, threshold)]
            orphans = [
                judge_lost(run, two_beats, GONE)
                for run in rest
                if not _is_silent(run, threshold) and self._is_orphan(run)
            ]
            given_up = await self._fail(threshold, silent) + await self._fail(two_beats, orphans)
            swept.lost += given_up
            if given_up < recovery.BATCH:  # the rest was locked or revived, or is not due yet
                return

    async def _give_up_dead(self, runs: list[StaleRun], swept: Swept) -> set[str]:
        """Workers of this host that left a journal, which tells what of theirs had begun."""
        owners = {run.owner_id for run in runs if run.owner_id and self._is_orphan(run)}
        dead = {owner for owner in owners if has_left_journal(owner)}
        for owner in sorted(dead):
            theirs = await self._connection.run(recovery.runs_of(owner))
            returned, lost = await give_up_runs(self._connection, owner, theirs)
            swept.requeued += returned
            swept.lost += lost
        return dead

    def _is_orphan(self, run: StaleRun) -> bool:
        return run.worker_hostname == self._hostname and not is_executing(run)

    async def _fail(self, stale_after: timedelta, lost: list[recovery.LostRun]) -> int:
        if not lost:
            return 0
        return len(await self._connection.run(recovery.fail_lost_tasks(stale_after, lost)))

    async def _expire(self, swept: Swept) -> None:
        swept.expired += await self._repeat(recovery.expire_tasks())

    async def _prune_heartbeats(self, swept: Swept) -> None:
        hours = self._config.heartbeat_retention_hours
        if hours is not None:
            swept.pruned += await self._repeat(recovery.prune("heartbeats", timedelta(hours=hours)))

    async def _prune_records(self, swept: Swept) -> None:
        self._retention_at = monotonic() + _RETENTION_EVERY_S
        config = self._config
        if config.worker_state_retention_hours is not None:
            age = timedelta(hours=config.worker_state_retention_hours)
            swept.pruned += await self._repeat(recovery.prune("worker_states", age))
        for status in TASK_TERMINAL_STATES:
            hours = config.retention_hours_by_status.get(
                status, config.terminal_record_retention_hours
            )
            if hours is not None:
                statement = recovery.prune_tasks(status.value, timedelta(hours=hours))
                swept.pruned += await self._repeat(statement)
        if config.terminal_record_retention_hours is not None:
            age = timedelta(hours=config.terminal_record_retention_hours)
            swept.pruned += await self._repeat(recovery.prune("workflows", age))

    async def _repeat(self, statement: Statement[Scalar]) -> int:
        """Batch by batch until one is not full."""
        total = 0
        while True:
            changed = int((await self._connection.run(statement))[0].value)
            total += changed
            if changed < recovery.BATCH:
                return total


def _is_silent(run: StaleRun, threshold: timedelta) -> bool:
    """Without a sign of life for that long, as far as the row tells; the write looks again."""
    signs = [at for at in (run.started_at, run.last_heartbeat) if at is not None]
    return not signs or max(signs) < run.now_at - threshold
