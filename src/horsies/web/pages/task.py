"""One task: what happened, what it was given and what it returned; steer it."""

import json
from typing import Any

from starlette.responses import Response

from horsies.operations.detail import TaskDetail
from horsies.result import Err
from horsies.states import TaskStatus
from horsies.tasks.definition import TaskDefinition
from horsies.web.attempts import attempts_of
from horsies.web.copies import copies
from horsies.web.masking import as_text, read_stored, unmasked
from horsies.web.places import place
from horsies.web.rendering import render
from horsies.web.routes import Form, action, page
from horsies.web.visit import RefusedError, Visit, value_of

_WAITING = (TaskStatus.PENDING, TaskStatus.CLAIMED, TaskStatus.RUNNING)


async def task(visit: Visit) -> Response:
    return await show(visit)


async def show(
    visit: Visit, *, edited: tuple[str, str] | None = None, mistake: str | None = None
) -> Response:
    """The page; after a mistake in edited arguments, with what was typed."""
    found = await read(visit)
    info = found.info
    reasons = []
    if info.status in _WAITING:
        explained = await visit.read(
            ("why", info.task_id), lambda: visit.operations.why_async(info.task_id), age_s=1
        )
        reasons = explained.reasons
    definition = visit.site.app.definition(info.task_name)
    masking = visit.site.masking
    arguments = masking.arguments(definition, found.row.args, found.row.kwargs)
    is_ok = info.result is not None and info.result.is_ok()
    return render(
        visit,
        "task.html",
        code=400 if mistake else 200,
        task=found,
        info=info,
        reasons=reasons,
        arguments=[one._replace(value=as_text(one.value)) for one in arguments],
        result=as_text(masking.result(definition, info.result.ok_value))
        if info.result is not None and is_ok
        else None,
        error=None if is_ok or info.result is None else info.result.err_value,
        ok_type=definition and _shown(definition.ok_type),
        attempts=attempts_of(found),
        copies=copies(found, arguments),
        editable=editable(visit, definition, found),
        edited=edited,
        mistake=mistake,
    )


def _shown(annotation: object) -> str:
    return annotation.__name__ if isinstance(annotation, type) else str(annotation)


async def read(visit: Visit) -> TaskDetail:
    task_id = visit.request.path_params["task_id"]
    found = await visit.read(("task", task_id), lambda: visit.operations.task_async(task_id))
    if found is None:
        raise RefusedError(f"There is no task {task_id}.", 404)
    return found


def editable(
    visit: Visit, definition: TaskDefinition | None, found: TaskDetail
) -> tuple[str, str] | None:
    """The arguments as JSON to edit, masked; None where they cannot be checked."""
    if (
        definition is None
        or found.row.is_workflow_task
        or found.info.task_name not in visit.site.app.tasks
    ):
        return None
    named = _stored(found)[1]
    if named is None:
        return None
    shown = visit.site.masking.arguments(definition, found.row.args, found.row.kwargs)
    positional = shown[: len(shown) - len(named)]
    return (
        as_text([one.value for one in positional]),
        as_text({one.name: one.value for one in shown[len(positional) :]}),
    )


async def cancel(visit: Visit, form: Form) -> Response:
    found = await read(visit)
    is_running = found.info.status is TaskStatus.RUNNING
    changed = value_of(
        await visit.operations.cancel_async(
            found.info.task_id, running=is_running, note=visit.note(form)
        )
    )
    asked = "The worker was asked to end it." if is_running else "It is cancelled."
    return _back(visit, found, asked if changed.number else "It had begun or ended meanwhile.")


async def requeue(visit: Visit, form: Form) -> Response:
    found = await read(visit)
    changed = value_of(
        await visit.operations.requeue_async(
            found.info.task_id, include_completed=True, note=visit.note(form)
        )
    )
    return _back(
        visit, found, "It is back in its queue." if changed.number else "It cannot be requeued."
    )


