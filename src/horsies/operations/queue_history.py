"""How queues fared over time: rates, latencies and backlog in even steps, for charts."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

from horsies.database.sql_files import query
from horsies.database.statement import Scalar, Statement
from horsies.operations.steps import RefusedError, Steps

# The longest window for each length of step that `horsies_record_history` keeps.
STEPS = (
    (timedelta(minutes=30), timedelta(seconds=10)),
    (timedelta(hours=2), timedelta(minutes=1)),
    (timedelta(hours=6), timedelta(minutes=4)),
    (timedelta(days=1), timedelta(minutes=20)),
    (timedelta(days=7), timedelta(hours=2)),
    (timedelta(days=31), timedelta(hours=8)),
)
_SHARES = (0.5, 0.95, 0.99)
_BUCKETS_PER_DECADE = 8
_EPOCH = datetime.fromtimestamp(0, UTC)


class _Row(NamedTuple):
    starts_at: datetime
    queue_name: str
    completed_count: int
    failed_count: int
    expired_count: int
    start_latencies: list[int]
    run_times: list[int]
    due_count: int | None
    oldest_due_s: float | None


class HistoryPoint(NamedTuple):
    """What happened in one step.

    Latencies and run times are seconds at 50, 95 and 99 %, within a sixth; empty where none ended.
    `due_count` and `oldest_due_s` are the highest that were seen.
    """

    at: datetime
    completed_count: int
    failed_count: int
    expired_count: int
    start_latencies: list[float]
    run_times: list[float]
    due_count: int
    oldest_due_s: float


@dataclass(frozen=True, slots=True)
class QueueHistory:
    """Steps of equal length, the oldest first; None where no worker was there to record."""

    step: timedelta
    starts: list[datetime]
    points: list[HistoryPoint | None]


def queue_history_steps(window: timedelta, queue: str | None) -> Steps[QueueHistory]:
    """The steps of the window that are over; of all queues together if none is named."""
    step = next((step for longest, step in STEPS if window <= longest), None)
    if step is None or window < timedelta(minutes=1):
        raise RefusedError(f"a history is of 1 minute to 31 days, not of {window}")
    ((now,),) = yield Statement(query("operations", "now"), {}, Scalar)
    begun = _EPOCH + (now - _EPOCH) // step * step
    starts = [begun - step * number for number in range(window // step, 0, -1)]
    parameters = {
        "step_s": step.total_seconds(),
        "since": starts[0],
        "until": begun,
        "queue": queue,
    }
    rows: list[_Row] = yield Statement(query("operations", "queue_history"), parameters, _Row)
    found: dict[datetime, list[_Row]] = {}
    for row in rows:
        found.setdefault(row.starts_at, []).append(row)
    points = [_point(at, found[at]) if at in found else None for at in starts]
    return QueueHistory(step, starts, points)


def _point(at: datetime, rows: Sequence[_Row]) -> HistoryPoint:
    return HistoryPoint(
        at,
        sum(row.completed_count for row in rows),
        sum(row.failed_count for row in rows),
        sum(row.expired_count for row in rows),
        percentiles(merged(row.start_latencies for row in rows)),
        percentiles(merged(row.run_times for row in rows)),
        sum(row.due_count or 0 for row in rows),
        max(row.oldest_due_s or 0.0 for row in rows),
    )


def merged(histograms: Iterable[Sequence[int]]) -> list[int]:
    """One histogram of all."""
    total: list[int] = []
    for histogram in histograms:
        total.extend([0] * (len(histogram) - len(total)))
        for bucket, count in enumerate(histogram):
            if count:
                total[bucket] += count
    return total


def percentiles(histogram: Sequence[int]) -> list[float]:
    """Seconds at 50, 95 and 99 %; bucket n holds lengths up to 10^(n/8) milliseconds."""
    total = sum(histogram)
    if not total:
        return []
    return [_at(histogram, share * total) for share in _SHARES]


def _at(histogram: Sequence[int], wanted: float) -> float:
    """Where so many are below, as if each bucket were filled evenly on its scale."""
    below = 0
    for bucket, count in enumerate(histogram):
        if count and below + count >= wanted:
            place = bucket - 1 + (wanted - below) / count
            return float(10 ** (place / _BUCKETS_PER_DECADE)) / 1000
        below += count
    return 0.0
