"""SQLAlchemy mirror of our tables, for ORM users (extra `sqlalchemy`); nothing of ours imports it.

Equal to the migrations in tables, columns, constraints and indexes. Functions and triggers are not
tables: `horsies migrate`, or the first use of a broker, adds them to what `create_all` made.
"""

from datetime import datetime
from enum import Enum
from typing import Any, ClassVar

from sqlalchemy import (
    ARRAY,
    BigInteger,
    CheckConstraint,
    Connection,
    DateTime,
    Double,
    ForeignKey,
    Index,
    Integer,
    Sequence,
    String,
    Text,
    TypeDecorator,
    UniqueConstraint,
    event,
    text,
)
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column

from horsies.states import TaskAttemptOutcome, TaskStatus

BYTEWISE_ID = String(36, collation="C")
NOW = text("now()")
FALSE = text("false")
TRUE = text("true")
ZERO = text("0")
HUNDRED = text("100")


class EnumText(TypeDecorator[Enum]):
    """A text column whose values are members of an enum; a text that is none stays a text."""

    impl = String
    cache_ok = True

    def __init__(self, members: type[Enum], length: int | None = None, **options: Any) -> None:
        self.members = members
        super().__init__(length, **options)

    def process_bind_param(self, value: Any, dialect: Any) -> Any:
        return value.value if isinstance(value, Enum) else value

    def process_result_value(self, value: Any, dialect: Any) -> Any:
        try:
            return None if value is None else self.members(value)
        except ValueError:  # written by hand
            return value


class Base(DeclarativeBase):
    """The declarative base of all tables of this package."""

    type_annotation_map: ClassVar[dict[Any, Any]] = {
        str: Text(),
        int: Integer(),
        float: Double(),
        datetime: DateTime(timezone=True),
    }


# Where tasks whose ids tell no time stand among those whose ids do, in lists.
_PLACE_OF_OTHER_IDS = """
(overlay(lpad(to_hex(case
    when created_at > '1970-01-01 00\\:00\\:00+00' and created_at < '9999-01-01 00\\:00\\:00+00'
    then (extract(epoch from created_at at time zone 'UTC') * 1000)\\:\\:bigint else 0 end
), 12, '0') placing '-' from 9 for 0) || '-' || id)
"""


