"""The built-in error codes in their four families."""

from enum import StrEnum
from typing import TypeAlias


class OperationalErrorCode(StrEnum):
    """Something went wrong while running, storing or reading a task."""

    UNHANDLED_EXCEPTION = "UNHANDLED_EXCEPTION"
    TASK_EXCEPTION = "TASK_EXCEPTION"
    WORKER_CRASHED = "WORKER_CRASHED"
    BROKER_ERROR = "BROKER_ERROR"
    WORKER_RESOLUTION_ERROR = "WORKER_RESOLUTION_ERROR"
    WORKER_SERIALIZATION_ERROR = "WORKER_SERIALIZATION_ERROR"
    RESULT_DESERIALIZATION_ERROR = "RESULT_DESERIALIZATION_ERROR"
    WORKFLOW_ENQUEUE_FAILED = "WORKFLOW_ENQUEUE_FAILED"
    SUBWORKFLOW_LOAD_FAILED = "SUBWORKFLOW_LOAD_FAILED"


class ContractCode(StrEnum):
    """A value does not fit the type that was promised."""

    RETURN_TYPE_MISMATCH = "RETURN_TYPE_MISMATCH"
    PYDANTIC_HYDRATION_ERROR = "PYDANTIC_HYDRATION_ERROR"
    WORKFLOW_CTX_MISSING_ID = "WORKFLOW_CTX_MISSING_ID"


class RetrievalCode(StrEnum):
    """A result could not be had; the task itself is not affected."""

    WAIT_TIMEOUT = "WAIT_TIMEOUT"
    TASK_NOT_FOUND = "TASK_NOT_FOUND"
    WORKFLOW_NOT_FOUND = "WORKFLOW_NOT_FOUND"
    RESULT_NOT_AVAILABLE = "RESULT_NOT_AVAILABLE"
    RESULT_NOT_READY = "RESULT_NOT_READY"


class OutcomeCode(StrEnum):
    """A task or workflow ended without doing its work."""

    TASK_CANCELLED = "TASK_CANCELLED"
    TASK_EXPIRED = "TASK_EXPIRED"
    TASK_TIMEOUT = "TASK_TIMEOUT"
    WORKFLOW_PAUSED = "WORKFLOW_PAUSED"
    WORKFLOW_FAILED = "WORKFLOW_FAILED"
    WORKFLOW_CANCELLED = "WORKFLOW_CANCELLED"
    UPSTREAM_SKIPPED = "UPSTREAM_SKIPPED"
    SUBWORKFLOW_FAILED = "SUBWORKFLOW_FAILED"
    WORKFLOW_SUCCESS_CASE_NOT_MET = "WORKFLOW_SUCCESS_CASE_NOT_MET"


BuiltInTaskCode: TypeAlias = OperationalErrorCode | ContractCode | RetrievalCode | OutcomeCode

BUILTIN_CODE_FAMILIES = (OperationalErrorCode, ContractCode, RetrievalCode, OutcomeCode)

BUILTIN_CODE_REGISTRY: dict[str, BuiltInTaskCode] = {
    member.value: member
    for family in (OperationalErrorCode, ContractCode, RetrievalCode, OutcomeCode)
    for member in family
}
