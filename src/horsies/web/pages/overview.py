"""The overview: is all well, and what happened lately?"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import timedelta

from starlette.responses import Response

from horsies.operations.queue_history import HistoryPoint, QueueHistory
from horsies.operations.queues import SystemStatus, TaskStats
from horsies.web.charts import Chart, Series, draw
from horsies.web.rendering import in_seconds, render
from horsies.web.routes import page
from horsies.web.spans import SPANS, span_of
from horsies.web.visit import Visit

# Of ends that lie further back, only the charts tell.
_RECENTLY = timedelta(hours=6)
_NAMED = 8


@dataclass(frozen=True, slots=True)
class Figures:
    """The numbers at the top."""

    alive: int
    silent: int
    gone: int
    slots: int
    due: int
    has_more_due: bool
    later: int
    oldest: timedelta | None
    in_flight: int
    per_minute: float
    error_rate: float | None
    start_p95: float | None

    @property
    def has_trouble(self) -> bool:
        return not self.alive or self.silent > 0


def figures(status: SystemStatus) -> Figures:
    """What the whole system comes to."""
    states = [worker.state for worker in status.workers]
    alive = [worker for worker in status.workers if worker.state == "alive"]
    pace = status.pace
    bad = pace.failed_count + pace.expired_count
    ended = pace.completed_count + bad
    latencies = [
        queue.pace.start_latencies[1] for queue in status.queues if queue.pace.start_latencies
    ]
    return Figures(
        alive=len(alive),
        silent=states.count("silent"),
        gone=states.count("gone"),
        slots=sum(worker.snapshot.slot_count for worker in alive),
        due=sum(queue.due.number for queue in status.queues),
        has_more_due=any(queue.due.is_least for queue in status.queues),
        later=sum(queue.later.number for queue in status.queues),
        oldest=max((q.waiting_for for q in status.queues if q.waiting_for), default=None),
        in_flight=sum(queue.running_count + queue.claimed_count for queue in status.queues),
        per_minute=pace.per_minute,
        error_rate=bad / ended if ended else None,
        start_p95=max(latencies, default=None),
    )


def top_failing(stats: Sequence[TaskStats]) -> list[TaskStats]:
    """Those with the most failures first."""
    bad = [one for one in stats if one.pace.failed_count + one.pace.expired_count]
    bad.sort(key=lambda one: one.pace.failed_count + one.pace.expired_count, reverse=True)
    return bad[:_NAMED]


def charts_of(history: QueueHistory) -> list[Chart]:
    """Throughput, errors, start latency and oldest waiting age, over the same steps."""
    points, step_s = history.points, history.step.total_seconds()

    def series(
        name: str,
        tone: str,
        read: Callable[[HistoryPoint], float | None],
        *,
        is_filled: bool = False,
    ) -> Series:
        values = [None if point is None else read(point) for point in points]
        return Series(name, tone, values, is_filled)

    def bad(point: HistoryPoint) -> int:
        return point.failed_count + point.expired_count

    def error_rate(point: HistoryPoint) -> float | None:
        ended = point.completed_count + bad(point)
        return 100 * bad(point) / ended if ended else None

    def latency(at: int) -> Callable[[HistoryPoint], float | None]:
        return lambda point: point.start_latencies[at] if point.start_latencies else None

    per_minute = 60 / step_s
    lines = {
        "Throughput": (
            per_minute_text,
            [
                series(
                    "completed", "good", lambda p: p.completed_count * per_minute, is_filled=True
                ),
                series("failed or expired", "bad", lambda p: bad(p) * per_minute, is_filled=True),
            ],
        ),
        "Error rate": (percent_text, [series("errors", "bad", error_rate, is_filled=True)]),
        "Start latency": (
            in_seconds,
            [
                series("p99", "held", latency(2)),
                series("p95", "busy", latency(1)),
                series("p50", "good", latency(0)),
            ],
        ),
        "Oldest waiting": (
            in_seconds,
            [series("oldest", "warn", lambda p: p.oldest_due_s, is_filled=True)],
        ),
    }
    return [
        Chart(title, history.starts, history.step, drawn, form, is_duration=form is in_seconds)
        for title, (form, drawn) in lines.items()
    ]


def per_minute_text(value: float) -> str:
    return f"{value:,.0f}/min" if value >= 10 or value == int(value) else f"{value:.1f}/min"


def percent_text(value: float) -> str:
    return f"{value:.1f} %" if 0 < value < 10 else f"{value:.0f} %"


async def overview(visit: Visit) -> Response:
    operations = visit.operations
    span, length = span_of(visit, "1h")
    queue = visit.query("queue") or None
    history = await visit.read(
        ("queue history", span, queue),
        lambda: operations.queue_history_async(length, queue),
        age_s=5,
    )
    recent = min(length, _RECENTLY)
    status = await visit.read(
        ("status", recent), lambda: operations.status_async(window=recent), age_s=1
    )
    stats = await visit.read(
        ("task stats", recent), lambda: operations.task_stats_async(window=recent), age_s=5
    )
    findings = await visit.read("doctor", operations.doctor_async, age_s=60)
    return render(
        visit,
        "overview.html",
        status=status,
        figures=figures(status),
        failing=top_failing(stats),
        findings=findings,
        charts=[(chart.title, draw(chart)) for chart in charts_of(history)],
        is_recorded=any(history.points),
        spans=SPANS,
        span=span,
        recently=next(name for name, one in SPANS.items() if one == recent),
        queue=queue,
    )


ROUTES = [page("/", overview)]