class TaskModel(Base):
    __tablename__ = "horsies_tasks"

    created_at: Mapped[datetime] = mapped_column(server_default=NOW)
    updated_at: Mapped[datetime] = mapped_column(server_default=NOW)
    enqueued_at: Mapped[datetime] = mapped_column(server_default=NOW)
    priority: Mapped[int] = mapped_column(server_default=HUNDRED)
    retry_count: Mapped[int] = mapped_column(server_default=ZERO)
    max_retries: Mapped[int] = mapped_column(server_default=ZERO)
    is_workflow_task: Mapped[bool] = mapped_column(server_default=FALSE)
    claimed: Mapped[bool] = mapped_column(server_default=FALSE)
    unique_stored: Mapped[bool] = mapped_column(server_default=FALSE)
    is_held: Mapped[bool] = mapped_column(server_default=FALSE)
    id: Mapped[str] = mapped_column(BYTEWISE_ID, primary_key=True)
    status: Mapped[TaskStatus] = mapped_column(
        EnumText(TaskStatus, collation="C"), server_default="PENDING"
    )
    queue_name: Mapped[str] = mapped_column(String(100, collation="C"))
    task_name: Mapped[str] = mapped_column(String(255))
    enqueue_sha: Mapped[str] = mapped_column(String(64))
    claimed_at: Mapped[datetime | None]
    claimed_by_worker_id: Mapped[str | None] = mapped_column(String(255))
    completed_at: Mapped[datetime | None]
    failed_at: Mapped[datetime | None]
    error_code: Mapped[str | None]
    claim_expires_at: Mapped[datetime | None]
    good_until: Mapped[datetime | None]
    next_retry_at: Mapped[datetime | None]
    cancel_requested_at: Mapped[datetime | None]
    unique_key: Mapped[str | None] = mapped_column(String(255))
    sent_at: Mapped[datetime | None]
    started_at: Mapped[datetime | None]
    worker_pid: Mapped[int | None]
    worker_hostname: Mapped[str | None] = mapped_column(String(255))
    worker_process_name: Mapped[str | None] = mapped_column(String(255))
    ahead_number: Mapped[int | None] = mapped_column(BigInteger)
    finalizing_at: Mapped[datetime | None]
    finalizing_by_worker_id: Mapped[str | None]
    rerun_of: Mapped[str | None] = mapped_column(String(36))
    tags: Mapped[list[str] | None] = mapped_column(ARRAY(Text))
    task_options: Mapped[str | None]
    args: Mapped[str | None]
    kwargs: Mapped[str | None]
    result: Mapped[str | None]
    failed_reason: Mapped[str | None]

    __table_args__ = (
        Index(
            "horsies_tasks_claim_idx",
            "queue_name",
            "priority",
            "enqueued_at",
            "id",
            postgresql_where=text("status = 'PENDING' and not is_held"),
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
        Index(
            "horsies_tasks_other_ids_idx",
            text(_PLACE_OF_OTHER_IDS),
            postgresql_where=text("id >= '02' or substr(id, 15, 1) <> '7'"),
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


_attempt_ids = Sequence("horsies_task_attempts_id_seq", metadata=Base.metadata)


@event.listens_for(TaskModel.__table__, "after_create")
def _leave_room_in_the_key(_table: object, connection: Connection, **_options: object) -> None:
    """SQLAlchemy gives a primary key no storage settings."""
    connection.execute(text("alter index horsies_tasks_pkey set (fillfactor = 50)"))


class TaskAttemptModel(Base):
    """Keyed by task and attempt; a trigger deletes attempts with their task (decision 0012)."""

    __tablename__ = "horsies_task_attempts"

    id: Mapped[int] = mapped_column(
        BigInteger, _attempt_ids, server_default=_attempt_ids.next_value()
    )
    task_id: Mapped[str] = mapped_column(BYTEWISE_ID)
    attempt: Mapped[int] = mapped_column()
    outcome: Mapped[TaskAttemptOutcome] = mapped_column(EnumText(TaskAttemptOutcome, 32))
    will_retry: Mapped[bool] = mapped_column(server_default=FALSE)
    started_at: Mapped[datetime]
    finished_at: Mapped[datetime]
    error_code: Mapped[str | None]
    error_message: Mapped[str | None]
    failed_reason: Mapped[str | None]
    worker_id: Mapped[str | None] = mapped_column(String(255))
    worker_hostname: Mapped[str | None] = mapped_column(String(255))
    worker_pid: Mapped[int | None]
    worker_process_name: Mapped[str | None] = mapped_column(String(255))
    created_at: Mapped[datetime] = mapped_column(server_default=NOW)
    traceback: Mapped[str | None]

    __table_args__ = (
        UniqueConstraint("task_id", "attempt"),
        CheckConstraint("outcome in ('COMPLETED', 'FAILED', 'WORKER_FAILURE')"),
        Index(
            "horsies_task_attempts_error_code_idx",
            "error_code",
            postgresql_where=text("error_code is not null"),
        ),
        Index("horsies_task_attempts_finished_at_brin", "finished_at", postgresql_using="brin"),
    )
    __mapper_args__ = {"primary_key": [task_id, attempt]}  # noqa: RUF012 - SQLAlchemy's own form


class TaskLogModel(Base):
    __tablename__ = "horsies_task_logs"

    id: Mapped[int] = mapped_column(BigInteger, primary_key=True)
    task_id: Mapped[str] = mapped_column(
        BYTEWISE_ID, ForeignKey("horsies_tasks.id", ondelete="CASCADE")
    )
    attempt: Mapped[int]
    log: Mapped[str]
    truncated: Mapped[bool] = mapped_column(server_default=FALSE)
    created_at: Mapped[datetime] = mapped_column(server_default=NOW)

    __table_args__ = (UniqueConstraint("task_id", "attempt"),)


class TaskProgressModel(Base):
    __tablename__ = "horsies_task_progress"

    task_id: Mapped[str] = mapped_column(
        BYTEWISE_ID, ForeignKey("horsies_tasks.id", ondelete="CASCADE"), primary_key=True
    )
    attempt: Mapped[int]
    done: Mapped[float]
    total: Mapped[float | None]
    note: Mapped[str | None] = mapped_column(Text)
    updated_at: Mapped[datetime] = mapped_column(server_default=NOW)

    __table_args__ = ({"postgresql_with": {"fillfactor": "50"}},)


class TaskHeartbeatModel(Base):
    __tablename__ = "horsies_heartbeats"

    id: Mapped[int] = mapped_column(BigInteger, primary_key=True)
    task_id: Mapped[str] = mapped_column(BYTEWISE_ID)
    sender_id: Mapped[str] = mapped_column(String(255))
    role: Mapped[str] = mapped_column(String(20))
    sent_at: Mapped[datetime] = mapped_column(server_default=NOW)
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
    snapshot_at: Mapped[datetime] = mapped_column(server_default=NOW)
    hostname: Mapped[str] = mapped_column(String(255))
    pid: Mapped[int]
    processes: Mapped[int]
    queues: Mapped[list[str]] = mapped_column(ARRAY(String))
    tasks_running: Mapped[int] = mapped_column(server_default=ZERO)
    tasks_claimed: Mapped[int] = mapped_column(server_default=ZERO)
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
    holds_lock: Mapped[bool] = mapped_column(server_default=FALSE)
    host_key: Mapped[str | None] = mapped_column(String(255))
    task_names: Mapped[list[str] | None] = mapped_column(ARRAY(String))
    version: Mapped[str | None] = mapped_column(String(50))
    slots: Mapped[dict[str, Any] | None] = mapped_column(JSONB)
    definition_keys: Mapped[list[str] | None] = mapped_column(ARRAY(String))

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
    granted_at: Mapped[datetime] = mapped_column(server_default=NOW)


class ScheduleStateModel(Base):
    __tablename__ = "horsies_schedule_state"

    schedule_name: Mapped[str] = mapped_column(String(255), primary_key=True)
    last_run_at: Mapped[datetime | None]
    next_run_at: Mapped[datetime | None]
    last_task_id: Mapped[str | None] = mapped_column(BYTEWISE_ID)
    run_count: Mapped[int] = mapped_column(server_default=ZERO)
    config_hash: Mapped[str | None] = mapped_column(String(64))
    updated_at: Mapped[datetime] = mapped_column(server_default=NOW)
    owner: Mapped[str] = mapped_column(String(255), server_default="default")
    paused_at: Mapped[datetime | None]
    pause_reason: Mapped[str | None]

    __table_args__ = (
        Index("horsies_schedule_state_next_run_idx", "next_run_at"),
        Index(
            "horsies_schedule_state_due_idx",
            "owner",
            "next_run_at",
            "schedule_name",
            postgresql_where=text("paused_at is null"),
        ),
    )


class ScheduleModel(Base):
    __tablename__ = "horsies_schedules"

    name: Mapped[str] = mapped_column(String(255), primary_key=True)
    owner: Mapped[str] = mapped_column(String(255), server_default="default")
    definition: Mapped[dict[str, Any]] = mapped_column(JSONB)
    created_at: Mapped[datetime] = mapped_column(server_default=NOW)
    updated_at: Mapped[datetime] = mapped_column(server_default=NOW)


class ScheduleRunModel(Base):
    __tablename__ = "horsies_schedule_runs"

    schedule_name: Mapped[str] = mapped_column(String(255), primary_key=True)
    slot_at: Mapped[datetime] = mapped_column(primary_key=True)
    outcome: Mapped[str] = mapped_column(String(32))
    task_id: Mapped[str | None] = mapped_column(BYTEWISE_ID)
    workflow_id: Mapped[str | None] = mapped_column(BYTEWISE_ID)
    reason: Mapped[str | None]
    created_at: Mapped[datetime] = mapped_column(server_default=NOW)

    __table_args__ = (Index("horsies_schedule_runs_created_at_idx", "created_at"),)


class ScheduleHorizonModel(Base):
    __tablename__ = "horsies_schedule_horizons"

    schedule_name: Mapped[str] = mapped_column(String(255), primary_key=True)
    pruned_until: Mapped[datetime]


class SchemaVersionModel(Base):
    __tablename__ = "horsies_schema_version"

    version: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    name: Mapped[str]
    applied_at: Mapped[datetime] = mapped_column(server_default=NOW)
