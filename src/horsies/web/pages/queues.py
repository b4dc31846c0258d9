"""The queues: what waits, how fast it goes, and what may run at once."""

from datetime import timedelta

from starlette.responses import Response

from horsies.operations.queues import QueueInfo
from horsies.web.charts import bar
from horsies.web.rendering import render
from horsies.web.routes import Form, action, page
from horsies.web.visit import RefusedError, Visit, value_of, whole_number

_MOST_AT_ONCE = 2**31 - 1
_WINDOWS = {
    "5m": timedelta(minutes=5),
    "1h": timedelta(hours=1),
    "24h": timedelta(days=1),
}


async def queues(visit: Visit) -> Response:
    window = visit.query("window", "1h")
    if window not in _WINDOWS:
        raise RefusedError(f"{window!r} is no window; choose one of {', '.join(_WINDOWS)}.")
    found = await visit.read(
        ("queues", window),
        lambda: visit.operations.queues_async(window=_WINDOWS[window]),
        age_s=1,
    )
    return render(visit, "queues.html", queues=found, usage=usage, windows=_WINDOWS, window=window)


def usage(queue: QueueInfo) -> str:
    """A bar of how much of its cap a queue uses."""
    if not queue.max_concurrency:
        return ""
    used = queue.running_count + queue.claimed_count
    share = used / queue.max_concurrency
    tone = "warn" if share >= 1 else "busy"
    return bar(share, tone, f"{used} of {queue.max_concurrency} in use")


async def pause(visit: Visit, form: Form) -> Response:
    name = visit.request.path_params["name"]
    changed = value_of(await visit.operations.pause_queue_async(name, note=visit.note(form)))
    return visit.done(
        "/queues", f"Queue {name} is paused." if changed else f"Queue {name} was paused already."
    )


async def resume(visit: Visit, form: Form) -> Response:
    name = visit.request.path_params["name"]
    changed = value_of(await visit.operations.resume_queue_async(name, note=visit.note(form)))
    return visit.done(
        "/queues", f"Queue {name} goes on." if changed else f"Queue {name} was not paused."
    )


async def limit(visit: Visit, form: Form) -> Response:
    name, text = visit.request.path_params["name"], form.get("limit", "").strip()
    cap = whole_number(text, 1, _MOST_AT_ONCE, "A limit") if text else None
    value_of(await visit.operations.limit_queue_async(name, cap, note=visit.note(form)))
    said = f"is limited to {cap}" if cap else "is limited as configured"
    return visit.done("/queues", f"Queue {name} {said}.")


ROUTES = [
    page("/queues", queues),
    action("/queues/{name:horsies_name}/pause", pause),
    action("/queues/{name:horsies_name}/resume", resume),
    action("/queues/{name:horsies_name}/limit", limit),
]
