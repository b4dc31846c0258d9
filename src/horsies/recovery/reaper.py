"""The reaper: repairs rows whose worker is gone, ends overdue ones, deletes old ones.

Any worker's pass is as good as another's.
"""

import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, fields
from datetime import timedelta

from horsies.clock import monotonic
from horsies.config import RecoveryConfig
from horsies.database.verdict import is_transient
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
    recover_workflows,
    running_tasks_of_worker,
    sweep,
)
from horsies.recovery.telling import Tell
from horsies.states import TASK_TERMINAL_STATES

_logger = logging.getLogger("horsies.reaper")
_RETENTION_EVERY_S = 3600.0
_WORKFLOW_LOOKS = 50  # 10,000 workflows a pass


@dataclass(slots=True)
class Swept:
    """What one pass changed."""

    requeued: int = 0
    lost: int = 0
    expired: int = 0
    pruned: int = 0
    workflows: int = 0

    def count(self, step: str, changed: int) -> None:
        if step.startswith("prune"):
            self.pruned += changed
        elif step.startswith("expire"):
            self.expired += changed
        else:
            self.requeued += changed

    def __bool__(self) -> bool:
        return any(getattr(self, field.name) for field in fields(self))


class Reaper:
    """Ends lost runs, then sweeps; a failing step never stops the others."""

    name = "reaper"

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
        self._retention_at = 0.0
        self._workflows_seen_to = ""
        self.interval_s = config.check_interval_ms / 1000
        _logger.info(
            "reaper started: every %.0f s, claimed_stale_threshold_ms=%d, "
            "running_stale_threshold_ms=%d",
            self.interval_s,
            config.claimed_stale_threshold_ms,
            config.running_stale_threshold_ms,
        )

    async def run_once(self) -> Swept:
        """One pass over all steps."""
        swept = Swept()
        if self._config.auto_fail_stale_running:
            await self._try("end lost runs", self._end_lost_runs, swept)
        if self._on_expired is not None:
            await self._try("expire overdue tasks", self._expire, swept)
        await self._try("sweep", self._sweep, swept)
        await self._try("recover workflows", self._recover_workflows, swept)
        if swept:
            _logger.info("reaper: %s", swept)
        return swept

    async def _try(self, name: str, step: Callable[[Swept], Awaitable[None]], swept: Swept) -> None:
        """Run one step; if it fails, the other steps and the next pass still run."""
        try:
            await step(swept)
        except Exception as error:  # a step that fails must not stop the others
            if is_transient(error):
                _logger.warning("reaper: could not %s, next pass tries again: %s", name, error)
            else:
                _logger.exception("reaper: could not %s, next pass tries again", name)

    async def _expire(self, swept: Swept) -> None:
        """Expire overdue tasks before the sweep does, and tell of each."""
        is_full = self._on_expired is not None
        while is_full and self._on_expired is not None:
            expired = await self._connection.run(expire_tasks())
            for task in expired:
                self._on_expired(task)
            swept.expired += len(expired)
            is_full = len(expired) >= BATCH

    async def _sweep(self, swept: Swept) -> None:
        """Sweep batch by batch until none is full."""
        steps = {**self._steps(), **self._retention_steps()}
        while steps:
            answers = await self._connection.run(sweep(steps))
            for answer in answers:
                swept.count(answer.step, answer.changed)
                if answer.failure is not None:
                    _logger.error("reaper: could not %s: %s", answer.step, answer.failure)
            full = {answer.step for answer in answers if answer.changed >= BATCH}
            steps = {step: age for step, age in steps.items() if step in full}

    async def _recover_workflows(self, swept: Swept) -> None:
        """Look at running workflows; where a pass stops, the next goes on."""
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

    def _steps(self) -> dict[str, timedelta | None]:
        """What every pass does, with the age from which a row is concerned."""
        config = self._config
        # Expiry first: it locks workflows, and they are locked before tasks (docs/states.md).
        steps: dict[str, timedelta | None] = {"expire overdue tasks": None}
        if config.auto_requeue_stale_claimed:
            age = timedelta(milliseconds=config.claimed_stale_threshold_ms)
            steps["requeue stale claims"] = age
        if config.heartbeat_retention_hours is not None:
            steps["prune heartbeats"] = timedelta(hours=config.heartbeat_retention_hours)
        return steps

    def _retention_steps(self) -> dict[str, timedelta | None]:
        """What is done once an hour."""
        if monotonic() < self._retention_at:
            return {}
        self._retention_at = monotonic() + _RETENTION_EVERY_S
        config = self._config
        hours = {
            "prune worker states": config.worker_state_retention_hours,
            **{
                f"prune {status.value} tasks": config.retention_hours_by_status.get(
                    status, config.terminal_record_retention_hours
                )
                for status in TASK_TERMINAL_STATES
            },
            "prune workflows": config.terminal_record_retention_hours,
            "prune events": config.terminal_record_retention_hours,
            "prune schedule runs": config.terminal_record_retention_hours,
        }
        return {step: timedelta(hours=kept) for step, kept in hours.items() if kept is not None}

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
