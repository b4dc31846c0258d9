"""Builds the children of sub-workflow nodes from their definitions, by the user's `build_with`."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from horsies.clock import utc_now
from horsies.codec.results import serialize_error_payload
from horsies.database.operation import describe
from horsies.observability.trace_context import traceparent_of, with_traceparent
from horsies.result import Err, OperationalErrorCode, TaskError, TaskResult
from horsies.workflows.builders import SpecApp
from horsies.workflows.calls import build_codec
from horsies.workflows.definition import WorkflowDefinition, find_definition
from horsies.workflows.rows import NewRows, carrying, rows_of
from horsies.workflows.statements import ReadySubWorkflow


@dataclass(slots=True)
class BuiltChildren:
    """What became of nodes that wait for a child: rows to start, or why there are none."""

    starts: list[NewRows] = field(default_factory=list[NewRows])
    failures: dict[str, str] = field(default_factory=dict[str, str])


def build_children(app: SpecApp, ready: Sequence[ReadySubWorkflow]) -> BuiltChildren:
    """Build each child; one that fails costs its own node only."""
    built = BuiltChildren()
    for node in ready:
        definition = find_definition(node.definition_key or "")
        if definition is None:
            built.failures[node.node_id] = _failure(
                OperationalErrorCode.SUBWORKFLOW_LOAD_FAILED,
                f"this worker knows no workflow definition {node.definition_key!r}; "
                "is its module imported?",
            )
            continue
        try:
            built.starts.append(_build(app, definition, node))
        except Exception as error:  # noqa: BLE001 - user code: build_with
            built.failures[node.node_id] = start_failure(error)
    return built


def start_failure(error: BaseException) -> str:
    """The stored result of a node whose child could not be built or stored."""
    return _failure(OperationalErrorCode.WORKFLOW_ENQUEUE_FAILED, describe(error))


def _build(
    app: SpecApp, definition: type[WorkflowDefinition[Any]], node: ReadySubWorkflow
) -> NewRows:
    decoded = build_codec(definition.build_with).decode(None, node.kwargs)
    if isinstance(decoded, Err):
        raise decoded.err_value
    _, kwargs = decoded.ok_value
    spec = definition.build_with(app, **kwargs)
    # A child has the id of its node: built twice, it is stored once.
    rows = rows_of(spec, node.node_id, utc_now(), parent_node_id=node.node_id)
    traceparent = traceparent_of(node.task_options)
    if traceparent is None:
        return rows
    return carrying(rows, lambda options: with_traceparent(options, traceparent))


def _failure(code: OperationalErrorCode, message: str) -> str:
    return serialize_error_payload(TaskResult(err=TaskError(error_code=code, message=message)))
