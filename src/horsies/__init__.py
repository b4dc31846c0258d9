"""Typed background tasks on nothing but PostgreSQL."""

import logging
from importlib import import_module
from typing import TYPE_CHECKING

from horsies.version import __version__

if TYPE_CHECKING:
    from horsies.app import ChildProcessStartHook, Horsies
    from horsies.broker.postgres import PostgresBroker
    from horsies.codec.secrecy import Secret
    from horsies.codes import (
        BrokerErrorCode,
        ErrorCode,
        HandleErrorCode,
        TaskSendErrorCode,
        WorkflowStartErrorCode,
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
    from horsies.config.schedules import (
        CronSchedule,
        DailySchedule,
        HourlySchedule,
        IntervalSchedule,
        MonthlySchedule,
        Overlap,
        ScheduleConfig,
        SchedulePattern,
        TaskSchedule,
        Weekday,
        WeeklySchedule,
        WorkflowSchedule,
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
    from horsies.executors.current import CurrentTask, NoCurrentTaskError, current_task
    from horsies.observability.events import (
        CancelledEvent,
        EnqueuedEvent,
        ExpiredEvent,
        FailedEvent,
        RetriedEvent,
        StartedEvent,
        SucceededEvent,
        WorkerStartedEvent,
        WorkerStoppingEvent,
    )
    from horsies.operations.control import Note
    from horsies.operations.filter_words import FilterError, parse_filter
    from horsies.operations.filters import TaskFilter
    from horsies.operations.health import DatabasePing, WorkerPong
    from horsies.operations.operations import Operations
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
    from horsies.result.broker import BrokerOperationError, BrokerResult, Cancellation
    from horsies.result.raising import Retry, TaskFailed, WaitTimedOut
    from horsies.result.workflow import (
        SubWorkflowError,
        SubWorkflowSummary,
        WorkflowContextMissingIdError,
    )
    from horsies.results.handle import TaskHandle
    from horsies.results.task_info import TaskAttemptInfo, TaskInfo, TaskProgress
    from horsies.scheduling.by_hand import Backfill
    from horsies.scheduling.control import ScheduleInfo
    from horsies.scheduling.schedules import Schedules
    from horsies.scheduling.statements import ScheduleRun
    from horsies.sending.errors import (
        SendFailed,
        TaskSendError,
        TaskSendPayload,
        TaskSendResult,
    )
    from horsies.sending.task_function import TaskFunction, TaskSendOptions
    from horsies.states import (
        TASK_TERMINAL_STATES,
        WORKFLOW_TASK_TERMINAL_STATES,
        WORKFLOW_TERMINAL_STATES,
        TaskAttemptOutcome,
        TaskStatus,
        WorkflowStatus,
        WorkflowTaskStatus,
    )
    from horsies.tasks.retry import RetryPolicy
    from horsies.workflows.context import WorkflowContext, WorkflowMeta
    from horsies.workflows.control import (
        pause_workflow,
        pause_workflow_sync,
        resume_workflow,
        resume_workflow_sync,
    )
    from horsies.workflows.definition import WorkflowDefinition
    from horsies.workflows.errors import (
        HandleOperationError,
        HandleResult,
        WorkflowStartError,
        WorkflowStartResult,
    )
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

logging.getLogger("horsies").addHandler(logging.NullHandler())

__all__ = [
    "BUILTIN_CODE_REGISTRY",
    "NODE_ID_PATTERN",
    "TASK_TERMINAL_STATES",
    "WORKFLOW_TASK_TERMINAL_STATES",
    "WORKFLOW_TERMINAL_STATES",
    "AnyNode",
    "AppConfig",
    "Backfill",
    "BrokerErrorCode",
    "BrokerOperationError",
    "BrokerResult",
    "BuiltInTaskCode",
    "Cancellation",
    "CancelledEvent",
    "ChildProcessStartHook",
    "ConfigurationError",
    "ContractCode",
    "CronSchedule",
    "CurrentTask",
    "CustomQueueConfig",
    "DailySchedule",
    "DatabasePing",
    "EnqueuedEvent",
    "Err",
    "ErrorCode",
    "Event",
    "EventNode",
    "ExceptionMapper",
    "ExpiredEvent",
    "FailedEvent",
    "FilterError",
    "HandleErrorCode",
    "HandleOperationError",
    "HandleResult",
    "Horsies",
    "HorsiesError",
    "HourlySchedule",
    "IntervalSchedule",
    "MonthlySchedule",
    "MultipleValidationErrors",
    "NoCurrentTaskError",
    "NodeFactory",
    "NodeKey",
    "Note",
    "Ok",
    "OnError",
    "OperationalErrorCode",
    "Operations",
    "OutcomeCode",
    "Overlap",
    "PostgresBroker",
    "PostgresConfig",
    "QueueMode",
    "RecoveryConfig",
    "RegistryError",
    "Result",
    "RetriedEvent",
    "RetrievalCode",
    "Retry",
    "RetryPolicy",
    "ScheduleConfig",
    "ScheduleInfo",
    "SchedulePattern",
    "ScheduleRun",
    "Schedules",
    "Secret",
    "SendFailed",
    "SleepNode",
    "SoftTimeout",
    "StartedEvent",
    "SubWorkflowError",
    "SubWorkflowNode",
    "SubWorkflowSummary",
    "SucceededEvent",
    "SuccessCase",
    "SuccessPolicy",
    "TaskAttemptInfo",
    "TaskAttemptOutcome",
    "TaskDefinitionError",
    "TaskError",
    "TaskFailed",
    "TaskFilter",
    "TaskFunction",
    "TaskHandle",
    "TaskInfo",
    "TaskNode",
    "TaskProgress",
    "TaskResult",
    "TaskSchedule",
    "TaskSendError",
    "TaskSendErrorCode",
    "TaskSendOptions",
    "TaskSendPayload",
    "TaskSendResult",
    "TaskStatus",
    "ValidationReport",
    "WaitTimedOut",
    "Weekday",
    "WeeklySchedule",
    "WorkerPong",
    "WorkerResilienceConfig",
    "WorkerStartedEvent",
    "WorkerStoppingEvent",
    "WorkflowContext",
    "WorkflowContextMissingIdError",
    "WorkflowDefinition",
    "WorkflowHandle",
    "WorkflowMeta",
    "WorkflowSchedule",
    "WorkflowSpec",
    "WorkflowStartError",
    "WorkflowStartErrorCode",
    "WorkflowStartResult",
    "WorkflowStatus",
    "WorkflowTaskInfo",
    "WorkflowTaskStatus",
    "WorkflowValidationError",
    "__version__",
    "current_task",
    "from_node",
    "is_err",
    "is_ok",
    "parse_filter",
    "pause_workflow",
    "pause_workflow_sync",
    "resume_workflow",
    "resume_workflow_sync",
    "slugify",
    "start_workflow",
    "start_workflow_async",
]

# Where each name is defined, as in the imports above: a name is imported when it is first used,
# so that `import horsies` and the command line's help stay fast.
_PLACES = {
    "horsies.app": "ChildProcessStartHook Horsies",
    "horsies.broker.postgres": "PostgresBroker",
    "horsies.codes": """
        BrokerErrorCode ErrorCode HandleErrorCode TaskSendErrorCode WorkflowStartErrorCode
    """,
    "horsies.config": """
        AppConfig CustomQueueConfig ExceptionMapper PostgresConfig QueueMode
        RecoveryConfig WorkerResilienceConfig
    """,
    "horsies.config.schedules": """
        CronSchedule DailySchedule HourlySchedule IntervalSchedule MonthlySchedule Overlap
        ScheduleConfig SchedulePattern TaskSchedule Weekday WeeklySchedule
        WorkflowSchedule
    """,
    "horsies.errors": """
        ConfigurationError HorsiesError MultipleValidationErrors RegistryError
        TaskDefinitionError ValidationReport WorkflowValidationError
    """,
    "horsies.executors.base": "SoftTimeout",
    "horsies.executors.current": "CurrentTask NoCurrentTaskError current_task",
    "horsies.observability.events": """
        CancelledEvent EnqueuedEvent ExpiredEvent FailedEvent RetriedEvent StartedEvent
        SucceededEvent WorkerStartedEvent WorkerStoppingEvent
    """,
    "horsies.operations.control": "Note",
    "horsies.operations.filter_words": "FilterError parse_filter",
    "horsies.operations.filters": "TaskFilter",
    "horsies.operations.health": "DatabasePing WorkerPong",
    "horsies.operations.operations": "Operations",
    "horsies.result": """
        BUILTIN_CODE_REGISTRY BuiltInTaskCode ContractCode Err Ok OperationalErrorCode
        OutcomeCode Result RetrievalCode TaskError TaskResult is_err is_ok
    """,
    "horsies.result.broker": "BrokerOperationError BrokerResult Cancellation",
    "horsies.codec.secrecy": "Secret",
    "horsies.result.raising": "Retry TaskFailed WaitTimedOut",
    "horsies.result.workflow": "SubWorkflowError SubWorkflowSummary WorkflowContextMissingIdError",
    "horsies.results.handle": "TaskHandle",
    "horsies.results.task_info": "TaskAttemptInfo TaskInfo TaskProgress",
    "horsies.scheduling.by_hand": "Backfill",
    "horsies.scheduling.control": "ScheduleInfo",
    "horsies.scheduling.schedules": "Schedules",
    "horsies.scheduling.statements": "ScheduleRun",
    "horsies.sending.errors": "SendFailed TaskSendError TaskSendPayload TaskSendResult",
    "horsies.sending.task_function": "TaskFunction TaskSendOptions",
    "horsies.states": """
        TASK_TERMINAL_STATES WORKFLOW_TASK_TERMINAL_STATES WORKFLOW_TERMINAL_STATES
        TaskAttemptOutcome TaskStatus WorkflowStatus WorkflowTaskStatus
    """,
    "horsies.tasks.retry": "RetryPolicy",
    "horsies.workflows.context": "WorkflowContext WorkflowMeta",
    "horsies.workflows.control": """
        pause_workflow pause_workflow_sync resume_workflow resume_workflow_sync
    """,
    "horsies.workflows.definition": "WorkflowDefinition",
    "horsies.workflows.errors": """
        HandleOperationError HandleResult WorkflowStartError WorkflowStartResult
    """,
    "horsies.workflows.events": "Event",
    "horsies.workflows.factory": "NodeFactory from_node",
    "horsies.workflows.handle": "WorkflowHandle",
    "horsies.workflows.node_ids": "NODE_ID_PATTERN slugify",
    "horsies.workflows.nodes": """
        AnyNode EventNode NodeKey OnError SleepNode SubWorkflowNode SuccessCase
        SuccessPolicy TaskNode
    """,
    "horsies.workflows.reading": "WorkflowTaskInfo",
    "horsies.workflows.spec": "WorkflowSpec",
    "horsies.workflows.start": "start_workflow start_workflow_async",
}
_MODULES = {name: module for module, names in _PLACES.items() for name in names.split()}


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


if not TYPE_CHECKING:  # else type checkers would accept any name

    def __getattr__(name: str) -> object:
        if name not in _MODULES:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        value = getattr(import_module(_MODULES[name]), name)
        globals()[name] = value
        return value
