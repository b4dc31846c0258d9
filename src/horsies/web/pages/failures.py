"""Failures: what goes wrong, each thing once, however many tasks it has hit."""

from starlette.responses import Response

from horsies.web.rendering import render
from horsies.web.routes import action, page
from horsies.web.spans import SPANS, span_of
from horsies.web.visit import Form, RefusedError, Visit, value_of


async def failures(visit: Visit) -> Response:
    span, length = span_of(visit, "24h")
    groups = await visit.read(
        ("failures", span), lambda: visit.operations.failures_async(window=length), age_s=2
    )
    return render(visit, "failures.html", groups=groups, span=span, spans=SPANS)


async def requeue(visit: Visit, form: Form) -> Response:
    """Put the tasks of a group back in their queues."""
    span, key = form.get("span", ""), form.get("key", "")
    if span not in SPANS:
        raise RefusedError("This form is incomplete. Go back, reload and try again.")
    count = value_of(
        await visit.operations.requeue_failures_async(
            key, window=SPANS[span], note=visit.note(form)
        )
    )
    return visit.done("/failures", f"{count} task(s) went back to their queues.", span=span)


ROUTES = [page("/failures", failures), action("/failures/requeue", requeue)]
