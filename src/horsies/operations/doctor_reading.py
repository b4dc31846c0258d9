"""What `doctor` reads of the server and of our tables, and what a healthy schema has."""

import re
from datetime import datetime, timedelta
from typing import NamedTuple

from horsies.database.sql_files import migrations, query
from horsies.database.statement import Scalar, Statement

# A test compares these with a fresh schema. Keys and unique constraints come with their tables.
INDEXES = [
    "horsies_audit_done_at_idx",
    "horsies_events_new_idx",
    "horsies_events_sent_at_idx",
    "horsies_heartbeats_sent_at_idx",
    "horsies_heartbeats_task_idx",
    "horsies_schedule_runs_created_at_idx",
    "horsies_schedule_state_due_idx",
    "horsies_schedule_state_next_run_idx",
    "horsies_task_attempts_error_code_idx",
    "horsies_task_attempts_finished_at_brin",
    "horsies_tasks_cancel_idx",
    "horsies_tasks_claim_idx",
    "horsies_tasks_ended_idx",
    "horsies_tasks_error_code_idx",
    "horsies_tasks_good_until_idx",
    "horsies_tasks_in_flight_idx",
    "horsies_tasks_lease_idx",
    "horsies_tasks_next_retry_idx",
    "horsies_tasks_other_ids_idx",
    "horsies_tasks_unique_key_idx",
    "horsies_worker_states_snapshot_at_idx",
    "horsies_worker_states_worker_idx",
    "horsies_workflow_tasks_event_idx",
    "horsies_workflow_tasks_ready_idx",
    "horsies_workflow_tasks_sub_workflow_idx",
    "horsies_workflow_tasks_task_id_idx",
    "horsies_workflow_tasks_wait_idx",
    "horsies_workflows_active_idx",
    "horsies_workflows_cancelled_open_idx",
    "horsies_workflows_ended_idx",
    "horsies_workflows_parent_idx",
]
TRIGGERS = [
    "horsies_event_notify_trigger",
    "horsies_schedule_state_notify_trigger",
    "horsies_task_delete_trigger",
    "horsies_task_notify_trigger_insert",
    "horsies_task_rename_trigger",
    "horsies_task_status_notify_trigger_update",
    "horsies_task_truncate_trigger",
    "horsies_worker_state_notify_trigger",
    "horsies_workflow_follow_trigger",
    "horsies_workflow_notify_trigger",
    "horsies_workflow_status_notify_trigger",
]


class OldSnapshot(NamedTuple):
    pid: int
    application: str
    state: str
    age: timedelta
    last_query: str


class TableHealth(NamedTuple):
    name: str
    live_count: int | None
    dead_count: int | None
    vacuumed_at: datetime | None
    read_at: datetime
    is_unvacuumed: bool
    may_read: bool
    may_write: bool


class IndexHealth(NamedTuple):
    name: str
    is_valid: bool
    byte_count: int
    row_count: float


class TriggerHealth(NamedTuple):
    name: str
    is_enabled: bool


class FailingDuty(NamedTuple):
    name: str
    failure: str
    age: timedelta


class ServerHealth(NamedTuple):
    notify_usage: float
    database_time: datetime
    is_replica: bool
    connection_count: int
    connection_limit: int
    has_autovacuum: bool
    has_counts: bool
    has_fsync: bool
    has_page_writes: bool
    has_sync_commit: bool
    has_idle_limit: bool
    role_name: str


def old_snapshots(min_age: timedelta) -> Statement[OldSnapshot]:
    return Statement(query("doctor", "old_snapshots"), {"min_age": min_age}, OldSnapshot)


def tables() -> Statement[TableHealth]:
    return Statement(query("doctor", "tables"), {}, TableHealth)


def indexes() -> Statement[IndexHealth]:
    return Statement(query("doctor", "indexes"), {}, IndexHealth)


def triggers() -> Statement[TriggerHealth]:
    return Statement(query("doctor", "triggers"), {}, TriggerHealth)


def server() -> Statement[ServerHealth]:
    return Statement(query("doctor", "server"), {}, ServerHealth)


def plan_as_claims_do() -> Statement[tuple[str, ...]]:
    return Statement(query("doctor", "plan_as_claims_do"), {}, lambda *values: tuple(values))


def claim_plan() -> Statement[Scalar]:
    return Statement(query("doctor", "claim_plan"), {}, Scalar)


def failing_duties() -> Statement[FailingDuty]:
    return Statement(query("doctor", "failing_duties"), {}, FailingDuty)


def definition_of(name: str) -> str:
    """The statement by which the migrations make an index or a trigger."""
    text = "\n".join(migration.sql for migration in migrations())
    wanted = rf"create (?:unique )?(?:index|trigger) (?:if not exists )?{re.escape(name)}\b[^;]*;"
    found = re.findall(wanted, text)
    return " ".join(str(found[-1]).split()) if found else f"the migration that makes {name}"
