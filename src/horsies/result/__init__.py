"""Errors as values: Ok and Err for operations, TaskResult and TaskError for tasks, their codes."""

from horsies.codes import (
    BUILTIN_CODE_REGISTRY,
    BuiltInTaskCode,
    ContractCode,
    OperationalErrorCode,
    OutcomeCode,
    RetrievalCode,
)
from horsies.result.task import TaskError, TaskResult
from horsies.result.variants import Err, Ok, Result, UnwrapError, is_err, is_ok

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
    "TaskError",
    "TaskResult",
    "UnwrapError",
    "is_err",
    "is_ok",
]
