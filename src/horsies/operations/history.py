"""How a worker and the whole system fared over time: the points of charts."""

from datetime import datetime, timedelta
from typing import NamedTuple

from horsies.database.sql_files import query
from horsies.database.statement import Statement
from horsies.operations.steps import RefusedError, Steps

POINT_COUNT = 120
_ENDS_READ = 100_000  # read from the index in about 30 ms


class WorkerPoint(NamedTuple):
    """A worker between `at` and the next point, on average of its snapshots."""

    at: datetime
    cpu_percent: float | None
    memory_mb: float | None
    children_memory_mb: float | None
    running: float
    claimed: float


class LoadPoint(NamedTuple):
    """What all workers ran between `at` and the next point, and how many slots they had."""

    at: datetime
    running: float
    slots: float


class EndPoint(NamedTuple):
    """How many tasks ended between `at` and the next point."""

    at: datetime
    completed: int
    failed: int
    expired: int


def worker_history_steps(worker_id: str, window: timedelta) -> Steps[list[WorkerPoint]]:
    """At most 120 points and one begun, the oldest first; a time without snapshots has none."""
    parameters = {"worker_id": worker_id, **_points(window)}
    rows: list[WorkerPoint] = yield Statement(
        query("operations", "worker_history"), parameters, WorkerPoint
    )
    return rows


def load_history_steps(window: timedelta) -> Steps[list[LoadPoint]]:
    rows: list[LoadPoint] = yield Statement(
        query("operations", "load_history"), _points(window), LoadPoint
    )
    return rows


def throughput_steps(window: timedelta, step: timedelta) -> Steps[list[EndPoint]]:
    """Only steps that were counted whole: at most 100,000 ends of each state are read."""
    if not timedelta(seconds=1) <= step <= window:
        raise RefusedError(f"a step is of 1 second up to the window, not of {step}")
    parameters = {**_points(window), "step": step, "row_limit": _ENDS_READ}
    rows: list[EndPoint] = yield Statement(query("operations", "throughput"), parameters, EndPoint)
    return rows


def _points(window: timedelta) -> dict[str, object]:
    if not timedelta(minutes=1) <= window <= timedelta(days=31):
        raise RefusedError(f"a history is of 1 minute to 31 days, not of {window}")
    return {"window": window, "step": window / POINT_COUNT}