async def run_now(visit: Visit, form: Form) -> Response:
    found = await read(visit)
    changed = value_of(
        await visit.operations.retry_now_async(found.info.task_id, note=visit.note(form))
    )
    return _back(visit, found, "It is due now." if changed.number else "It does not wait any more.")


async def delete(visit: Visit, form: Form) -> Response:
    found = await read(visit)
    changed = value_of(
        await visit.operations.delete_async(found.info.task_id, note=visit.note(form))
    )
    if not changed.number:
        return _back(
            visit, found, "Only ended tasks that are no node of a workflow can be deleted."
        )
    return visit.done("/tasks", f"Task {found.info.task_id} is deleted.")


async def rerun(visit: Visit, form: Form) -> Response:
    found = await read(visit)
    new_id = value_of(await visit.operations.rerun_async(found.info.task_id, note=visit.note(form)))
    return visit.done(place("tasks", new_id), "This is the new task, with the same arguments.")


async def send_edited(visit: Visit, form: Form) -> Response:
    """A new task with edited arguments, checked against the signature before it is stored."""
    found = await read(visit)
    definition = visit.site.app.definition(found.info.task_name)
    if definition is None or editable(visit, definition, found) is None:
        raise RefusedError(
            "This dashboard does not know the task's signature; start it with the app."
        )
    typed = form.get("args", "[]"), form.get("kwargs", "{}")
    try:
        args, kwargs = _edited(typed, found)
    except ValueError as error:
        return await show(visit, edited=typed, mistake=str(error))
    decoded = definition.decode_arguments(json.dumps(args), json.dumps(kwargs))
    if isinstance(decoded, Err):
        return await show(visit, edited=typed, mistake=decoded.err_value.message)
    positional, named = decoded.ok_value
    known = visit.site.app.tasks[found.info.task_name]
    options = known.with_options(queue_name=found.info.queue_name, tags=found.info.tags or ())
    sent = await options.send_async(*positional, **named)
    if isinstance(sent, Err):
        return await show(visit, edited=typed, mistake=sent.err_value.message)
    new_id = sent.ok_value.task_id
    details: dict[str, object] = {"new_task": new_id, "is_edited": True}
    target = f"tasks {found.info.task_id}"
    value_of(
        await visit.operations.record_async("rerun", target, note=visit.note(form), details=details)
    )
    return visit.done(place("tasks", new_id), "This is the new task, with the edited arguments.")


def _edited(typed: tuple[str, str], found: TaskDetail) -> tuple[list[Any], dict[str, Any]]:
    """The JSON that was typed; what is still masked keeps its stored value."""
    stored_args, stored_kwargs = _stored(found)
    args = unmasked(_json("args", typed[0]), stored_args)
    kwargs = unmasked(_json("kwargs", typed[1]), stored_kwargs)
    if isinstance(args, list) and isinstance(kwargs, dict):
        return args, kwargs
    raise ValueError("args is a JSON list, kwargs a JSON object")


def _stored(found: TaskDetail) -> tuple[list[Any] | None, dict[str, Any] | None]:
    row = found.row
    args, kwargs = read_stored(row.args or "[]", list), read_stored(row.kwargs or "{}", dict)
    return (args, kwargs) if args is not None else (None, None)


def _json(name: str, text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{name} is no JSON: {error}") from error


def _back(visit: Visit, found: TaskDetail, said: str) -> Response:
    return visit.done(place("tasks", found.info.task_id), said)


ROUTES = [
    page("/tasks/{task_id:horsies_name}", task),
    action("/tasks/{task_id:horsies_name}/cancel", cancel),
    action("/tasks/{task_id:horsies_name}/requeue", requeue),
    action("/tasks/{task_id:horsies_name}/run-now", run_now),
    action("/tasks/{task_id:horsies_name}/delete", delete),
    action("/tasks/{task_id:horsies_name}/rerun", rerun),
    action("/tasks/{task_id:horsies_name}/send", send_edited),
]
