"""SQLAlchemy mirror of our tables, for ORM users (extra `sqlalchemy`); nothing of ours imports it.

Equal to the migrations in tables, columns, constraints and indexes. Functions and triggers are not
tables: `horsies migrate`, or the first use of a broker, adds them to what `create_all` made.
"""

from datetime import datetime
from typing import Any, ClassVar

from sqlalchemy import (
    ARRAY,
    BigInteger,
    CheckConstraint,
    DateTime,
    Double,
    ForeignKey,
    Index,
    Integer,
    String,
    Text,
    UniqueConstraint,
    text,
)
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column

_BYTEWISE_ID = String(36, collation="C")
_NOW = text("now()")
_FALSE = text("false")
_ZERO = text("0")
_HUNDRED = text("100")


class Base(DeclarativeBase):
    """The declarative base of all tables of this package."""

    type_annotation_map: ClassVar[dict[Any, Any]] = {
        str: Text(),
        int: Integer(),
        float: Double(),
        datetime: DateTime(timezone=True),
    }


class TaskModel(Base):
    __tablename__ = "horsies_tasks"

    id: Mapped[str] = mapped_column(_BYTEWISE_ID, primary_key=True)
    task_name: Mapped[str] = mapped_column(String(255))
    queue_name: Mapped[str] = mapped_column(String(100, collation="C"))
    priority: Mapped[int] = mapped_column(server_default=_HUNDRED)
    args: Mapped[str | None]
    kwargs: Mapped[str | None]
    status: Mapped[str] = mapped_column(String(collation="C"), server_default="PENDING")
    sent_at: Mapped[datetime | None]
    enqueued_at: Mapped[datetime] = mapped_column(server_default=_NOW)
    is_workflow_task: Mapped[bool] = mapped_column(server_default=_FALSE)
    claimed_at: Mapped[datetime | None]
    started_at: Mapped[datetime | None]
    completed_at: Mapped[datetime | None]
    failed_at: Mapped[datetime | None]
    result: Mapped[str | None]
    failed_reason: Mapped[str | None]
    error_code: Mapped[str | None]
    claimed: Mapped[bool] = mapped_column(server_default=_FALSE)
    claimed_by_worker_id: Mapped[str | None] = mapped_column(String(255))
    claim_expires_at: Mapped[datetime | None]
    good_until: Mapped[datetime | None]
    retry_count: Mapped[int] = mapped_column(server_default=_ZERO)
    max_retries: Mapped[int] = mapped_column(server_default=_ZERO)
    next_retry_at: Mapped[datetime | None]
    task_options: Mapped[str | None]
    worker_pid: Mapped[int | None]
    worker_hostname: Mapped[str | None] = mapped_column(String(255))
    worker_process_name: Mapped[str | None] = mapped_column(String(255))
    finalizing_at: Mapped[datetime | None]
    finalizing_by_worker_id: Mapped[str | None]
    enqueue_sha: Mapped[str] = mapped_column(String(64))
    unique_key: Mapped[str | None] = mapped_column(String(255))
    unique_stored: Mapped[bool] = mapped_column(server_default=_FALSE)
    rerun_of: Mapped[str | None] = mapped_column(String(36))
    cancel_requested_at: Mapped[datetime | None]
    tags: Mapped[list[str] | None] = mapped_column(ARRAY(Text))
    created_at: Mapped[datetime] = mapped_column(server_default=_NOW)
    updated_at: Mapped[datetime] = mapped_column(server_default=_NOW)
    ahead_number: Mapped[int | None] = mapped_column(BigInteger)

    __table_args__ = (
        Index(
            "horsies_tasks_claim_idx",
            "queue_name",
            "priority",
            "enqueued_at",
            "id",
            postgresql_where=text("status = 'PENDING'"),
        ),
        Index(
            "horsies_tasks_in_flight_idx",
            "claimed_at",
            postgresql_where=text("status in ('CLAIMED', 'RUNNING')"),
        ),
        Index(
            "horsies_tasks_ended_idx",
            "status",
            text("coalesce(completed_at, failed_at, updated_at, created_at)"),
            postgresql_where=text("status in ('COMPLETED', 'FAILED', 'CANCELLED', 'EXPIRED')"),
        ),
        Index("horsies_tasks_lease_idx", "claim_expires_at", postgresql_where=text("claimed")),
        Index(
            "horsies_tasks_good_until_idx",
            "good_until",
            postgresql_where=text("good_until is not null and status = 'PENDING'"),
        ),
        Index(
            "horsies_tasks_next_retry_idx",
            "next_retry_at",
            postgresql_where=text("next_retry_at is not null"),
        ),
        Index(
            "horsies_tasks_error_code_idx",
            "error_code",
            postgresql_where=text("error_code is not null"),
        ),
        Index(
            "horsies_tasks_cancel_idx",
            "claimed_by_worker_id",
            postgresql_where=text("cancel_requested_at is not null"),
        ),
        Index(
            "horsies_tasks_unique_key_idx",
            "task_name",
            "unique_key",
            unique=True,
            postgresql_where=text(
                "unique_key is not null"
                " and (unique_stored or status in ('PENDING', 'CLAIMED', 'RUNNING'))"
            ),
        ),
        {
            "postgresql_with": {
                "autovacuum_vacuum_scale_factor": "0.01",
                "autovacuum_vacuum_threshold": "1000",
                "autovacuum_vacuum_cost_delay": "0",
                "autovacuum_analyze_scale_factor": "0.05",
                "autovacuum_analyze_threshold": "1000",
            }
        },
    )


