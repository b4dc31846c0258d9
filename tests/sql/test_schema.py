"""The tables as the contract names them."""

import psycopg
import pytest

from horsies.states import TaskStatus
from support.database import Database, at


def columns(db: Database, table: str) -> dict[str, str]:
    rows = db.execute(
        "select a.attname as name, format_type(a.atttypid, a.atttypmod) as type "
        "from pg_attribute a where a.attrelid = %s::regclass and a.attnum > 0",
        table,
    )
    return {row["name"]: row["type"] for row in rows}


@pytest.mark.seed("S94", "S95", "S97", "S102", "S105")
def test_task_columns(db: Database) -> None:
    found = columns(db, "horsies_tasks")

    assert found["id"] == found["rerun_of"] == "character varying(36)"
    assert found["task_name"] == found["unique_key"] == "character varying(255)"
    assert found["queue_name"] == "character varying(100)"
    assert found["status"] == "character varying"
    assert found["enqueue_sha"] == "character varying(64)"
    assert {found[name] for name in ("args", "kwargs", "result", "task_options")} == {"text"}
    assert {found[n] for n in ("priority", "retry_count", "max_retries", "worker_pid")} == {
        "integer"
    }
    instants = [name for name in found if name.endswith("_at") or name == "good_until"]
    assert len(instants) >= 12
    assert {found[name] for name in instants} == {"timestamp with time zone"}


@pytest.mark.seed("S97")
@pytest.mark.parametrize("status", list(TaskStatus))
def test_states_are_stored_as_their_text(db: Database, status: TaskStatus) -> None:
    task_id = db.insert(status=status.value)

    assert db.status(task_id) == status.name


@pytest.mark.seed("S111", "S115", "S116", "S118", "S119", "S120", "S121")
def test_attempt_columns(db: Database) -> None:
    found = columns(db, "horsies_task_attempts")

    assert found["task_id"] == "character varying(36)"
    assert found["outcome"] == "character varying(32)"
    assert (found["attempt"], found["will_retry"]) == ("integer", "boolean")
    assert {
        "started_at", "finished_at", "error_code", "error_message", "failed_reason", "worker_id",
        "worker_hostname", "worker_pid", "worker_process_name", "created_at",
    } <= set(found)  # fmt: skip


@pytest.mark.seed("S124")
def test_heartbeat_columns(db: Database) -> None:
    assert columns(db, "horsies_heartbeats") == {
        "id": "bigint",
        "task_id": "character varying(36)",
        "sender_id": "character varying(255)",
        "role": "character varying(20)",
        "sent_at": "timestamp with time zone",
        "hostname": "character varying(255)",
        "pid": "integer",
    }


def test_no_counted_id_runs_out(db: Database) -> None:
    """Five thousand running tasks use up an integer in 150 days."""
    rows = db.execute(
        "select c.relname || '.' || a.attname as name, a.atttypid::regtype::text as kind, "
        "s.max_value from pg_attribute a join pg_class c on c.oid = a.attrelid "
        "join pg_namespace n on n.oid = c.relnamespace and n.nspname = current_schema() "
        "join pg_sequences s on s.schemaname = n.nspname and quote_ident(s.schemaname) || '.' || "
        "quote_ident(s.sequencename) = pg_get_serial_sequence(c.relname, a.attname) "
        "where starts_with(c.relname, 'horsies_') and c.relkind = 'r' and a.attnum > 0"
    )

    assert {row["name"] for row in rows} >= {
        "horsies_heartbeats.id", "horsies_worker_states.id", "horsies_task_logs.id",
        "horsies_task_attempts.id",
    }  # fmt: skip
    assert {(row["kind"], row["max_value"]) for row in rows} == {("bigint", 2**63 - 1)}


@pytest.mark.seed("S125", "S126", "S127")
def test_worker_snapshot_columns(db: Database) -> None:
    found = columns(db, "horsies_worker_states")

    numbers = ("memory_usage_mb", "children_memory_mb", "cpu_percent", "memory_percent")
    assert {found[name] for name in numbers} == {"double precision"}
    settings = ("queue_priorities", "queue_max_concurrency", "recovery_config")
    assert {found[name] for name in settings} == {"jsonb"}
    assert found["queues"] == "character varying[]"
    assert {
        "worker_id", "snapshot_at", "hostname", "pid", "processes", "tasks_running",
        "tasks_claimed", "max_claim_batch", "max_claim_per_worker", "cluster_wide_cap",
        "worker_started_at",
    } <= set(found)  # fmt: skip


@pytest.mark.seed("S110", "S122", "S124")
def test_look_ups_have_their_indexes(db: Database) -> None:
    rows = db.execute(
        "select indexdef from pg_indexes where tablename like 'horsies%' "
        "and schemaname = current_schema()"
    )
    definitions = " ".join(row["indexdef"] for row in rows)

    for part in (
        "(queue_name, priority, enqueued_at, id) WHERE (((status)::text = 'PENDING'",
        "(claimed_at) WHERE",
        "(claim_expires_at) WHERE claimed",
        "(good_until) WHERE",
        "(next_retry_at) WHERE",
        "horsies_tasks USING btree (error_code) WHERE (error_code IS NOT NULL)",
        "horsies_task_attempts USING btree (error_code) WHERE (error_code IS NOT NULL)",
        "horsies_task_attempts USING brin (finished_at)",
        "UNIQUE INDEX horsies_task_attempts_task_id_attempt_key",
        "horsies_heartbeats USING btree (task_id, role, sent_at DESC)",
    ):
        assert part in definitions


def test_two_rows_cannot_hold_one_key(db: Database) -> None:
    db.insert(unique_key="k")

    with pytest.raises(psycopg.errors.UniqueViolation):
        db.insert(unique_key="k", status="RUNNING")


@pytest.mark.seed("S113", "S114")
def test_attempts_go_with_their_task_and_none_are_invented(db: Database) -> None:
    """The deletion in all its forms: test_attempts_follow_tasks.py."""
    task_id = db.insert(status="COMPLETED", completed_at=at(-1))
    assert db.attempts(task_id) == []
    db.insert(
        "horsies_task_attempts", task_id=task_id, attempt=1, outcome="FAILED",
        started_at=at(0), finished_at=at(0),
    )  # fmt: skip

    db.execute("delete from horsies_tasks where id = %s", task_id)

    assert db.attempts(task_id) == []


def test_hand_written_rows_are_not_checked_beyond_the_contract(db: Database) -> None:
    task_id = db.insert(status="CLAIMED", priority=-5, completed_at=at(0))

    assert db.task(task_id)["priority"] == -5


@pytest.mark.seed("S128")
def test_schedule_state_columns(db: Database) -> None:
    assert columns(db, "horsies_schedule_state") == {
        "schedule_name": "character varying(255)",
        "last_run_at": "timestamp with time zone",
        "next_run_at": "timestamp with time zone",
        "last_task_id": "character varying(36)",
        "run_count": "integer",
        "config_hash": "character varying(64)",
        "updated_at": "timestamp with time zone",
        "owner": "character varying(255)",
        "paused_at": "timestamp with time zone",
        "pause_reason": "text",
    }
