"""The statements of workflows: start, advance, steer, wake, read."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import NamedTuple

from horsies.database.functions import call
from horsies.database.sql_files import query
from horsies.database.statement import Receipt, Scalar, Statement
from horsies.workflows.mermaid import NodeKind
from horsies.workflows.rows import NewRows


class ReadySubWorkflow(NamedTuple):
    """A node that waits for a worker that builds its child."""

    node_id: str
    workflow_id: str
    definition_key: str | None
    kwargs: str | None
    task_options: str | None


class OrphanSubWorkflow(NamedTuple):
    """A node whose definition no living worker knows."""

    node_id: str
    definition_key: str


class Woken(NamedTuple):
    """What a look at the waiting nodes gave; None: no wait ends by time."""

    woken: int
    next_after_s: float | None
    has_ready: bool


class WorkflowRow(NamedTuple):
    """A workflow as it stands, with what tells the type of its output."""

    id: str
    name: str
    status: str
    result: str | None
    error: str | None
    output_kind: str | None
    output_task_name: str | None
    output_definition_key: str | None
    output_event_name: str | None


class NodeRow(NamedTuple):
    """A node as it stands."""

    node_id: str | None
    task_index: int
    task_name: str
    status: str
    result: str | None
    started_at: datetime | None
    completed_at: datetime | None
    kind: NodeKind
    join_type: str
    min_success: int | None
    dependencies: list[int]
    sub_workflow_id: str | None
    sub_workflow_summary: str | None
    sub_definition_key: str | None
    event_name: str | None


class ListedWorkflow(NamedTuple):
    """A workflow in a list; `read_at` is the database's clock."""

    id: str
    name: str
    status: str
    done_count: int
    node_count: int
    sent_at: datetime
    started_at: datetime | None
    completed_at: datetime | None
    read_at: datetime


class FoundId(NamedTuple):
    """A workflow that fits the beginning of an id."""

    id: str
    is_root: bool


class OverviewWorkflow(NamedTuple):
    """A workflow as people look at it; `counts` is the number of nodes in each state."""

    id: str
    name: str
    status: str
    on_error: str
    parent_workflow_id: str | None
    root_workflow_id: str | None
    max_in_flight: int | None
    sent_at: datetime
    started_at: datetime | None
    completed_at: datetime | None
    read_at: datetime
    error_code: str | None
    error_message: str | None
    counts: dict[str, int]


class OverviewNode(NamedTuple):
    """A node as people look at it."""

    workflow_id: str
    task_index: int
    node_id: str | None
    task_name: str
    kind: NodeKind
    status: str
    started_at: datetime | None
    completed_at: datetime | None
    dependencies: list[int]
    join_type: str
    min_success: int | None
    queue_name: str
    sub_workflow_id: str | None
    wait_until: datetime | None
    event_name: str | None
    event_key: str | None
    retry_count: int
    error_code: str | None
    error_message: str | None
    task_id: str | None = None


class FailureRow(NamedTuple):
    """A node that failed by itself."""

    workflow_id: str
    node_id: str | None
    task_index: int
    task_name: str
    error_code: str | None
    error_message: str | None


def start_workflows(starts: Sequence[NewRows]) -> Statement[Receipt]:
    """Store workflows; one receipt each, in input order."""
    return call(
        "start_workflows",
        Receipt,
        workflows=[rows.workflow._asdict() for rows in starts],
        nodes=[node._asdict() for rows in starts for node in rows.nodes],
    )


def lock_workflows_of_tasks(task_ids: Sequence[str]) -> Statement[Scalar]:
    """Lock the workflows of tasks that are about to end, in the same transaction."""
    return call("lock_workflows_of_tasks", Scalar, task_ids=task_ids)


def advance_tasks(task_ids: Sequence[str]) -> Statement[Scalar]:
    """What follows from tasks that have just ended; why it could not be done, or `None`."""
    return call("advance_tasks", Scalar, task_ids=task_ids)


def mark_running_nodes(task_ids: Sequence[str]) -> Statement[Scalar]:
    return call("mark_running_nodes", Scalar, task_ids=task_ids)