class TaskAttemptModel(Base):
    __tablename__ = "horsies_task_attempts"

    id: Mapped[int] = mapped_column(BigInteger, primary_key=True)
    task_id: Mapped[str] = mapped_column(
        _BYTEWISE_ID, ForeignKey("horsies_tasks.id", ondelete="CASCADE")
    )
    attempt: Mapped[int]
    outcome: Mapped[str] = mapped_column(String(32))
    will_retry: Mapped[bool] = mapped_column(server_default=_FALSE)
    started_at: Mapped[datetime]
    finished_at: Mapped[datetime]
    error_code: Mapped[str | None]
    error_message: Mapped[str | None]
    failed_reason: Mapped[str | None]
    worker_id: Mapped[str | None] = mapped_column(String(255))
    worker_hostname: Mapped[str | None] = mapped_column(String(255))
    worker_pid: Mapped[int | None]
    worker_process_name: Mapped[str | None] = mapped_column(String(255))
    created_at: Mapped[datetime] = mapped_column(server_default=_NOW)

    __table_args__ = (
        UniqueConstraint("task_id", "attempt"),
        CheckConstraint("outcome in ('COMPLETED', 'FAILED', 'WORKER_FAILURE')"),
        Index(
            "horsies_task_attempts_error_code_idx",
            "error_code",
            postgresql_where=text("error_code is not null"),
        ),
        Index("horsies_task_attempts_finished_at_idx", text("finished_at desc")),
    )


class TaskLogModel(Base):
    __tablename__ = "horsies_task_logs"

    id: Mapped[int] = mapped_column(BigInteger, primary_key=True)
    task_id: Mapped[str] = mapped_column(
        _BYTEWISE_ID, ForeignKey("horsies_tasks.id", ondelete="CASCADE")
    )
    attempt: Mapped[int]
    log: Mapped[str]
    truncated: Mapped[bool] = mapped_column(server_default=_FALSE)
    created_at: Mapped[datetime] = mapped_column(server_default=_NOW)

    __table_args__ = (UniqueConstraint("task_id", "attempt"),)


