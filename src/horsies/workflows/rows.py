"""The rows of a new workflow and its nodes, and how a spec becomes them.

The fields are the members that `horsies_start_workflows` reads: a column is added to both.
"""

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime
from typing import Any, NamedTuple

from horsies.codec.shapes import Json
from horsies.ids import new_id
from horsies.tasks.options import StoredOptions, parse_task_options, write_task_options
from horsies.workflows.mermaid import NodeKind, node_kind
from horsies.workflows.nodes import (
    AnyNode,
    EventNode,
    SleepNode,
    SubWorkflowNode,
    SuccessPolicy,
    TaskNode,
)
from horsies.workflows.spec import WorkflowSpec


class NewWorkflow(NamedTuple):
    """A workflow to start. A child names the node of its parent that waits for it."""

    id: str
    name: str
    on_error: str
    output_task_index: int | None
    success_policy: dict[str, Json] | None
    definition_key: str | None
    sent_at: datetime
    node_count: int
    parent_node_id: str | None = None


class NewNode(NamedTuple):
    """A node to store. `settings` is what only its kind needs."""

    id: str
    workflow_id: str
    task_index: int
    node_id: str
    task_name: str
    task_kwargs: str = "{}"
    queue_name: str = "default"
    priority: int = 100
    dependencies: tuple[int, ...] = ()
    dependents: tuple[int, ...] = ()
    args_from: dict[str, int] | None = None
    workflow_ctx_from: tuple[str, ...] | None = None
    allow_failed_deps: bool = False
    join_type: str = "all"
    min_success: int | None = None
    task_options: str | None = None
    good_until: datetime | None = None
    max_retries: int = 0
    kind: NodeKind = "task"
    settings: dict[str, Json] | None = None
    sub_definition_key: str | None = None


class NewRows(NamedTuple):
    """All that one workflow stores at its start."""

    workflow: NewWorkflow
    nodes: list[NewNode]


def rows_of(
    spec: WorkflowSpec[Any], workflow_id: str, sent_at: datetime, parent_node_id: str | None = None
) -> NewRows:
    """What a spec stores when it is started."""
    dependents: list[list[int]] = [[] for _ in spec.tasks]
    for node in spec.tasks:
        for dependency in node.waits_for:
            dependents[_index(dependency)].append(_index(node))
    workflow = NewWorkflow(
        id=workflow_id,
        name=spec.name,
        on_error=str(spec.on_error),
        output_task_index=None if spec.output is None else spec.output.index,
        success_policy=_policy(spec.success_policy),
        definition_key=spec.definition_key,
        sent_at=sent_at,
        node_count=len(spec.tasks),
        parent_node_id=parent_node_id,
    )
    nodes = [_row(node, workflow_id, tuple(dependents[_index(node)])) for node in spec.tasks]
    return NewRows(workflow, nodes)


def _row(node: AnyNode, workflow_id: str, dependents: tuple[int, ...]) -> NewNode:
    row = NewNode(
        id=new_id(),
        workflow_id=workflow_id,
        task_index=_index(node),
        node_id=str(node.node_id),
        task_name=node.name,
        dependencies=tuple(_index(dependency) for dependency in node.waits_for),
        dependents=dependents,
        allow_failed_deps=node.allow_failed_deps,
        join_type=node.join,
        min_success=node.min_success,
        kind=node_kind(node),
    )
    if isinstance(node, SleepNode):
        return row._replace(settings=_sleep(node))
    if isinstance(node, EventNode):
        seconds = None if node.timeout is None else node.timeout.total_seconds()
        settings: dict[str, Json] = {"event": node.event.name, "key": node.event_key}
        return row._replace(settings={**settings, "seconds": seconds})
    row = row._replace(
        task_kwargs=node.kwargs_json or "{}",
        args_from={name: _index(source) for name, source in node.args_from.items()} or None,
        workflow_ctx_from=tuple(str(n.node_id) for n in node.workflow_ctx_from or ()) or None,
    )
    if isinstance(node, SubWorkflowNode):
        return row._replace(sub_definition_key=node.workflow_def.get_own_key())
    return _task_row(node, row)


def _task_row(node: TaskNode[Any], row: NewNode) -> NewNode:
    declared: str | None = getattr(node.fn, "task_options_json", None)
    options = parse_task_options(declared)
    assert node.queue is not None, "a start has checked it"
    assert node.priority is not None
    return row._replace(
        queue_name=node.queue,
        priority=node.priority,
        task_options=declared if node.good_until is None else _with_deadline(options, node),
        good_until=node.good_until,
        max_retries=options.max_retries,
        settings=None
        if node.each is None
        else {
            "each_index": _index(node.each),
            "each_as": node.each_as,
            "max_in_flight": node.max_in_flight,
        },
    )


def _with_deadline(options: StoredOptions, node: TaskNode[Any]) -> str:
    return write_task_options(replace(options, good_until=node.good_until))


def _sleep(node: SleepNode) -> dict[str, Json]:
    if node.until is not None:
        return {"until": node.until.isoformat()}
    assert node.duration is not None, "a checked sleep has one of the two"
    return {"seconds": node.duration.total_seconds()}


def _policy(policy: SuccessPolicy | None) -> dict[str, Json] | None:
    if policy is None:
        return None
    cases: list[Json] = [
        {"required_indices": [_index(node) for node in case.required]} for case in policy.cases
    ]
    stored: dict[str, Json] = {"cases": cases}
    if policy.optional is not None:
        stored["optional_indices"] = [_index(node) for node in policy.optional]
    return stored


def _index(node: AnyNode) -> int:
    assert node.index is not None, "nodes of a spec have an index"
    return node.index


def carrying(rows: NewRows, carry: Callable[[str | None], str | None]) -> NewRows:
    """The same rows with the current span in the options of each node, for its own tasks."""
    nodes = [
        node._replace(task_options=carry(node.task_options))
        if node.kind in ("task", "each", "sub_workflow")
        else node
        for node in rows.nodes
    ]
    return NewRows(rows.workflow, nodes)
