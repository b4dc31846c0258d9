"""Signs of life for all a worker holds, in one write: claimer and runner heartbeats, leases.

Waiting outcomes.
"""

import asyncio
import logging
from datetime import timedelta

from horsies.clock import monotonic
from horsies.config import AppConfig
from horsies.database.statement import is_passing
from horsies.database.workers import Beat, Sender, beat
from horsies.worker.buffer import Buffer
from horsies.worker.completer import Completer
from horsies.worker.dispatcher import Dispatcher
from horsies.worker.link import Link
from horsies.worker.settings import claim_lease

_logger = logging.getLogger("horsies.worker")


class Heartbeat:
    """Writes what is owed.

    The first row once a claim or run outlives half its interval or one second.
    """

    def __init__(
        self,
        config: AppConfig,
        sender: Sender,
        link: Link,
        holding: tuple[Dispatcher, Buffer, Completer],
    ) -> None:
        self._sender = sender
        self._link = link
        self._dispatcher, self._buffer, self._completer = holding
        recovery = config.recovery
        self._runner_s = recovery.runner_heartbeat_interval_ms / 1000
        self._claimer_s = recovery.claimer_heartbeat_interval_ms / 1000
        self._runner_first_s = min(1.0, self._runner_s / 2)
        self._claimer_first_s = min(1.0, self._claimer_s / 2)
        self._lease = claim_lease(config)
        self._renew_age = timedelta(milliseconds=config.max_claim_renew_age_ms)
        self._claim_beats: dict[str, float] = {}

    async def run(self) -> None:
        """Beat until cancelled.

        Heartbeats outlive the drain: a worker finishing its last task must not look dead.
        """
        pause_s = min(self._runner_first_s, self._claimer_first_s) / 2
        while True:
            await asyncio.sleep(pause_s)
            try:
                await self.run_once()
            except (
                Exception
            ) as error:  # a service loop: a lost beat is logged and the next one tried
                if not is_passing(error):
                    raise
                _logger.warning("heartbeat not written, the next one is tried: %s", error)

    async def run_once(self) -> Beat | None:
        """Write what is owed now, if anything."""
        now = monotonic()
        owed = Beat(
            self._owed_claims(now),
            self._owed_runs(now),
            sorted(self._completer.overdue_ids(self._runner_first_s)),
        )
        if not (owed.claimed_ids or owed.running or owed.finalizing_ids):
            return None
        await self._link.run(beat(self._sender, self._lease, self._renew_age, owed))
        for task_id in owed.claimed_ids:
            self._claim_beats[task_id] = now
        for task_id, _ in owed.running:
            if held := self._dispatcher.running.get(task_id):
                held.beat_at = now
        return owed

    def _owed_claims(self, now: float) -> list[str]:
        self._claim_beats = {
            task_id: at
            for task_id, at in self._claim_beats.items()
            if task_id in self._buffer.since
        }
        return sorted(
            task_id
            for task_id, since in self._buffer.since.items()
            if now - self._claim_beats.get(task_id, since)
            >= (self._claimer_s if task_id in self._claim_beats else self._claimer_first_s)
        )

    def _owed_runs(self, now: float) -> list[tuple[str, int]]:
        return sorted(
            (held.task.id, held.pid)
            for held in self._dispatcher.running.values()
            if now - held.beat_at
            >= (self._runner_s if held.beat_at > held.started_at else self._runner_first_s)
            and held.lane.executor.is_alive(held.task.id)
        )
