"""The SQLAlchemy mirror of the workflow tables (docs/contract/schema.md §5)."""

from datetime import datetime
from typing import Any

from sqlalchemy import ForeignKey, Index, Integer, String, UniqueConstraint, text
from sqlalchemy.dialects.postgresql import ARRAY, JSONB
from sqlalchemy.orm import Mapped, mapped_column

from horsies.database.models import (
    BYTEWISE_ID,
    FALSE,
    HUNDRED,
    NOW,
    TRUE,
    ZERO,
    Base,
    EnumText,
)
from horsies.states import WorkflowStatus, WorkflowTaskStatus

_EMPTY = text("'{}'")


class WorkflowModel(Base):
    __tablename__ = "horsies_workflows"

    id: Mapped[str] = mapped_column(BYTEWISE_ID, primary_key=True)
    name: Mapped[str] = mapped_column(String(255))
    status: Mapped[WorkflowStatus] = mapped_column(
        EnumText(WorkflowStatus, 50), server_default="PENDING"
    )
    on_error: Mapped[str] = mapped_column(String(50), server_default="fail")
    output_task_index: Mapped[int | None]
    success_policy: Mapped[dict[str, Any] | None] = mapped_column(JSONB)
    result: Mapped[str | None]
    error: Mapped[str | None]
    definition_key: Mapped[str | None] = mapped_column(String(255))
    parent_workflow_id: Mapped[str | None] = mapped_column(
        BYTEWISE_ID, ForeignKey("horsies_workflows.id", ondelete="CASCADE")
    )
    parent_task_index: Mapped[int | None]
    depth: Mapped[int] = mapped_column(server_default=ZERO)
    root_workflow_id: Mapped[str | None] = mapped_column(BYTEWISE_ID)
    sent_at: Mapped[datetime] = mapped_column(server_default=NOW)
    created_at: Mapped[datetime] = mapped_column(server_default=NOW)
    started_at: Mapped[datetime | None]
    completed_at: Mapped[datetime | None]
    updated_at: Mapped[datetime] = mapped_column(server_default=NOW)
    open_nodes: Mapped[int] = mapped_column(server_default=ZERO)
    max_in_flight: Mapped[int | None]
    next_index: Mapped[int] = mapped_column(server_default=ZERO)
    in_flight: Mapped[int] = mapped_column(server_default=ZERO)

    __table_args__ = (
        Index(
            "horsies_workflows_parent_idx",
            "parent_workflow_id",
            postgresql_where=text("parent_workflow_id is not null"),
        ),
        Index(
            "horsies_workflows_active_idx",
            "status",
            "id",
            postgresql_where=text("status in ('PENDING', 'RUNNING', 'PAUSED')"),
        ),
        Index(
            "horsies_workflows_ended_idx",
            text("coalesce(completed_at, updated_at, created_at)"),
            postgresql_where=text("status in ('COMPLETED', 'FAILED', 'CANCELLED')"),
        ),
        Index(
            "horsies_workflows_cancelled_open_idx",
            "id",
            postgresql_where=text("status = 'CANCELLED' and open_nodes > 0"),
        ),
    )


class WorkflowTaskModel(Base):
    __tablename__ = "horsies_workflow_tasks"

    id: Mapped[str] = mapped_column(BYTEWISE_ID, primary_key=True)
    workflow_id: Mapped[str] = mapped_column(
        BYTEWISE_ID, ForeignKey("horsies_workflows.id", ondelete="CASCADE")
    )
    task_index: Mapped[int]
    node_id: Mapped[str | None] = mapped_column(String(128))
    task_name: Mapped[str] = mapped_column(String(255))
    task_args: Mapped[str | None]
    task_kwargs: Mapped[str | None]
    queue_name: Mapped[str] = mapped_column(String(100), server_default="default")
    priority: Mapped[int] = mapped_column(server_default=HUNDRED)
    dependencies: Mapped[list[int]] = mapped_column(ARRAY(Integer), server_default=_EMPTY)
    args_from: Mapped[dict[str, Any] | None] = mapped_column(JSONB)
    workflow_ctx_from: Mapped[list[str] | None] = mapped_column(ARRAY(String(128)))
    allow_failed_deps: Mapped[bool] = mapped_column(server_default=FALSE)
    join_type: Mapped[str] = mapped_column(String(10), server_default="all")
    min_success: Mapped[int | None]
    task_options: Mapped[str | None]
    status: Mapped[WorkflowTaskStatus] = mapped_column(
        EnumText(WorkflowTaskStatus, 50), server_default="PENDING"
    )
    task_id: Mapped[str | None] = mapped_column(BYTEWISE_ID)
    is_subworkflow: Mapped[bool] = mapped_column(server_default=FALSE)
    sub_workflow_id: Mapped[str | None] = mapped_column(
        BYTEWISE_ID, ForeignKey("horsies_workflows.id", ondelete="SET NULL")
    )
    sub_workflow_name: Mapped[str | None] = mapped_column(String(255))
    sub_definition_key: Mapped[str | None] = mapped_column(String(255))
    sub_workflow_summary: Mapped[str | None]
    result: Mapped[str | None]
    error: Mapped[str | None]
    created_at: Mapped[datetime] = mapped_column(server_default=NOW)
    started_at: Mapped[datetime | None]
    completed_at: Mapped[datetime | None]

    kind: Mapped[str] = mapped_column(String(16), server_default="task")
    dependents: Mapped[list[int]] = mapped_column(ARRAY(Integer), server_default=_EMPTY)
    open_dependencies: Mapped[int] = mapped_column(server_default=ZERO)
    completed_dependencies: Mapped[int] = mapped_column(server_default=ZERO)
    good_until: Mapped[datetime | None]
    max_retries: Mapped[int] = mapped_column(server_default=ZERO)
    settings: Mapped[dict[str, Any] | None] = mapped_column(JSONB)
    wait_until: Mapped[datetime | None]
    event_name: Mapped[str | None] = mapped_column(String(255, collation="C"))
    event_key: Mapped[str | None] = mapped_column(String(255, collation="C"))

    __table_args__ = (
        UniqueConstraint("workflow_id", "task_index"),
        Index(
            "horsies_workflow_tasks_task_id_idx",
            "task_id",
            postgresql_where=text("task_id is not null"),
        ),
        Index(
            "horsies_workflow_tasks_sub_workflow_idx",
            "sub_workflow_id",
            postgresql_where=text("sub_workflow_id is not null"),
        ),
        Index(
            "horsies_workflow_tasks_wait_idx",
            "wait_until",
            postgresql_where=text("wait_until is not null and status = 'RUNNING'"),
        ),
        Index(
            "horsies_workflow_tasks_event_idx",
            "event_name",
            "event_key",
            postgresql_where=text("event_name is not null and status = 'RUNNING'"),
        ),
        Index(
            "horsies_workflow_tasks_ready_idx",
            "id",
            postgresql_where=text("status = 'READY' and kind = 'sub_workflow'"),
        ),
        {"postgresql_with": {"fillfactor": "70"}},
    )


class EventModel(Base):
    __tablename__ = "horsies_events"

    name: Mapped[str] = mapped_column(String(255, collation="C"), primary_key=True)
    key: Mapped[str] = mapped_column(String(255, collation="C"), primary_key=True)
    payload: Mapped[str]
    is_new: Mapped[bool] = mapped_column(server_default=TRUE)
    sent_at: Mapped[datetime] = mapped_column(server_default=NOW)

    __table_args__ = (
        Index("horsies_events_new_idx", "sent_at", postgresql_where=text("is_new")),
        Index("horsies_events_sent_at_idx", "sent_at"),
    )
