"""Signs of life for all a worker holds, in one write.

Claimer and runner heartbeats, leases, and the mark of outcomes that wait for their write.
"""

from datetime import timedelta

from horsies.clock import monotonic
from horsies.worker.holdings import Holdings
from horsies.worker.service_connection import ServiceConnection
from horsies.worker.settings import WorkerContext
from horsies.worker.statements import Beat, beat


class Heartbeat:
    """Writes what is owed.

    The first row once a claim or run outlives half its interval or one second. Heartbeats outlive
    the drain: a worker finishing its last task must not look dead.
    """

    name = "heartbeat"

    def __init__(
        self, context: WorkerContext, connection: ServiceConnection, holdings: Holdings
    ) -> None:
        self._context = context
        self._connection = connection
        self._holdings = holdings
        recovery = context.config.recovery
        self._runner_s = recovery.runner_heartbeat_interval_ms / 1000
        self._claimer_s = recovery.claimer_heartbeat_interval_ms / 1000
        self._runner_first_s = min(1.0, self._runner_s / 2)
        self._claimer_first_s = min(1.0, self._claimer_s / 2)
        self._renew_age = timedelta(milliseconds=context.config.max_claim_renew_age_ms)
        self.interval_s = min(self._runner_first_s, self._claimer_first_s) / 2

    async def run_once(self) -> Beat | None:
        """Write what is owed now, if anything."""
        now = monotonic()
        overdue = self._holdings.completer.overdue_ids(self._runner_first_s)
        owed = Beat(self._owed_claims(now), self._owed_runs(now), sorted(overdue))
        if not (owed.claimed_ids or owed.running or owed.finalizing_ids):
            return None
        context = self._context
        await self._connection.run(beat(context.identity, context.lease, self._renew_age, owed))
        for task_id in owed.claimed_ids:
            if task := self._holdings.buffer.tasks.get(task_id):
                task.beat_at = now
        for task_id, _ in owed.running:
            if task := self._holdings.dispatcher.running.get(task_id):
                task.beat_at = now
        return owed

    def _owed_claims(self, now: float) -> list[str]:
        return sorted(
            task.task_id
            for task in self._holdings.buffer.tasks.values()
            if now - task.beat_at
            >= (self._claimer_s if task.beat_at > task.held_since else self._claimer_first_s)
        )

    def _owed_runs(self, now: float) -> list[tuple[str, int]]:
        dispatcher, own_pid = self._holdings.dispatcher, self._context.identity.pid
        return sorted(
            (task.task_id, task.pid or own_pid)
            for task in dispatcher.running.values()
            if now - task.beat_at
            >= (self._runner_s if task.beat_at > task.held_since else self._runner_first_s)
            and dispatcher.is_alive(task)
        )
