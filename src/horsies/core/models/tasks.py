"""Re-exports: results, errors, codes and the retry policy."""

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
    "TaskError",
    "TaskResult",
    "is_err",
    "is_ok",
]
