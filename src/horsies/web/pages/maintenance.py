"""Maintenance: what the doctor finds, workers that are gone, and who steered what."""

from starlette.responses import Response

from horsies.web.rendering import render
from horsies.web.routes import page
from horsies.web.visit import Visit

_ENTRIES = 100


async def maintenance(visit: Visit) -> Response:
    operations = visit.operations
    findings = await visit.read("doctor", operations.doctor_async, age_s=60)
    ages = await visit.read("snapshot ages", operations.snapshot_ages_async, age_s=5)
    workers = await visit.read("workers", operations.workers_async, age_s=1)
    entries = await visit.read("audit", lambda: operations.audit_async(limit=_ENTRIES), age_s=1)
    return render(
        visit,
        "maintenance.html",
        findings=findings,
        ages=ages,
        most=max((one.count.number for one in ages), default=0),
        dead=[one for one in workers if one.state != "alive"],
        entries=entries,
    )


ROUTES = [page("/maintenance", maintenance)]
