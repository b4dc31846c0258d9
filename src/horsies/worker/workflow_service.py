"""What workflows need of a worker besides running tasks: waits that end, children to be built."""

import asyncio
import logging
from collections.abc import Callable

import psycopg

from horsies.app import Horsies
from horsies.database.verdict import is_transient
from horsies.worker.service_connection import ServiceConnection
from horsies.workflows.rows import NewRows
from horsies.workflows.statements import (
    Woken,
    fail_nodes,
    ready_subworkflows,
    start_workflows,
    wake_nodes,
)
from horsies.workflows.subworkflow import build_children, start_failure

_logger = logging.getLogger("horsies.worker")

_BATCH = 100
# Notifications wake; this is how long a lost one may cost.
_POLL_S = 10.0


class WorkflowService:
    """Looks when it is told to, when the next wait is over, and now and then."""

    name = "workflows"

    def __init__(
        self,
        app: Horsies,
        connection: ServiceConnection,
        *,
        is_stopping: Callable[[], bool],
        on_settled: Callable[[], None] | None = None,
    ) -> None:
        self._app = app
        self._connection = connection
        self._on_settled = on_settled
        # A stopping worker may be an old release: children are built by those that stay.
        self._is_stopping = is_stopping
        self.interval_s = _POLL_S
        self.woken = asyncio.Event()
        self._is_told = False
        # Whether a whole pass found nothing left to do: until its end a child may be in the making.
        self.is_settled = False

    def wake(self) -> None:
        """Nodes may have begun to wait, an event may have come."""
        self._is_told = True
        self.is_settled = False
        self.woken.set()

    async def run_once(self) -> int:
        """End waits and start children, until there are none left; return how many."""
        self.is_settled = self._is_told = False
        found = await self._end_waits()
        total = found.woken
        if found.has_ready and not self._is_stopping():
            total += await self._start_children()
        self.is_settled = not self._is_told
        if self.is_settled and self._on_settled is not None:
            self._on_settled()
        return total

    async def _end_waits(self) -> Woken:
        total = 0
        while True:
            (found,) = await self._connection.run(wake_nodes(_BATCH))
            total += found.woken
            if found.woken < _BATCH:
                break
        next_after_s = _POLL_S if found.next_after_s is None else found.next_after_s
        self.interval_s = min(_POLL_S, max(0.001, float(next_after_s)))
        return found._replace(woken=total)

    async def _start_children(self) -> int:
        total = 0
        while ready := await self._connection.run(ready_subworkflows(_BATCH)):
            # In a thread: user code may take its time.
            built = await asyncio.to_thread(build_children, self._app, ready)
            if built.starts:
                built.failures |= await self._start(built.starts)
            if built.failures:
                failures = built.failures
                await self._connection.run(fail_nodes(list(failures), list(failures.values())))
            total += len(ready)
        return total

    async def _start(self, starts: list[NewRows]) -> dict[str, str]:
        """Store children; what the database refuses, by the node it belongs to."""
        try:
            await self._connection.run(start_workflows(starts))
        except psycopg.Error as error:
            if is_transient(error):
                raise
            if len(starts) == 1:
                _logger.exception("a sub-workflow could not be stored")
                return {str(starts[0].workflow.parent_node_id): start_failure(error)}
        else:
            return {}
        middle = len(starts) // 2
        return await self._start(starts[:middle]) | await self._start(starts[middle:])
