"""Why a workflow was not started, or an operation on one failed: values, not exceptions."""

from dataclasses import dataclass
from typing import TypeAlias, TypeVar

from horsies.codes import HandleErrorCode, WorkflowStartErrorCode
from horsies.result import Result

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class WorkflowStartError:
    """A start that failed; `workflow_id` is the id it would have had."""

    code: WorkflowStartErrorCode
    message: str
    retryable: bool
    workflow_name: str
    workflow_id: str
    exception: BaseException | None = None

    def __str__(self) -> str:
        return f"{self.code}: {self.message}"


@dataclass(frozen=True, slots=True)
class HandleOperationError:
    """An operation on a workflow that failed."""

    code: HandleErrorCode
    message: str
    retryable: bool
    workflow_id: str
    exception: BaseException | None = None

    def __str__(self) -> str:
        return f"{self.code}: {self.message}"


WorkflowStartResult: TypeAlias = Result[T, WorkflowStartError]
HandleResult: TypeAlias = Result[T, HandleOperationError]
