"""Typed background tasks on nothing but PostgreSQL."""

import logging

from horsies.app import ChildProcessStartHook, Horsies
from horsies.broker.postgres import PostgresBroker
from horsies.broker.types import (
    BrokerErrorCode,
    BrokerOperationError,
    BrokerResult,
    DatabasePing,
    TaskAttemptInfo,
    TaskInfo,
    WorkerPong,
)
from horsies.client.handle import TaskHandle
from horsies.client.task_function import TaskFunction, TaskSendOptions
from horsies.client.types import (
    TaskSendError,
    TaskSendErrorCode,
    TaskSendPayload,
    TaskSendResult,
)
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
    ErrorCode,
    HorsiesError,
    MultipleValidationErrors,
    RegistryError,
    TaskDefinitionError,
    ValidationReport,
    WorkflowValidationError,
)
from horsies.executors.base import SoftTimeout
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