def unmarked_stopped_tasks(worker_id: str) -> Statement[Scalar]:
    """What runs here for a workflow that has stopped, by nodes that nobody has marked."""
    sql = query("workflows", "unmarked_stopped_tasks")
    return Statement(sql, {"worker_id": worker_id}, Scalar)


def claim_subworkflows(
    definition_keys: Sequence[str], lease: timedelta, batch_limit: int
) -> Statement[ReadySubWorkflow]:
    return call(
        "claim_subworkflows",
        ReadySubWorkflow,
        definition_keys=definition_keys,
        lease=lease,
        batch_limit=batch_limit,
    )


def orphan_subworkflows(own_keys: Sequence[str], batch_limit: int) -> Statement[OrphanSubWorkflow]:
    return call(
        "orphan_subworkflows", OrphanSubWorkflow, own_keys=own_keys, batch_limit=batch_limit
    )


def fail_nodes(node_ids: Sequence[str], results: Sequence[str]) -> Statement[Scalar]:
    return call("fail_nodes", Scalar, node_ids=node_ids, results=results)


def wake_nodes(batch_limit: int) -> Statement[Woken]:
    return call("wake_nodes", Woken, batch_limit=batch_limit)


def pause_workflow(workflow_id: str) -> Statement[Scalar]:
    return call("stop_workflow", Scalar, of_workflow=workflow_id, is_for_good=False)


def resume_workflow(workflow_id: str) -> Statement[Scalar]:
    return call("resume_workflow", Scalar, of_workflow=workflow_id)


def cancel_workflow(workflow_id: str) -> Statement[Scalar]:
    return call("stop_workflow", Scalar, of_workflow=workflow_id, is_for_good=True)


def retry_workflow(workflow_id: str, from_node: str | None) -> Statement[Scalar]:
    return call("retry_workflow", Scalar, of_workflow=workflow_id, from_node=from_node)


def read_workflows(workflow_ids: Sequence[str]) -> Statement[WorkflowRow]:
    sql = query("workflows", "read_workflows")
    return Statement(sql, {"ids": list(workflow_ids)}, WorkflowRow)


def read_nodes(workflow_id: str, *, with_results: bool = True) -> Statement[NodeRow]:
    parameters = {"workflow_id": workflow_id, "with_results": with_results, "node_id": None}
    return Statement(query("workflows", "read_nodes"), parameters, NodeRow)


def read_node(workflow_id: str, node_id: str) -> Statement[NodeRow]:
    parameters = {"workflow_id": workflow_id, "with_results": True, "node_id": node_id}
    return Statement(query("workflows", "read_nodes"), parameters, NodeRow)


def store_event(name: str, key: str, payload: str) -> Statement[Scalar]:
    return call("store_event", Scalar, event_name=name, event_key=key, event_payload=payload)


def list_workflows(
    statuses: Sequence[str] | None, name: str | None, before: str | None, limit: int
) -> Statement[ListedWorkflow]:
    parameters = {"statuses": statuses, "name": name, "before": before, "limit": limit}
    return Statement(query("workflows", "list_workflows"), parameters, ListedWorkflow)


def workflows_with_prefix(prefix: str) -> Statement[FoundId]:
    # By bytes: no id of letters, digits and dashes that begins like this is behind DEL.
    parameters = {"prefix": prefix, "prefix_end": f"{prefix}\x7f"}
    return Statement(query("workflows", "workflows_with_prefix"), parameters, FoundId)


def overview_workflows(workflow_ids: Sequence[str]) -> Statement[OverviewWorkflow]:
    parameters = {"ids": list(workflow_ids)}
    return Statement(query("workflows", "overview_workflows"), parameters, OverviewWorkflow)


def overview_nodes(workflow_ids: Sequence[str]) -> Statement[OverviewNode]:
    parameters = {"workflow_ids": list(workflow_ids)}
    return Statement(query("workflows", "overview_nodes"), parameters, OverviewNode)


def failures_in_tree(workflow_id: str, limit: int) -> Statement[FailureRow]:
    parameters = {"workflow_id": workflow_id, "limit": limit}
    return Statement(query("workflows", "failures_in_tree"), parameters, FailureRow)
