"""The reaper: repairs rows whose worker is gone, ends overdue ones, deletes old ones.

Any worker's pass is as good as another's.
"""

import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, fields
from datetime import timedelta
from functools import partial
from typing import TypeAlias

from horsies.config import RecoveryConfig
from horsies.database.statement import Scalar, Statement
from horsies.recovery.duties import Duty
from horsies.recovery.lost_runs import (
    PROCESS_GONE,
    Connection,
    end_runs,
    end_runs_of_dead_worker,
    has_left_begun_slots,
    judge_lost,
)
from horsies.recovery.process_identity import is_executing
from horsies.recovery.statements import (
    BATCH,
    LostRun,
    LostRunEnding,
    NamedTask,
    expire_tasks,
    lost_runs,
    prune,
    prune_tasks,
    recover_workflows,
    requeue_stale_claims,
    running_tasks_of_worker,
)
from horsies.recovery.telling import Tell
from horsies.states import TASK_TERMINAL_STATES

_logger = logging.getLogger("horsies.reaper")
_RETENTION_EVERY = timedelta(hours=1)
_WORKFLOW_LOOKS = 50  # 10,000 workflows a pass


@dataclass(slots=True)
class Swept:
    """What one pass changed."""

    requeued: int = 0
    lost: int = 0
    expired: int = 0
    pruned: int = 0
    workflows: int = 0

    def add(self, other: "Swept") -> None:
        for field in fields(self):
            setattr(self, field.name, getattr(self, field.name) + getattr(other, field.name))

    def __bool__(self) -> bool:
        return any(getattr(self, field.name) for field in fields(self))


# One step of a pass; it counts what it changed.
_Step: TypeAlias = Callable[[Swept], Awaitable[None]]


