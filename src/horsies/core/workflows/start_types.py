"""Re-exports: what starting a workflow returns."""

from horsies.codes import WorkflowStartErrorCode
from horsies.workflows.errors import WorkflowStartError, WorkflowStartResult

__all__ = ["WorkflowStartError", "WorkflowStartErrorCode", "WorkflowStartResult"]