class TaskHeartbeatModel(Base):
    __tablename__ = "horsies_heartbeats"

    id: Mapped[int] = mapped_column(BigInteger, primary_key=True)
    task_id: Mapped[str] = mapped_column(_BYTEWISE_ID)
    sender_id: Mapped[str] = mapped_column(String(255))
    role: Mapped[str] = mapped_column(String(20))
    sent_at: Mapped[datetime] = mapped_column(server_default=_NOW)
    hostname: Mapped[str | None] = mapped_column(String(255))
    pid: Mapped[int | None]

    __table_args__ = (
        Index("horsies_heartbeats_task_idx", "task_id", "role", text("sent_at desc")),
        Index("horsies_heartbeats_sent_at_idx", "sent_at"),
    )


class WorkerStateModel(Base):
    __tablename__ = "horsies_worker_states"

    id: Mapped[int] = mapped_column(BigInteger, primary_key=True)
    worker_id: Mapped[str] = mapped_column(String(255))
    snapshot_at: Mapped[datetime] = mapped_column(server_default=_NOW)
    hostname: Mapped[str] = mapped_column(String(255))
    pid: Mapped[int]
    processes: Mapped[int]
    queues: Mapped[list[str]] = mapped_column(ARRAY(String))
    tasks_running: Mapped[int] = mapped_column(server_default=_ZERO)
    tasks_claimed: Mapped[int] = mapped_column(server_default=_ZERO)
    memory_usage_mb: Mapped[float | None]
    children_memory_mb: Mapped[float | None]
    cpu_percent: Mapped[float | None]
    memory_percent: Mapped[float | None]
    max_claim_batch: Mapped[int]
    max_claim_per_worker: Mapped[int]
    cluster_wide_cap: Mapped[int | None]
    queue_priorities: Mapped[dict[str, Any] | None] = mapped_column(JSONB)
    queue_max_concurrency: Mapped[dict[str, Any] | None] = mapped_column(JSONB)
    recovery_config: Mapped[dict[str, Any] | None] = mapped_column(JSONB)
    worker_started_at: Mapped[datetime]
    pid_started_at: Mapped[float | None]
    holds_lock: Mapped[bool] = mapped_column(server_default=_FALSE)
    host_key: Mapped[str | None] = mapped_column(String(255))

    __table_args__ = (
        Index("horsies_worker_states_worker_idx", "worker_id", text("snapshot_at desc")),
        Index("horsies_worker_states_snapshot_at_idx", "snapshot_at"),
    )


class WorkerPermitModel(Base):
    __tablename__ = "horsies_worker_permits"

    worker_id: Mapped[str] = mapped_column(String(255, collation="C"), primary_key=True)
    granted_by: Mapped[str] = mapped_column(String(20, collation="C"), primary_key=True)
    grant_number: Mapped[int] = mapped_column(BigInteger, primary_key=True, autoincrement=False)
    permitted: Mapped[list[int]] = mapped_column(ARRAY(BigInteger))
    granted_at: Mapped[datetime] = mapped_column(server_default=_NOW)


class ScheduleStateModel(Base):
    __tablename__ = "horsies_schedule_state"

    schedule_name: Mapped[str] = mapped_column(String(255), primary_key=True)
    last_run_at: Mapped[datetime | None]
    next_run_at: Mapped[datetime | None]
    last_task_id: Mapped[str | None] = mapped_column(_BYTEWISE_ID)
    run_count: Mapped[int] = mapped_column(server_default=_ZERO)
    config_hash: Mapped[str | None] = mapped_column(String(64))
    updated_at: Mapped[datetime] = mapped_column(server_default=_NOW)

    __table_args__ = (Index("horsies_schedule_state_next_run_idx", "next_run_at"),)


