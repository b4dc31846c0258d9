"""Re-exports: the names of workflows."""

from horsies.codes import HandleErrorCode
from horsies.errors import WorkflowValidationError
from horsies.result.workflow import (
    SubWorkflowError,
    SubWorkflowSummary,
    WorkflowContextMissingIdError,
)
from horsies.states import (
    WORKFLOW_TASK_TERMINAL_STATES,
    WORKFLOW_TERMINAL_STATES,
    WorkflowStatus,
    WorkflowTaskStatus,
)
from horsies.workflows.context import WorkflowContext, WorkflowMeta
from horsies.workflows.control import (
    pause_workflow,
    pause_workflow_sync,
    resume_workflow,
    resume_workflow_sync,
)
from horsies.workflows.definition import WorkflowDefinition
from horsies.workflows.errors import HandleOperationError, HandleResult
from horsies.workflows.events import Event
from horsies.workflows.factory import NodeFactory, from_node
from horsies.workflows.handle import WorkflowHandle
from horsies.workflows.node_ids import NODE_ID_PATTERN, slugify
from horsies.workflows.nodes import (
    AnyNode,
    EventNode,
    NodeKey,
    OnError,
    SleepNode,
    SubWorkflowNode,
    SuccessCase,
    SuccessPolicy,
    TaskNode,
)
from horsies.workflows.reading import WorkflowTaskInfo
from horsies.workflows.spec import WorkflowSpec
from horsies.workflows.start import start_workflow, start_workflow_async

__all__ = [
    "NODE_ID_PATTERN",
    "WORKFLOW_TASK_TERMINAL_STATES",
    "WORKFLOW_TERMINAL_STATES",
    "AnyNode",
    "Event",
    "EventNode",
    "HandleErrorCode",
    "HandleOperationError",
    "HandleResult",
    "NodeFactory",
    "NodeKey",
    "OnError",
    "SleepNode",
    "SubWorkflowError",
    "SubWorkflowNode",
    "SubWorkflowSummary",
    "SuccessCase",
    "SuccessPolicy",
    "TaskNode",
    "WorkflowContext",
    "WorkflowContextMissingIdError",
    "WorkflowDefinition",
    "WorkflowHandle",
    "WorkflowMeta",
    "WorkflowSpec",
    "WorkflowStatus",
    "WorkflowTaskInfo",
    "WorkflowTaskStatus",
    "WorkflowValidationError",
    "from_node",
    "pause_workflow",
    "pause_workflow_sync",
    "resume_workflow",
    "resume_workflow_sync",
    "slugify",
    "start_workflow",
    "start_workflow_async",
]
