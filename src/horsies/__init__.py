"""Typed background tasks on nothing but PostgreSQL."""

import logging

from horsies.app import ChildProcessStartHook, Horsies
from horsies.broker.postgres import PostgresBroker
from horsies.codes import BrokerErrorCode, ErrorCode, TaskSendErrorCode
from horsies.config import (
    AppConfig,
    CustomQueueConfig,
    ExceptionMapper,
    PostgresConfig,
    QueueMode,
    RecoveryConfig,
    WorkerResilienceConfig,
)
from horsies.errors import (
    ConfigurationError,
    HorsiesError,
    MultipleValidationErrors,
    RegistryError,
    TaskDefinitionError,
    ValidationReport,
    WorkflowValidationError,
)
from horsies.executors.base import SoftTimeout
from horsies.operations.health import DatabasePing, WorkerPong
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
from horsies.result.broker import BrokerOperationError, BrokerResult
from horsies.results.handle import TaskHandle
from horsies.results.task_info import TaskAttemptInfo, TaskInfo
from horsies.sending.errors import TaskSendError, TaskSendPayload, TaskSendResult
from horsies.sending.task_function import TaskFunction, TaskSendOptions
from horsies.states import TASK_TERMINAL_STATES, TaskAttemptOutcome, TaskStatus
from horsies.tasks.retry import RetryPolicy
from horsies.version import __version__

logging.getLogger("horsies").addHandler(logging.NullHandler())

__all__ = [
    "BUILTIN_CODE_REGISTRY",
    "TASK_TERMINAL_STATES",
    "AppConfig",
    "BrokerErrorCode",
    "BrokerOperationError",
    "BrokerResult",
    "BuiltInTaskCode",
    "ChildProcessStartHook",
    "ConfigurationError",
    "ContractCode",
    "CustomQueueConfig",
    "DatabasePing",
    "Err",
    "ErrorCode",
    "ExceptionMapper",
    "Horsies",
    "HorsiesError",
    "MultipleValidationErrors",
    "Ok",
    "OperationalErrorCode",
    "OutcomeCode",
    "PostgresBroker",
    "PostgresConfig",
    "QueueMode",
    "RecoveryConfig",
    "RegistryError",
    "Result",
    "RetrievalCode",
    "RetryPolicy",
    "SoftTimeout",
    "TaskAttemptInfo",
    "TaskAttemptOutcome",
    "TaskDefinitionError",
    "TaskError",
    "TaskFunction",
    "TaskHandle",
    "TaskInfo",
    "TaskResult",
    "TaskSendError",
    "TaskSendErrorCode",
    "TaskSendOptions",
    "TaskSendPayload",
    "TaskSendResult",
    "TaskStatus",
    "ValidationReport",
    "WorkerPong",
    "WorkerResilienceConfig",
    "WorkflowValidationError",
    "__version__",
    "is_err",
    "is_ok",
]
