"""Builds the children of sub-workflow nodes whose definitions this worker knows."""

import asyncio
import logging
from collections.abc import Callable

import psycopg

from horsies.app import Horsies
from horsies.database.verdict import is_transient
from horsies.worker.service_connection import ServiceConnection
from horsies.workflows.definition import definition_keys
from horsies.workflows.rows import NewRows
from horsies.workflows.statements import (
    claim_subworkflows,
    fail_nodes,
    orphan_subworkflows,
    start_workflows,
)
from horsies.workflows.subworkflow import (
    BUILD_LEASE,
    build_children,
    start_failure,
    unknown_definition,
)

_logger = logging.getLogger("horsies.worker")

_BATCH = 50


class SubWorkflowService:
    """Beside the waits, which do not wait for the user's `build_with`.

    The waits look every few seconds whether there is something to build, and wake it.
    """

    name = "sub-workflows"
    interval_s = 3600.0

    def __init__(
        self, app: Horsies, connection: ServiceConnection, *, is_stopping: Callable[[], bool]
    ) -> None:
        self._app = app
        self._connection = connection
        # A stopping worker may be an old release: children are built by those that stay.
        self._is_stopping = is_stopping
        self.woken = asyncio.Event()
        self._is_building = False
        self.on_done: Callable[[int], None] = _nobody_waits

    @property
    def is_idle(self) -> bool:
        return not self._is_building and not self.woken.is_set()

    def wake(self) -> None:
        """There are nodes that wait for their child."""
        self.woken.set()

    async def run_once(self) -> int:
        """Start children until there are none left to build; return how many were built."""
        self._is_building = True
        total = 0
        try:
            while not self._is_stopping():
                count = await self._build_some()
                total += count
                if not count:
                    break
        finally:
            self._is_building = False
        self.on_done(total)
        return total

    async def _build_some(self) -> int:
        keys = definition_keys()
        ready = await self._connection.run(claim_subworkflows(keys, BUILD_LEASE, _BATCH))
        built = await build_children(self._app, ready)
        failures = built.failures
        if built.starts:
            failures |= await self._start(built.starts)
        if self._app.config.unknown_tasks == "fail":
            orphans = await self._connection.run(orphan_subworkflows(keys, _BATCH))
            failures |= {node.node_id: unknown_definition(node.definition_key) for node in orphans}
        if failures:
            await self._connection.run(fail_nodes(list(failures), list(failures.values())))
        return len(built.starts) + len(failures)

    async def _start(self, starts: list[NewRows]) -> dict[str, str]:
        """Store children; what the database refuses, by the node it belongs to."""
        try:
            await self._connection.run(start_workflows(starts))
        except (psycopg.Error, UnicodeError) as error:
            if is_transient(error):
                raise
            if len(starts) == 1:
                _logger.exception("a sub-workflow could not be stored")
                return {str(starts[0].workflow.parent_node_id): start_failure(error)}
        else:
            return {}
        middle = len(starts) // 2
        return await self._start(starts[:middle]) | await self._start(starts[middle:])


def _nobody_waits(_built_count: int) -> None:
    """Until the service of the waits asks to know."""
