"""The workers: who lives, what each runs, how busy it is; let one finish and end."""

from collections.abc import Callable, Sequence
from datetime import datetime, timedelta

from starlette.responses import Response

from horsies.drawing.task_text import holds
from horsies.operations.history import POINT_COUNT, WorkerPoint
from horsies.web.charts import Chart, Series, draw
from horsies.web.pages.overview import percent_text
from horsies.web.rendering import render
from horsies.web.routes import Form, action, page
from horsies.web.visit import RefusedError, Visit, value_of

_REPORTED_WITHIN = timedelta(seconds=10)
_WINDOWS = {
    "5m": timedelta(minutes=5),
    "30m": timedelta(minutes=30),
    "1h": timedelta(hours=1),
    "6h": timedelta(hours=6),
    "24h": timedelta(days=1),
}


async def workers(visit: Visit) -> Response:
    found = await visit.read("workers", visit.operations.workers_async, age_s=1)
    return render(visit, "workers.html", workers=found, holds=holds)


async def worker(visit: Visit) -> Response:
    window = visit.query("window", "1h")
    if window not in _WINDOWS:
        raise RefusedError(f"{window!r} is no window; choose one of {', '.join(_WINDOWS)}.")
    worker_id = visit.request.path_params["worker_id"]
    operations = visit.operations
    day = timedelta(days=1)
    seen = await visit.read(
        "workers of a day", lambda: operations.workers_async(window=day), age_s=1
    )
    found = next((one for one in seen if one.snapshot.worker_id == worker_id), None)
    if found is None:
        raise RefusedError(f"No worker {worker_id} was seen in the last 24 hours.", 404)
    points = await visit.read(
        ("worker history", worker_id, window),
        lambda: operations.worker_history_async(worker_id, _WINDOWS[window]),
        age_s=5,
    )
    return render(
        visit,
        "worker.html",
        worker=found,
        charts=[(chart.title, draw(chart)) for chart in charts_of(points, _WINDOWS[window])],
        windows=_WINDOWS,
        window=window,
    )


def charts_of(points: Sequence[WorkerPoint], window: timedelta) -> list[Chart]:
    """CPU, memory and running tasks, with gaps where the worker did not report."""
    if not points:
        return []
    # Workers report every five seconds: a shorter step would have gaps.
    step = max(window / POINT_COUNT, _REPORTED_WITHIN)
    known = {int((point.at - points[0].at) / step): point for point in points}
    count = max(known) + 1
    starts = [points[0].at + step * number for number in range(count)]

    def series(name: str, tone: str, read: Callable[[WorkerPoint], float | None]) -> Series:
        values = [read(known[number]) if number in known else None for number in range(count)]
        return Series(name, tone, values, is_filled=True)

    return [
        _chart(
            "CPU", starts, step, [series("parent", "busy", lambda p: p.cpu_percent)], percent_text
        ),
        _chart(
            "Memory",
            starts,
            step,
            [
                series("parent", "held", lambda p: p.memory_mb),
                series("children", "busy", lambda p: p.children_memory_mb),
            ],
            megabytes,
        ),
        _chart(
            "Tasks",
            starts,
            step,
            [
                series("running", "good", lambda p: p.running),
                series("claimed", "held", lambda p: p.claimed),
            ],
            lambda value: f"{value:.1f}".removesuffix(".0"),
        ),
    ]


def _chart(
    title: str,
    starts: Sequence[datetime],
    step: timedelta,
    series: Sequence[Series],
    form: Callable[[float], str],
) -> Chart:
    return Chart(title, starts, step, series, form)


def megabytes(value: float) -> str:
    return f"{value / 1000:.1f} GB" if value >= 1000 else f"{value:.0f} MB"


async def drain(visit: Visit, form: Form) -> Response:
    worker_id = visit.request.path_params["worker_id"]
    value_of(await visit.operations.drain_worker_async(worker_id, note=visit.note(form)))
    return visit.done("/workers", "The worker finishes what it runs and ends.")


ROUTES = [
    page("/workers", workers),
    page("/workers/{worker_id:horsies_name}", worker),
    action("/workers/{worker_id:horsies_name}/drain", drain),
]
