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
    WorkerPermitModel,
    WorkerStateModel,
)
from horsies.database.workflow_models import EventModel, WorkflowModel, WorkflowTaskModel

__all__ = [
    "Base",
    "EventModel",
    "ScheduleModel",
    "ScheduleRunModel",
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
