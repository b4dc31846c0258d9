"""Re-exports: the optional SQLAlchemy mirror of the tables (extra `sqlalchemy`)."""

from horsies.database.models import (
    Base,
    ScheduleStateModel,
    SchemaVersionModel,
    TaskAttemptModel,
    TaskHeartbeatModel,
    TaskLogModel,
    TaskModel,
    WorkerPermitModel,
    WorkerStateModel,
    WorkflowModel,
    WorkflowTaskModel,
)

__all__ = [
    "Base",
    "ScheduleStateModel",
    "SchemaVersionModel",
    "TaskAttemptModel",
    "TaskHeartbeatModel",
    "TaskLogModel",
    "TaskModel",
    "WorkerPermitModel",
    "WorkerStateModel",
    "WorkflowModel",
    "WorkflowTaskModel",
]
