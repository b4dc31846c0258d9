"""Re-exports: results, errors, codes, the retry policy and task information."""

from horsies.result import (
    BUILTIN_CODE_REGISTRY,
    BuiltInTaskCode,
    ContractCode,
    Err,
    Ok,
    OperationalErrorCode,
    OutcomeCode,
    Result,
    RetrievalCode,
    TaskError,
    TaskResult,
    is_err,
    is_ok,
)
from horsies.result.workflow import (
    SubWorkflowError,
)
from horsies.results.task_info import (
    TaskAttemptInfo,
    TaskInfo,
)
from horsies.tasks.retry import (
    RetryPolicy,
)

__all__ = [
    "BUILTIN_CODE_REGISTRY",
    "BuiltInTaskCode",
    "ContractCode",
    "Err",
    "Ok",
    "OperationalErrorCode",
    "OutcomeCode",
    "Result",
    "RetrievalCode",
    "RetryPolicy",
    "SubWorkflowError",
    "TaskAttemptInfo",
    "TaskError",
    "TaskInfo",
    "TaskResult",
    "is_err",
    "is_ok",
]
