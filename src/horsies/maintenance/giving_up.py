"""Gives up the runs of a worker of this host that is proven gone: its journal tells which began."""

from collections.abc import Sequence
from datetime import timedelta
from typing import Protocol, TypeVar

from horsies.broker.lost import judge_lost
from horsies.database import recovery
from horsies.database.rows import StaleRun
from horsies.database.statement import Statement
from horsies.database.tasks import return_unheld_tasks
from horsies.executors.journal import find_journal
from horsies.maintenance.processes import is_executing

Row = TypeVar("Row")
GONE = "worker process no longer running"
_AT_ONCE = timedelta(0)


class Connection(Protocol):
    """What a pass needs of a database connection."""

    async def run(self, statement: Statement[Row], /) -> list[Row]: ...


async def give_up_runs(
    connection: Connection, worker_id: str, runs: Sequence[StaleRun]
) -> tuple[int, int]:
    """How many of a dead worker's runs went back because they never began, how many were lost."""
    # Children die with their worker; until the last one has, none of its runs is touched.
    if any(map(is_executing, runs)):
        return 0, 0
    returned = await _return_unbegun(connection, worker_id)
    begun = await connection.run(recovery.runs_of(worker_id))
    given_up = [judge_lost(run, _AT_ONCE, GONE) for run in begun]
    if not given_up:
        return returned, 0
    return returned, len(await connection.run(recovery.fail_lost_tasks(_AT_ONCE, given_up)))


async def _return_unbegun(connection: Connection, worker_id: str) -> int:
    """Runs whose user code never began go back uncounted, where the worker's journal tells."""
    journal = find_journal(worker_id)
    if journal is None:
        return 0
    begun = journal.begun_ids()
    journal.close()
    if begun is None:
        return 0
    return int((await connection.run(return_unheld_tasks(worker_id, sorted(begun))))[0].value)


def has_left_journal(worker_id: str) -> bool:
    """Whether this was a worker of this host, is gone, and its journal still tells what began."""
    journal = find_journal(worker_id)
    if journal is None:
        return False
    try:
        return journal.is_abandoned
    finally:
        journal.close()
