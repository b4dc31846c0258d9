"""How many there are of each: tasks and workflows by state, snapshots by age; all bounded."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import timedelta
from typing import NamedTuple

from horsies.database.functions import call
from horsies.database.sql_files import query
from horsies.database.statement import Statement
from horsies.operations.listing import COUNT_LIMIT, TaskCount, bounded
from horsies.operations.steps import Steps
from horsies.states import TaskStatus, WorkflowStatus

_SNAPSHOT_LIMIT = 100_000
_AGES = tuple(timedelta(hours=hours) for hours in (1, 6, 24, 72, 168))


class _Counted(NamedTuple):
    kind: str
    status: str
    number: int


class WorkerTotal(NamedTuple):
    """How many tasks in this state are a worker's; no worker has those that wait."""

    worker_id: str | None
    status: str
    number: int


class _AgeCount(NamedTuple):
    position: int
    number: int


@dataclass(frozen=True, slots=True)
class SystemTotals:
    """Tasks and workflows by state, and claims whose lease has run out."""

    tasks: dict[str, TaskCount]
    workflows: dict[str, TaskCount]
    stale_claims: TaskCount


@dataclass(frozen=True, slots=True)
class SnapshotAge:
    """Snapshots of workers that are younger than `under`, and older than the one before."""

    under: timedelta | None
    count: TaskCount


def totals() -> Statement[_Counted]:
    return call("totals", _Counted, count_limit=COUNT_LIMIT + 1)


def totals_steps() -> Steps[SystemTotals]:
    rows: list[_Counted] = yield totals()
    found = {(row.kind, row.status): row.number for row in rows}
    return SystemTotals(
        _by_state(found, "task", (status.value for status in TaskStatus)),
        _by_state(found, "workflow", (status.value for status in WorkflowStatus)),
        bounded(found.get(("stale", "CLAIMED"), 0)),
    )


def worker_totals_steps() -> Steps[list[WorkerTotal]]:
    """All that is in flight, and the last 10,000 of each state that ended."""
    parameters = {"limit": COUNT_LIMIT}
    rows: list[WorkerTotal] = yield Statement(
        query("operations", "worker_totals"), parameters, WorkerTotal
    )
    return rows


def snapshot_ages_steps() -> Steps[list[SnapshotAge]]:
    """The youngest first; the last one has all that are older."""
    parameters = {"ages": list(_AGES), "limit": _SNAPSHOT_LIMIT + 1}
    rows: list[_AgeCount] = yield Statement(
        query("operations", "snapshot_ages"), parameters, _AgeCount
    )
    bounds: list[timedelta | None] = [*_AGES, None]
    return [SnapshotAge(bounds[row[0] - 1], bounded(row[1], _SNAPSHOT_LIMIT)) for row in rows]


def _by_state(
    found: dict[tuple[str, str], int], kind: str, states: Iterable[str]
) -> dict[str, TaskCount]:
    return {status: bounded(found.get((kind, status), 0)) for status in states}
