"""Workflows: a list with progress, and one of them as a graph and as a waterfall, to steer."""

import json
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import partial

from markupsafe import Markup
from starlette.responses import Response

from horsies.drawing.path_parts import quoted, unquoted
from horsies.drawing.rails import NodeGroup
from horsies.drawing.workflow_text import node_text, progress, ran_for
from horsies.result.broker import BrokerResult
from horsies.states import WorkflowStatus
from horsies.web.graphs import draw_graph, groups_of
from horsies.web.places import place
from horsies.web.rendering import render
from horsies.web.routes import action, page
from horsies.web.visit import Form, RefusedError, Visit, value_of
from horsies.web.waterfalls import draw_waterfall
from horsies.workflows.listing import WorkflowFilter
from horsies.workflows.overview import WorkflowOverview
from horsies.workflows.statements import OverviewNode

_ROWS = 50
_NODES_SHOWN = 200
_UNFOLDED_LIMIT = 20
_ENDED = ("COMPLETED", "FAILED", "CANCELLED")


@dataclass(frozen=True, slots=True)
class Drawn:
    """A workflow and its picture; None where there is nothing to draw, or too much."""

    overview: WorkflowOverview
    graph: Markup | None


async def workflows(visit: Visit) -> Response:
    status, name, before = visit.query("status"), visit.query("name"), visit.query("before")
    try:
        statuses = [WorkflowStatus(status.upper())] if status else []
    except ValueError as error:
        known = ", ".join(one.value.lower() for one in WorkflowStatus)
        raise RefusedError(f"There is no state {status!r}; the states are {known}.") from error
    wanted = WorkflowFilter(statuses, name or None)
    found = await visit.read(
        ("workflows", status, name, before),
        lambda: visit.operations.workflows_async(wanted, limit=_ROWS, before=before or None),
    )
    return render(
        visit,
        "workflows.html",
        found=found,
        statuses=[one.value.lower() for one in WorkflowStatus],
        status=status.lower(),
        name=name,
        before=before,
        ran_for=ran_for,
    )


async def workflow(visit: Visit) -> Response:
    overview = await _overview(visit, visit.request.path_params["workflow_id"])
    opened = [one for one in visit.query("open").split(",") if one]
    unfolded = [unquoted(one) for one in opened[:_UNFOLDED_LIMIT]]
    children = [await _overview(visit, child) for child in unfolded]
    nodes = _chosen_nodes(visit, overview)
    by_index = {node.task_index: node for node in overview.nodes}
    return render(
        visit,
        "workflow.html",
        overview=overview,
        workflow=overview.workflow,
        drawn=[_drawn(visit, one, unfolded) for one in (overview, *children)],
        waterfall=draw_waterfall(groups_of(overview), overview.workflow.read_at),
        nodes=nodes[:_NODES_SHOWN],
        hidden_count=max(len(nodes) - _NODES_SHOWN, 0),
        said_of=partial(node_text, overview=overview, by_index=by_index),
        waiting=[n for n in overview.nodes if n.kind == "event" and n.status == "RUNNING"],
        node_link=partial(_node_link, visit),
        only=visit.query("only"),
        progress=progress,
        ran_for=ran_for,
        is_ended=overview.workflow.status in _ENDED,
    )


async def _overview(visit: Visit, workflow_id: str) -> WorkflowOverview:
    found = await visit.read(
        ("workflow", workflow_id), lambda: visit.operations.workflow_async(workflow_id)
    )
    if found is None:
        raise RefusedError(f"There is no workflow {workflow_id}.", 404)
    return found


def _chosen_nodes(visit: Visit, overview: WorkflowOverview) -> list[OverviewNode]:
    """The nodes of the table: all, those in one state, or those of one box."""
    only, group = visit.query("only"), visit.query("group")
    if group:
        members = (one.members for one in groups_of(overview) if str(one.first.task_index) == group)
        return list(next(members, ()))
    return [node for node in overview.nodes if not only or node.status.lower() == only]


def _drawn(visit: Visit, overview: WorkflowOverview, unfolded: list[str]) -> Drawn:
    def link(group: NodeGroup) -> str | None:
        here = place("workflows", overview.workflow.id)
        if len(group.members) > 1:
            return visit.url(here, group=group.first.task_index) + "#nodes"
        child = group.first.sub_workflow_id
        if child is None:
            return _node_link(visit, group.first)
        if child in unfolded:
            return f"#w-{quoted(child)}"
        top = place("workflows", visit.request.path_params["workflow_id"])
        opened = ",".join(map(quoted, [*unfolded, child]))
        return visit.url(top, open=opened) + f"#w-{quoted(child)}"

    return Drawn(overview, draw_graph(overview, link))


def _node_link(visit: Visit, node: OverviewNode) -> str | None:
    if node.sub_workflow_id is not None:
        return visit.url(place("workflows", node.sub_workflow_id))
    return None if node.task_id is None else visit.url(place("tasks", node.task_id))


Steer = Callable[[Visit, str, Form], Awaitable[BrokerResult[bool]]]


def _steering(word: str, done: str, steer: Steer) -> "Callable[[Visit, Form], Awaitable[Response]]":
    async def act(visit: Visit, form: Form) -> Response:
        workflow_id = visit.request.path_params["workflow_id"]
        is_changed = value_of(await steer(visit, workflow_id, form))
        here = place("workflows", workflow_id)
        if is_changed:
            return visit.done(here, f"The workflow is {done}.")
        visit.site.reads.clear()
        status = (await _overview(visit, workflow_id)).workflow.status.lower()
        return visit.done(here, f"Nothing changed: a workflow that is {status} cannot be {word}.")

    return act


async def send_event(visit: Visit, form: Form) -> Response:
    """Deliver an event that a node waits for; the payload is JSON."""
    name, key, text = form.get("name", ""), form.get("key", ""), form.get("payload", "")
    try:
        payload = json.loads(text) if text.strip() else None
    except ValueError as error:
        raise RefusedError(f"The payload is not JSON: {error}") from error
    value_of(await visit.site.app.send_event_async(name, key, payload))
    await visit.operations.record_async("event", f"{name} {key}", note=visit.note(form), details={})
    workflow_id = visit.request.path_params["workflow_id"]
    return visit.done(place("workflows", workflow_id), f"Event {name} with key {key} is sent.")


async def _pause(visit: Visit, workflow_id: str, form: Form) -> BrokerResult[bool]:
    return await visit.operations.pause_workflow_async(workflow_id, note=visit.note(form))


async def _resume(visit: Visit, workflow_id: str, form: Form) -> BrokerResult[bool]:
    return await visit.operations.resume_workflow_async(workflow_id, note=visit.note(form))


async def _cancel(visit: Visit, workflow_id: str, form: Form) -> BrokerResult[bool]:
    return await visit.operations.cancel_workflow_async(workflow_id, note=visit.note(form))


async def _retry(visit: Visit, workflow_id: str, form: Form) -> BrokerResult[bool]:
    from_node = form.get("from_node", "").strip() or None
    return await visit.operations.retry_workflow_async(
        workflow_id, from_node=from_node, note=visit.note(form)
    )


_ONE = "/workflows/{workflow_id:horsies_name}"
ROUTES = [
    page("/workflows", workflows),
    page(_ONE, workflow),
    action(f"{_ONE}/pause", _steering("paused", "paused", _pause)),
    action(f"{_ONE}/resume", _steering("resumed", "running again", _resume)),
    action(f"{_ONE}/cancel", _steering("cancelled", "cancelled", _cancel)),
    action(f"{_ONE}/retry", _steering("retried", "running again", _retry)),
    action(f"{_ONE}/event", send_event),
]
