"""Tells viewers which tasks have begun: apart from the claims, which it would hold up."""

import asyncio
from collections.abc import Collection, Sequence

from horsies.database.notifications import STATUS_CHANNEL, notify, queue_channel
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
        self._queues: set[str] = set()
        self.woken = asyncio.Event()

    def add(self, tasks: Sequence[HeldTask]) -> None:
        """Tasks were claimed, and their claim is committed."""
        if not self._claimed:
            asyncio.get_running_loop().call_later(_DELAY_S, self.woken.set)
        self._claimed += [task.task_id for task in tasks]

    def pass_on(self, queue_names: Collection[str]) -> None:
        """There is more in these queues than this worker can take: idle peers are to look."""
        self._queues.update(queue_names)
        self.woken.set()

    async def run_once(self) -> int:
        """Notify; return how many messages it took."""
        queues, self._queues = sorted(self._queues), set()
        claimed, self._claimed = self._claimed, []
        held = set(self._holdings.task_ids())
        claimed = [task_id for task_id in claimed if task_id in held]
        payloads = claimed if len(claimed) <= _MAX_NAMED else ["*"]
        messages = [(STATUS_CHANNEL, each) for each in payloads]
        messages += [(queue_channel(name), f"more:{name}") for name in queues]
        if messages:
            await self._connection.run(notify(messages))
        return len(messages)
