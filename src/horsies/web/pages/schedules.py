"""Schedules: when each runs, in plain words; what became of its slots; run, pause, backfill."""

from datetime import UTC, datetime

from starlette.responses import Response

from horsies.scheduling.control import ScheduleInfo
from horsies.web.places import place
from horsies.web.rendering import render
from horsies.web.routes import action, page
from horsies.web.visit import Form, RefusedError, Visit, value_of

_NEXT, _PAST = 10, 50
_SLOTS_SHOWN = 100


async def schedules(visit: Visit) -> Response:
    found = await _list(visit)
    return render(visit, "schedules.html", schedules=found)


async def schedule(visit: Visit) -> Response:
    name = visit.request.path_params["name"]
    info = next((one for one in await _list(visit) if one.name == name), None)
    if info is None:
        raise RefusedError(f"There is no schedule {name}.", 404)
    control = visit.site.app.schedules
    runs = await visit.read(("runs", name), lambda: control.history_async(name, _PAST))
    following = (
        await visit.read(("next", name), lambda: control.next_runs_async(name, _NEXT))
        if info.definition is not None and info.is_enabled and info.next_run_at is not None
        else []
    )
    return render(visit, "schedule.html", info=info, runs=runs, following=following)


async def _list(visit: Visit) -> list[ScheduleInfo]:
    # Answers of many schedules cost; a second of age is nothing beside a slot.
    return await visit.read("schedules", visit.site.app.schedules.list_async, age_s=1)


def _place(visit: Visit) -> tuple[str, str]:
    name = visit.request.path_params["name"]
    return name, place("schedules", name)


async def run_now(visit: Visit, form: Form) -> Response:
    name, here = _place(visit)
    sent = value_of(await visit.site.app.schedules.run_now_async(name, note=visit.note(form)))
    return visit.done(here, f"{name} is sent once, beside its slots: {sent}")


async def pause(visit: Visit, form: Form) -> Response:
    name, here = _place(visit)
    note = visit.note(form)
    value_of(await visit.site.app.schedules.pause_async(name, reason=note.reason, note=note))
    return visit.done(here, f"{name} is paused.")


async def resume(visit: Visit, form: Form) -> Response:
    name, here = _place(visit)
    is_resumed = value_of(await visit.site.app.schedules.resume_async(name, note=visit.note(form)))
    return visit.done(here, f"{name} goes on." if is_resumed else f"{name} was not paused.")


async def backfill(visit: Visit, form: Form) -> Response:
    """Show which slots of a range would be sent; with the confirmation, send them."""
    name, here = _place(visit)
    start, end = _instant(form, "start"), _instant(form, "end")
    is_sure = form.get("sure") == "yes"
    found = value_of(
        await visit.site.app.schedules.backfill_async(
            name, start, end, preview=not is_sure, note=visit.note(form)
        )
    )
    if is_sure:
        return visit.done(here, f"{len(found.slots)} run(s) of {name} are sent.")
    return render(
        visit,
        "backfill.html",
        name=name,
        found=found,
        shown=found.slots[:_SLOTS_SHOWN],
        start=start,
        end=end,
    )


def _instant(form: Form, field: str) -> datetime:
    """What the viewer typed, in UTC: browsers send it without a zone."""
    try:
        given = datetime.fromisoformat(form.get(field, ""))
    except ValueError as error:
        raise RefusedError("Give both times, such as 2030-01-31T09:00.") from error
    return given if given.tzinfo else given.replace(tzinfo=UTC)


_ONE = "/schedules/{name:horsies_name}"
ROUTES = [
    page("/schedules", schedules),
    page(_ONE, schedule),
    action(f"{_ONE}/run", run_now),
    action(f"{_ONE}/pause", pause),
    action(f"{_ONE}/resume", resume),
    action(f"{_ONE}/backfill", backfill),
]
