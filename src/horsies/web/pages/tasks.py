"""The list of tasks: find them by a filter, and change many at once."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from starlette.responses import JSONResponse, Response

from horsies.drawing.task_text import in_words, took
from horsies.operations.filter_words import FilterError, parse_filter
from horsies.operations.filters import TaskFilter
from horsies.web.bulk import BULK_ACTIONS, Target
from horsies.web.rendering import render
from horsies.web.routes import Form, action, page
from horsies.web.suggestions import suggest
from horsies.web.visit import RefusedError, Visit

_PAGE = 50
_RECENT = 200
_QUICK = {
    "All": "",
    "Waiting": "status:pending",
    "Running": "status:claimed,running",
    "Failed": "status:failed",
    "Expired": "status:expired",
    "Cancelled": "status:cancelled",
    "Completed": "status:completed",
}


class FilterText(NamedTuple):
    """A filter as it was typed, what it means, and what is wrong with it."""

    text: str
    wanted: TaskFilter
    mistake: str | None


def read_filter(text: str) -> FilterText:
    text = " ".join(text.split())[:1_000]
    try:
        return FilterText(text, parse_filter(text), None)
    except FilterError as error:
        return FilterText(text, TaskFilter(), str(error))


async def tasks(visit: Visit) -> Response:
    typed = read_filter(visit.query("q"))
    before = visit.query("before") or None
    found = count = None
    if typed.mistake is None:
        operations = visit.operations
        found = await visit.read(
            ("tasks", typed.text, before),
            lambda: operations.tasks_async(typed.wanted, limit=_PAGE, before=before),
        )
        count = await visit.read(
            ("count", typed.text), lambda: operations.count_async(typed.wanted), age_s=2
        )
    return render(
        visit,
        "tasks.html",
        code=400 if typed.mistake else 200,
        typed=typed,
        found=found,
        count=count,
        before=before,
        quick=_QUICK,
        actions=BULK_ACTIONS,
        in_words=in_words,
        took=took,
    )


async def suggestions(visit: Visit) -> Response:
    known = await visit.site.reads.get("known words", lambda: known_words(visit), age_s=15)
    found = suggest(visit.query("word")[:200], known)
    return JSONResponse([one._asdict() for one in found])


async def known_words(visit: Visit) -> Mapping[str, Sequence[str]]:
    """Values that filters can name, as far as lately used ones tell."""
    operations = visit.operations
    recent = await visit.read(
        "recent tasks", lambda: operations.tasks_async(limit=_RECENT), age_s=15
    )
    failed = await visit.read(
        "recent failures",
        lambda: operations.tasks_async(TaskFilter(statuses=("FAILED", "EXPIRED")), limit=_RECENT),
        age_s=15,
    )
    queues = await visit.read("queues", operations.queues_async, age_s=1)
    workers = await visit.read("workers", operations.workers_async, age_s=1)
    rows = [*recent.tasks, *failed.tasks]
    return {
        "task": [*visit.site.app.list_tasks(), *(row.task_name for row in rows)],
        "queue": [queue.name for queue in queues],
        "error": [row.error_code for row in rows if row.error_code],
        "tag": [tag for row in rows for tag in row.tags or ()],
        "worker": [worker.snapshot.hostname for worker in workers],
    }


async def review(visit: Visit, form: Form) -> Response:
    """Count what an action would change, before it is done."""
    target = Target.of(form)
    chosen = BULK_ACTIONS.get(form.get("do", ""))
    if chosen is None:
        raise RefusedError("Choose what to do with the tasks.")
    count = await chosen.count(visit.operations, target, form)
    return render(
        visit, "review.html", target=target, chosen=chosen, do=form["do"], count=count, form=form
    )


async def act(visit: Visit, form: Form) -> Response:
    target = Target.of(form)
    chosen = BULK_ACTIONS.get(form.get("do", ""))
    if chosen is None:
        raise RefusedError("Choose what to do with the tasks.")
    changed = await chosen.perform(visit.operations, target, form, visit.note(form))
    return visit.done("/tasks", f"{chosen.done}: {changed}.", q=target.text)


ROUTES = [
    page("/tasks", tasks),
    page("/suggestions", suggestions),
    action("/tasks/review", review),
    action("/tasks/act", act),
]
