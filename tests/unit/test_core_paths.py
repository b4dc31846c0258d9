"""The dotted paths the contract promises lead to the same objects."""

import importlib

import pytest

PATHS = {
    "horsies.core.app": "horsies Horsies",
    "horsies.core.brokers.postgres": "horsies PostgresBroker",
    "horsies.core.brokers.result_types": """horsies BrokerErrorCode BrokerOperationError
        BrokerResult""",
    "horsies.core.models.task_send_types": """horsies TaskSendErrorCode TaskSendPayload
        TaskSendError TaskSendResult""",
    "horsies.core.task_decorator": """horsies TaskFunction NodeFactory TaskHandle TaskSendOptions
        from_node""",
    "horsies.core.models.workflow": """horsies WorkflowSpec TaskNode SubWorkflowNode AnyNode NodeKey
        NODE_ID_PATTERN from_node WorkflowDefinition WorkflowStatus WorkflowTaskStatus
        WORKFLOW_TERMINAL_STATES WORKFLOW_TASK_TERMINAL_STATES OnError SuccessCase SuccessPolicy
        WorkflowContext WorkflowMeta WorkflowContextMissingIdError SubWorkflowSummary
        SubWorkflowError slugify WorkflowValidationError SleepNode EventNode Event""",
    "horsies.core.models.app": "horsies.config AppConfig",
    "horsies.core.models.broker": "horsies.config PostgresConfig",
    "horsies.core.models.queues": "horsies.config QueueMode CustomQueueConfig",
    "horsies.core.models.recovery": "horsies.config RecoveryConfig",
    "horsies.core.models.resilience": "horsies.config WorkerResilienceConfig",
    "horsies.core.models.tasks": """horsies TaskResult TaskError BUILTIN_CODE_REGISTRY
        SubWorkflowError BuiltInTaskCode OperationalErrorCode ContractCode RetrievalCode OutcomeCode
        RetryPolicy TaskInfo TaskAttemptInfo""",
    "horsies.core.models.schedule": """horsies Weekday IntervalSchedule HourlySchedule DailySchedule
        WeeklySchedule MonthlySchedule CronSchedule SchedulePattern TaskSchedule ScheduleConfig
        WorkflowSchedule Overlap""",
    "horsies.core.scheduler.calculator": """horsies.scheduling.next_run calculate_next_run
        should_run_now""",
    "horsies.core.models.task_pg": """horsies.database.models Base TaskModel TaskAttemptModel
        TaskHeartbeatModel WorkerStateModel ScheduleStateModel TaskLogModel""",
    "horsies.core.workflows.start_types": """horsies WorkflowStartError WorkflowStartErrorCode
        WorkflowStartResult""",
    "horsies.core.types.result": "horsies.result Result Ok Err UnwrapError is_ok is_err",
    "horsies.core.types.status": """horsies.states TaskStatus TaskAttemptOutcome
        TASK_TERMINAL_STATES""",
    "horsies.core.exception_mapper": "horsies.config ExceptionMapper",
    "horsies.core.codec.serde": """horsies.codec.serde to_jsonable rehydrate_value args_to_json
        kwargs_to_json dumps_json loads_json json_to_args json_to_kwargs task_result_from_json
        serialize_error_payload""",
    "horsies.core.utils.fingerprint": "horsies.sending.fingerprint enqueue_fingerprint",
    "horsies.core.utils.url": "horsies.config.database to_psycopg_url",
    "horsies.core.errors": """horsies.errors HorsiesError ConfigurationError TaskDefinitionError
        RegistryError NotRegistered DuplicateTaskNameError WorkflowValidationError
        MultipleValidationErrors ValidationReport SourceLocation ErrorCode""",
}


@pytest.mark.seed("S151")
@pytest.mark.parametrize("path", PATHS)
def test_a_promised_path_gives_the_same_objects(path: str) -> None:
    origin, *names = PATHS[path].split()

    for name in names:
        assert getattr(importlib.import_module(path), name) is getattr(
            importlib.import_module(origin), name
        )
