"""Tells viewers which tasks have begun: apart from the claims, which it would hold up."""

import asyncio
from collections.abc import Sequence

from horsies.database.notifications import STATUS_CHANNEL, notify
from horsies.worker.held_task import HeldTask
from horsies.worker.holdings import Holdings
from horsies.worker.service_connection import ServiceConnection

# Tasks that end sooner are told once, by their end.
_DELAY_S = 0.1
_MAX_NAMED = 10


class ClaimNews:
    """Names what was claimed and has not ended; more than ten tasks are told as `*`."""

    name = "claim news"
    interval_s = 3600.0

    def __init__(self, connection: ServiceConnection, holdings: Holdings) -> None:
        self._connection = connection
        self._holdings = holdings
        self._claimed: list[str] = []
        self.woken = asyncio.Event()

    def add(self, tasks: Sequence[HeldTask]) -> None:
        """Tasks were claimed, and their claim is committed."""
        if not self._claimed:
            asyncio.get_running_loop().call_later(_DELAY_S, self.woken.set)
        self._claimed += [task.task_id for task in tasks]

    async def run_once(self) -> int:
        """Tell; return how many messages it took."""
        claimed, self._claimed = self._claimed, []
        held = set(self._holdings.task_ids())
        claimed = [task_id for task_id in claimed if task_id in held]
        payloads = claimed if len(claimed) <= _MAX_NAMED else ["*"]
        if payloads:
            await self._connection.run(notify([(STATUS_CHANNEL, each) for each in payloads]))
        return len(payloads)