class WorkflowModel(Base):
    __tablename__ = "horsies_workflows"

    id: Mapped[str] = mapped_column(_BYTEWISE_ID, primary_key=True)
    name: Mapped[str] = mapped_column(String(255))
    status: Mapped[str] = mapped_column(String(50), server_default="PENDING")
    on_error: Mapped[str] = mapped_column(String(50), server_default="fail")
    output_task_index: Mapped[int | None]
    success_policy: Mapped[dict[str, Any] | None] = mapped_column(JSONB)
    result: Mapped[str | None]
    error: Mapped[str | None]
    definition_key: Mapped[str | None] = mapped_column(String(255))
    parent_workflow_id: Mapped[str | None] = mapped_column(
        _BYTEWISE_ID, ForeignKey("horsies_workflows.id", ondelete="CASCADE")
    )
    parent_task_index: Mapped[int | None]
    depth: Mapped[int] = mapped_column(server_default=_ZERO)
    root_workflow_id: Mapped[str | None] = mapped_column(_BYTEWISE_ID)
    sent_at: Mapped[datetime] = mapped_column(server_default=_NOW)
    created_at: Mapped[datetime] = mapped_column(server_default=_NOW)
    started_at: Mapped[datetime | None]
    completed_at: Mapped[datetime | None]
    updated_at: Mapped[datetime] = mapped_column(server_default=_NOW)

    __table_args__ = (
        Index("horsies_workflows_status_idx", "status"),
        Index("horsies_workflows_parent_idx", "parent_workflow_id"),
        Index("horsies_workflows_root_idx", "root_workflow_id"),
        Index("horsies_workflows_updated_at_idx", "updated_at"),
    )


class WorkflowTaskModel(Base):
    __tablename__ = "horsies_workflow_tasks"

    id: Mapped[str] = mapped_column(_BYTEWISE_ID, primary_key=True)
    workflow_id: Mapped[str] = mapped_column(
        _BYTEWISE_ID, ForeignKey("horsies_workflows.id", ondelete="CASCADE")
    )
    task_index: Mapped[int]
    node_id: Mapped[str | None] = mapped_column(String(128))
    task_name: Mapped[str] = mapped_column(String(255))
    task_args: Mapped[str | None]
    task_kwargs: Mapped[str | None]
    queue_name: Mapped[str] = mapped_column(String(100), server_default="default")
    priority: Mapped[int] = mapped_column(server_default=_HUNDRED)
    dependencies: Mapped[list[int]] = mapped_column(ARRAY(Integer), server_default=text("'{}'"))
    args_from: Mapped[dict[str, Any] | None] = mapped_column(JSONB)
    workflow_ctx_from: Mapped[list[str] | None] = mapped_column(ARRAY(String(128)))
    allow_failed_deps: Mapped[bool] = mapped_column(server_default=_FALSE)
    join_type: Mapped[str] = mapped_column(String(10), server_default="all")
    min_success: Mapped[int | None]
    task_options: Mapped[str | None]
    status: Mapped[str] = mapped_column(String(50), server_default="PENDING")
    task_id: Mapped[str | None] = mapped_column(_BYTEWISE_ID)
    is_subworkflow: Mapped[bool] = mapped_column(server_default=_FALSE)
    sub_workflow_id: Mapped[str | None] = mapped_column(
        _BYTEWISE_ID, ForeignKey("horsies_workflows.id", ondelete="SET NULL")
    )
    sub_workflow_name: Mapped[str | None] = mapped_column(String(255))
    sub_definition_key: Mapped[str | None] = mapped_column(String(255))
    sub_workflow_summary: Mapped[str | None]
    result: Mapped[str | None]
    error: Mapped[str | None]
    created_at: Mapped[datetime] = mapped_column(server_default=_NOW)
    started_at: Mapped[datetime | None]
    completed_at: Mapped[datetime | None]

    __table_args__ = (
        UniqueConstraint("workflow_id", "task_index"),
        Index("horsies_workflow_tasks_workflow_idx", "workflow_id"),
        Index("horsies_workflow_tasks_node_id_idx", "node_id"),
        Index("horsies_workflow_tasks_status_idx", "status"),
        Index("horsies_workflow_tasks_task_id_idx", "task_id"),
        Index("horsies_workflow_tasks_sub_workflow_idx", "sub_workflow_id"),
        Index(
            "horsies_workflow_tasks_dependencies_idx",
            "dependencies",
            postgresql_using="gin",
        ),
    )


class SchemaVersionModel(Base):
    __tablename__ = "horsies_schema_version"

    version: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    name: Mapped[str]
    applied_at: Mapped[datetime] = mapped_column(server_default=_NOW)