class Reaper:
    """Knows what is to be done, and does it; a failing duty never stops the others."""

    def __init__(
        self,
        connection: Connection,
        config: RecoveryConfig,
        *,
        host_key: str,
        on_expired: Callable[[NamedTask], None] | None = None,
        tell: Tell | None = None,
    ) -> None:
        self._connection = connection
        self._config = config
        self._host_key = host_key
        self._on_expired = on_expired
        self._tell = tell
        self._swept = Swept()
        self._workflows_seen_to = ""
        _logger.info(
            "reaper started: every %.0f s, claimed_stale_threshold_ms=%d, "
            "running_stale_threshold_ms=%d",
            config.check_interval_ms / 1000,
            config.claimed_stale_threshold_ms,
            config.running_stale_threshold_ms,
        )

    def duties(self) -> list[Duty]:
        """What is to be done, in this order, and how often."""
        config = self._config
        steps: dict[str, _Step] = {}
        if config.auto_fail_stale_running:  # where its process is gone is known on its own host
            steps[f"end lost runs on {self._host_key}"] = self._end_lost_runs
        steps["expire overdue tasks"] = self._expire
        if config.auto_requeue_stale_claimed:
            steps["requeue stale claims"] = self._requeue_stale_claims
        if config.heartbeat_retention_hours is not None:
            heartbeats = partial(prune, "heartbeats", _hours(config.heartbeat_retention_hours))
            steps["prune heartbeats"] = partial(self._prune, heartbeats)
        steps["recover workflows"] = self._recover_workflows
        often = timedelta(milliseconds=config.check_interval_ms)
        return [
            *(self._duty(name, often, step) for name, step in steps.items()),
            *(self._duty(name, _RETENTION_EVERY, step) for name, step in self._retention().items()),
        ]

    async def run_once(self) -> Swept:
        """Do all duties once, due or not."""
        self._swept = Swept()
        for duty in self.duties():
            await duty.attempt()
        return self._swept

    def _duty(self, name: str, every: timedelta, step: _Step) -> Duty:
        async def run() -> None:
            swept = Swept()
            try:
                await step(swept)
            finally:
                self._swept.add(swept)
                if swept:
                    _logger.info("reaper: %s", swept)

        return Duty(name, every, run)

    async def _expire(self, swept: Swept) -> None:
        is_full = True
        while is_full:
            expired = await self._connection.run(expire_tasks())
            if self._on_expired is not None:
                for task in expired:
                    self._on_expired(task)
            swept.expired += len(expired)
            is_full = len(expired) >= BATCH

    async def _requeue_stale_claims(self, swept: Swept) -> None:
        age = timedelta(milliseconds=self._config.claimed_stale_threshold_ms)
        swept.requeued += await self._in_batches(lambda: requeue_stale_claims(age, []))

    async def _prune(self, batch: Callable[[], Statement[Scalar]], swept: Swept) -> None:
        swept.pruned += await self._in_batches(batch)

    async def _in_batches(self, batch: Callable[[], Statement[Scalar]]) -> int:
        """One transaction for each batch, until one is not full."""
        total, changed = 0, BATCH
        while changed >= BATCH:
            changed = int((await self._connection.run(batch()))[0].value)
            total += changed
        return total

    async def _recover_workflows(self, swept: Swept) -> None:
        """Look at running workflows; where a pass stops, the next one of this worker goes on."""
        for _ in range(_WORKFLOW_LOOKS):
            answers = await self._connection.run(recover_workflows(self._workflows_seen_to))
            if not answers:
                return
            self._workflows_seen_to = answers[0].looked_to or ""
            swept.workflows += answers[0].recovered
            if answers[0].failure is not None:
                _logger.error("reaper: could not recover workflows: %s", answers[0].failure)
            if answers[0].looked_to is None:
                return

    def _retention(self) -> dict[str, _Step]:
        """What is deleted once an hour, for what has an age."""
        config = self._config
        kept = config.terminal_record_retention_hours
        hours = {
            "worker_states": config.worker_state_retention_hours,
            "workflows": kept,
            "events": kept,
            "schedule_runs": kept,
        }
        steps: dict[str, _Step] = {
            f"prune {what.replace('_', ' ')}": partial(
                self._prune, partial(prune, what, _hours(age))
            )
            for what, age in hours.items()
            if age is not None
        }
        for status in TASK_TERMINAL_STATES:
            age = config.retention_hours_by_status.get(status, kept)
            if age is not None:
                tasks = partial(prune_tasks, status.value, _hours(age))
                steps[f"prune {status.value} tasks"] = partial(self._prune, tasks)
        return steps

    async def _end_lost_runs(self, swept: Swept) -> None:
        """Runs silent for the whole threshold; sooner those whose process is gone from here."""
        threshold = timedelta(milliseconds=self._config.running_stale_threshold_ms)
        two_beats = timedelta(milliseconds=2 * self._config.runner_heartbeat_interval_ms)
        while runs := await self._connection.run(lost_runs(min(threshold, two_beats))):
            dead_ids = await self._end_runs_of_dead_workers(runs, swept)
            rest = [run for run in runs if run.owner_id not in dead_ids]
            silent = [judge_lost(run, threshold) for run in rest if _is_silent(run, threshold)]
            orphans = [
                judge_lost(run, two_beats, PROCESS_GONE)
                for run in rest
                if not _is_silent(run, threshold) and self._is_orphan(run)
            ]
            ended = await self._end(threshold, silent, swept)
            ended += await self._end(two_beats, orphans, swept)
            if ended < BATCH:  # the rest was locked, stuck or revived, or is not due yet
                return

    async def _end_runs_of_dead_workers(self, runs: list[LostRun], swept: Swept) -> set[str]:
        """End the runs of dead workers of this host whose begun slots tell what had begun."""
        owners = {run.owner_id for run in runs if run.owner_id and self._is_orphan(run)}
        dead = {owner for owner in owners if has_left_begun_slots(owner)}
        for owner in sorted(dead):
            theirs = await self._connection.run(running_tasks_of_worker(owner))
            returned, lost = await end_runs_of_dead_worker(
                self._connection, owner, theirs, self._tell
            )
            swept.requeued += returned
            swept.lost += lost
        return dead

    def _is_orphan(self, run: LostRun) -> bool:
        return run.host_key == self._host_key and not is_executing(run)

    async def _end(self, silent_for: timedelta, endings: list[LostRunEnding], swept: Swept) -> int:
        returned, lost = await end_runs(self._connection, silent_for, endings, self._tell)
        swept.requeued += returned
        swept.lost += lost
        return returned + lost


def _is_silent(run: LostRun, threshold: timedelta) -> bool:
    """Without a sign of life for that long, as far as the row tells; the write looks again."""
    signs = [at for at in (run.started_at, run.last_heartbeat) if at is not None]
    return not signs or max(signs) < run.now_at - threshold


def _hours(count: int) -> timedelta:
    return timedelta(hours=count)
