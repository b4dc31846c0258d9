"""The SQLAlchemy mirror of what operators steer and see (docs/contract/schema.md §2.4)."""

from datetime import datetime
from typing import Any

from sqlalchemy import ARRAY, BigInteger, Index, Integer, String, Text, text
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.orm import Mapped, mapped_column

from horsies.database.models import NOW, ZERO, Base

_EMPTY = text("'{}'::integer[]")


class QueueControlModel(Base):
    __tablename__ = "horsies_queue_controls"

    queue_name: Mapped[str] = mapped_column(String(100, collation="C"), primary_key=True)
    paused_at: Mapped[datetime | None]
    paused_by: Mapped[str | None] = mapped_column(Text)
    pause_reason: Mapped[str | None] = mapped_column(Text)
    max_concurrency: Mapped[int | None]
    updated_at: Mapped[datetime] = mapped_column(server_default=NOW)


class WorkerDrainModel(Base):
    __tablename__ = "horsies_worker_drains"

    worker_id: Mapped[str] = mapped_column(String(255, collation="C"), primary_key=True)
    requested_at: Mapped[datetime] = mapped_column(server_default=NOW)
    requested_by: Mapped[str | None] = mapped_column(Text)
    reason: Mapped[str | None] = mapped_column(Text)


class AuditModel(Base):
    __tablename__ = "horsies_audit"

    id: Mapped[int] = mapped_column(BigInteger, primary_key=True)
    done_at: Mapped[datetime] = mapped_column(server_default=NOW)
    done_by: Mapped[str] = mapped_column(Text)
    action: Mapped[str] = mapped_column(String(32))
    target: Mapped[str] = mapped_column(Text)
    reason: Mapped[str | None] = mapped_column(Text)
    details: Mapped[dict[str, Any] | None] = mapped_column(JSONB)

    __table_args__ = (Index("horsies_audit_done_at_idx", "done_at"),)


class DutyModel(Base):
    __tablename__ = "horsies_duties"

    name: Mapped[str] = mapped_column(String(300, collation="C"), primary_key=True)
    taken_at: Mapped[datetime | None]
    taken_by: Mapped[str | None] = mapped_column(String(255))
    due_at: Mapped[datetime | None]
    done_at: Mapped[datetime | None]
    failure: Mapped[str | None] = mapped_column(Text)


class QueueHistoryModel(Base):
    __tablename__ = "horsies_queue_history"

    step_s: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    starts_at: Mapped[datetime] = mapped_column(primary_key=True)
    queue_name: Mapped[str] = mapped_column(String(100, collation="C"), primary_key=True)
    completed_count: Mapped[int] = mapped_column(server_default=ZERO)
    failed_count: Mapped[int] = mapped_column(server_default=ZERO)
    expired_count: Mapped[int] = mapped_column(server_default=ZERO)
    start_latencies: Mapped[list[int]] = mapped_column(ARRAY(Integer), server_default=_EMPTY)
    run_times: Mapped[list[int]] = mapped_column(ARRAY(Integer), server_default=_EMPTY)
    due_count: Mapped[int | None]
    oldest_due_s: Mapped[float | None]
