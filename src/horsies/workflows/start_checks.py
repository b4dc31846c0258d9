"""What must hold when a spec is started, because direct construction may leave it open."""

from collections.abc import Iterator
from typing import Any

from horsies.codes import ErrorCode
from horsies.errors import WorkflowValidationError
from horsies.workflows.nodes import SubWorkflowNode, TaskNode
from horsies.workflows.spec import WorkflowSpec, no_definition_key
from horsies.workflows.validate import is_text, output_problems, priority_problem


def start_problems(spec: WorkflowSpec[Any], app: object) -> Iterator[WorkflowValidationError]:
    """Yield what keeps a spec from being started through a broker with this app."""
    if not is_text(spec.definition_key):
        yield no_definition_key(f"workflow {spec.name!r}")
    yield from output_problems(spec.workflow_def_cls, spec.output)
    if app is None and any(isinstance(node, SubWorkflowNode) for node in spec.tasks):
        yield WorkflowValidationError(
            f"workflow {spec.name!r} has sub-workflows, but its broker belongs to no app",
            ErrorCode.WORKFLOW_SUBWORKFLOW_APP_MISSING,
            help_text="use the broker of an app: app.get_broker()",
        )
    for node in spec.tasks:
        if not isinstance(node, TaskNode):
            continue
        if not is_text(node.queue):
            yield WorkflowValidationError(
                f"node {node.node_id!r} has no queue",
                ErrorCode.WORKFLOW_UNRESOLVED_QUEUE,
                help_text="make the spec with app.workflow(...), or give the node a queue",
            )
        if problem := priority_problem(node.priority, str(node.node_id)):
            yield problem
