"""Ends the waits of workflow nodes: sleeps whose time has come, events that have arrived."""

import asyncio
from collections.abc import Callable

from horsies.worker.service_connection import ServiceConnection
from horsies.worker.subworkflow_service import SubWorkflowService
from horsies.workflows.statements import wake_nodes

_BATCH = 100
# Notifications wake; this is how long a lost one may cost.
_POLL_S = 10.0


class WorkflowService:
    """Looks when it is notified, when the next wait is over, and now and then."""

    name = "workflows"

    def __init__(
        self,
        connection: ServiceConnection,
        children: SubWorkflowService,
        on_settled: Callable[[], None] | None = None,
    ) -> None:
        self._connection = connection
        self._children = children
        self._on_settled = on_settled
        self.interval_s = _POLL_S
        self.woken = asyncio.Event()
        self._is_notified = False
        self._is_done = False
        children.on_done = self._on_children_done

    @property
    def is_settled(self) -> bool:
        """Whether a whole pass found nothing left to do, and no child is in the making."""
        return self._is_done and self._children.is_idle

    def wake(self) -> None:
        """Nodes may have begun to wait, an event may have come."""
        self._is_notified = True
        self._is_done = False
        self.woken.set()

    async def run_once(self) -> int:
        """End waits until there are none left to end; return how many."""
        self._is_done = self._is_notified = False
        total = 0
        while True:
            (found,) = await self._connection.run(wake_nodes(_BATCH))
            total += found.woken
            if found.woken < _BATCH:
                break
        next_after_s = _POLL_S if found.next_after_s is None else found.next_after_s
        self.interval_s = min(_POLL_S, max(0.001, float(next_after_s)))
        if found.has_ready:
            self._children.wake()
        self._is_done = not self._is_notified
        self._announce()
        return total

    def _on_children_done(self, built_count: int) -> None:
        if built_count:
            self.wake()
        else:
            self._announce()

    def _announce(self) -> None:
        if self.is_settled and self._on_settled is not None:
            self._on_settled()
