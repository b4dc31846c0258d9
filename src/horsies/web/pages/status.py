"""The status of one task as JSON or as a small page (docs/contract/monitoring.md §4)."""

from starlette.responses import JSONResponse, Response

from horsies.codec.secrecy import MASK
from horsies.web.masking import as_text
from horsies.web.rendering import render
from horsies.web.routes import page
from horsies.web.visit import RefusedError, Visit


async def status(visit: Visit) -> Response:
    is_json = visit.query("type") == "json"
    task_id = visit.query("task_id")
    if not task_id:
        return _refused(visit, "task_id is missing: /task?task_id=ID", 400, is_json=is_json)
    broker = visit.site.app.get_broker()
    found = await visit.read(("status", task_id), lambda: broker.get_task_status_async(task_id))
    if found is None:
        return _refused(visit, f"there is no task {task_id}", 404, is_json=is_json)
    shown = _masked(visit, found)
    if is_json:
        return JSONResponse(shown)
    return render(visit, "status.html", shown=shown, as_text=as_text)


def _masked(visit: Visit, found: dict[str, object]) -> dict[str, object]:
    masking = visit.site.masking
    output = found["output"]
    if output is not None:
        output = MASK if masking.hides_results else masking.value("", output)
    return {**found, "output": output}


def _refused(visit: Visit, text: str, code: int, *, is_json: bool) -> Response:
    if is_json:
        return JSONResponse({"error": text}, code)
    raise RefusedError(text, code)


ROUTES = [page("/task", status)]
