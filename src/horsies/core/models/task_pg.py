"""Re-exports: the optional SQLAlchemy mirror of the tables (extra `sqlalchemy`)."""

from horsies.database.models import (
    Base,
    ScheduleModel,
    ScheduleRunModel,
    ScheduleStateModel,
    SchemaVersionModel,
    TaskAttemptModel,
    TaskHeartbeatModel,
    TaskLogModel,
    TaskModel,
    TaskProgressModel,
    WorkerPermitModel,
    WorkerStateModel,
)
from horsies.database.operations_models import (
    AuditModel,
    QueueControlModel,
    QueueHistoryModel,
    WorkerDrainModel,
)
from horsies.database.workflow_models import EventModel, WorkflowModel, WorkflowTaskModel

__all__ = [
    "AuditModel",
    "Base",
    "EventModel",
    "QueueControlModel",
    "QueueHistoryModel",
    "ScheduleModel",
    "ScheduleRunModel",
    "ScheduleStateModel",
    "SchemaVersionModel",
    "TaskAttemptModel",
    "TaskHeartbeatModel",
    "TaskLogModel",
    "TaskModel",
    "TaskProgressModel",
    "WorkerDrainModel",
    "WorkerPermitModel",
    "WorkerStateModel",
    "WorkflowModel",
    "WorkflowTaskModel",
]
