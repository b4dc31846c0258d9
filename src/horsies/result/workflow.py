"""What workflows add to results: the error of a failed child workflow and its summary."""

from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from horsies.result.task import TaskError
from horsies.states import WorkflowStatus

T_co = TypeVar("T_co", covariant=True)


@dataclass(frozen=True)  # no slots: `SubWorkflowSummary[...](...)` sets __orig_class__
class SubWorkflowSummary(Generic[T_co]):
    """How a child workflow ended; stored with its node in the parent."""

    status: WorkflowStatus
    output: T_co | None
    total_tasks: int
    completed_tasks: int
    failed_tasks: int
    skipped_tasks: int
    error_summary: str | None = None


class SubWorkflowError(TaskError):
    """The error of a node whose child workflow failed or was cancelled."""

    sub_workflow_id: str
    sub_workflow_summary: SubWorkflowSummary[Any]


class WorkflowContextMissingIdError(RuntimeError):
    """A result was looked up by a node that has no `node_id` yet."""

    __module__ = "horsies"

    def __init__(self, message: str = "TaskNode node_id is not set") -> None:
        super().__init__(message)
