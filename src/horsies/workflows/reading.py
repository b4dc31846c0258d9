"""From rows to values: results of workflows and nodes, read by the types their app declares."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any, Protocol

from horsies.codec.results import UNTYPED, ResultCodec, read_result
from horsies.codec.shapes import SerializationError, loads, read_error
from horsies.result import (
    OperationalErrorCode,
    OutcomeCode,
    RetrievalCode,
    TaskError,
    TaskResult,
)
from horsies.result.workflow import SubWorkflowSummary
from horsies.results.reading import AnyResult
from horsies.results.waiting import error_result
from horsies.states import WorkflowStatus, WorkflowTaskStatus, read_status
from horsies.tasks.definition import TaskDefinition
from horsies.workflows.definition import find_definition
from horsies.workflows.events import EventRegistry
from horsies.workflows.statements import NodeRow, WorkflowRow
from horsies.workflows.summary import read_summary


class WorkflowApp(Protocol):
    """The part of an app that tells types."""

    @property
    def events(self) -> EventRegistry: ...
    def definition(self, task_name: str) -> TaskDefinition | None: ...


@dataclass(frozen=True, slots=True)
class WorkflowTaskInfo:
    """A node of a stored workflow."""

    node_id: str | None
    index: int
    name: str
    status: WorkflowTaskStatus
    result: AnyResult | None
    started_at: datetime | None
    completed_at: datetime | None
    sub_workflow_id: str | None
    sub_workflow_summary: SubWorkflowSummary[Any] | None


def workflow_result(
    workflow_id: str, row: WorkflowRow | None, app: WorkflowApp | None
) -> AnyResult | None:
    """What `get` gives for a workflow as it stands; None while it runs."""
    data: dict[str, object] = {"workflow_id": workflow_id}
    if row is None:
        text = f"There is no workflow {workflow_id}; was it pruned, or started on another database?"
        return error_result(RetrievalCode.WORKFLOW_NOT_FOUND, text, data)
    if row.status == WorkflowStatus.COMPLETED:
        return _output(row, app, data)
    ended = _ENDED_OTHERWISE.get(row.status)
    if ended is None:
        return None
    stored = None if row.status == WorkflowStatus.PAUSED else _stored_error(row)
    return stored or error_result(*ended, data)


_ENDED_OTHERWISE: dict[str, tuple[OutcomeCode, str]] = {
    WorkflowStatus.FAILED: (OutcomeCode.WORKFLOW_FAILED, "The workflow failed"),
    WorkflowStatus.CANCELLED: (OutcomeCode.WORKFLOW_CANCELLED, "The workflow was cancelled"),
    WorkflowStatus.PAUSED: (
        OutcomeCode.WORKFLOW_PAUSED,
        "The workflow is paused: resume() or cancel() it",
    ),
}


def _output(row: WorkflowRow, app: WorkflowApp | None, data: dict[str, object]) -> AnyResult:
    if row.result is None:
        text = "The workflow completed but its result column is empty"
        return error_result(RetrievalCode.RESULT_NOT_AVAILABLE, text, data)
    if row.output_kind is None:
        return read_result(row.result, UNTYPED)
    name, key, event = row.output_task_name, row.output_definition_key, row.output_event_name
    return read_result(row.result, _codec(app, row.output_kind, name or "", key, event))


def node_result(row: NodeRow, app: WorkflowApp | None) -> AnyResult | None:
    """The stored result of a node; None while there is none."""
    if row.result is None:
        return None
    codec = _codec(app, row.kind, row.task_name, row.sub_definition_key, row.event_name)
    return read_result(row.result, codec)


def node_info(row: NodeRow, app: WorkflowApp | None) -> WorkflowTaskInfo:
    """A node with its result and the summary of its child."""
    return WorkflowTaskInfo(
        node_id=row.node_id,
        index=row.task_index,
        name=row.task_name,
        status=read_status(WorkflowTaskStatus, row.status),
        result=node_result(row, app),
        started_at=row.started_at,
        completed_at=row.completed_at,
        sub_workflow_id=row.sub_workflow_id,
        sub_workflow_summary=_summary(row, app),
    )


def _summary(row: NodeRow, app: WorkflowApp | None) -> SubWorkflowSummary[Any] | None:
    if row.sub_workflow_summary is None:
        return None
    codec = _codec(app, row.kind, row.task_name, row.sub_definition_key, row.event_name)
    try:
        return read_summary(row.sub_workflow_summary, codec.ok_type)
    except SerializationError:
        return None  # written by hand, or of a type that has changed


def _codec(
    app: WorkflowApp | None,
    kind: str,
    task_name: str,
    definition_key: str | None,
    event_name: str | None,
) -> ResultCodec:
    """By the type that this process knows for the node, else as plain values."""
    if kind == "sub_workflow":
        definition = find_definition(definition_key or "")
        return UNTYPED if definition is None else ResultCodec(definition.get_ok_type())
    if app is None:
        return UNTYPED
    if kind == "event":
        event = app.events.by_name.get(event_name or "")
        return UNTYPED if event is None else ResultCodec(event.payload_type)
    task = app.definition(task_name)
    if task is None:
        return UNTYPED
    return task.results if kind == "task" else ResultCodec(_list_of(task.ok_type), task.err_type)


def _list_of(element: Any) -> Any:
    made: Any = list
    return made[element]


def _stored_error(row: WorkflowRow) -> AnyResult | None:
    if row.error is None:
        return None
    try:
        error = read_error(loads(row.error))
        assert isinstance(error, TaskError)
        return TaskResult(err=error)
    except Exception as problem:  # noqa: BLE001 - also user code: constructors of errors
        return TaskResult(
            err=TaskError(
                error_code=OperationalErrorCode.RESULT_DESERIALIZATION_ERROR,
                message=f"the stored error cannot be read: {problem}",
                data={"workflow_id": row.id},
            )
        )
