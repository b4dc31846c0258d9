"""Retention: what is old enough leaves, batch by batch; the sweep of release 0.2."""

from datetime import timedelta
from typing import Any

import psycopg
import pytest

from horsies.recovery import statements as recovery
from support.database import Database, at

HOUR = 3600.0


def prune(db: Database, what: str) -> int:
    return int(db.run(recovery.prune(what, timedelta(hours=1)))[0].value)


def sweep(db: Database, steps: dict[str, str | None]) -> list[tuple[Any, ...]]:
    """As workers of release 0.2 do."""
    rows = db.execute(
        "select * from horsies_sweep(%s, %s::interval[], 1000)", list(steps), list(steps.values())
    )
    return [tuple(row.values()) for row in rows]


def prune_tasks(db: Database, status: str) -> int:
    return int(db.run(recovery.prune_tasks(status, timedelta(hours=1)))[0].value)


@pytest.mark.seed("S138")
def test_heartbeats_leave_by_age(db: Database) -> None:
    db.beat("a", "runner", -2 * HOUR)
    db.beat("b", "runner", -0.5 * HOUR)

    count = prune(db, "heartbeats")

    assert count == 1
    assert db.value("select task_id from horsies_heartbeats") == "b"


@pytest.mark.seed("S125", "S138")
def test_worker_snapshots_leave_by_age(db: Database) -> None:
    for worker, age_hours in (("old", 2), ("new", 0.5)):
        db.insert(
            "horsies_worker_states", worker_id=worker, snapshot_at=at(-age_hours * HOUR),
            hostname="h", pid=1, processes=1, queues=["default"], max_claim_batch=0,
            max_claim_per_worker=0, worker_started_at=at(-3 * HOUR),
        )  # fmt: skip

    count = prune(db, "worker_states")

    assert count == 1
    assert db.value("select worker_id from horsies_worker_states") == "new"


def test_history_of_schedules_leaves_by_age(db: Database) -> None:
    for name, age_hours in (("old", 2), ("new", 0.5)):
        created_at = at(-age_hours * HOUR)
        db.insert(
            "horsies_schedule_runs", schedule_name=name, slot_at=created_at, outcome="sent",
            created_at=created_at,
        )  # fmt: skip

    count = prune(db, "schedule_runs")

    assert count == 1
    assert db.value("select schedule_name from horsies_schedule_runs") == "new"


@pytest.mark.seed("S114", "S138")
def test_ended_task_leaves_with_its_attempts_and_logs(db: Database) -> None:
    claim = db.running()
    db.complete(claim)
    db.insert("horsies_task_logs", task_id=claim.task_id, attempt=1, log="text")
    db.set_now(2 * HOUR)

    count = prune_tasks(db, "COMPLETED")

    assert count == 1
    assert db.statuses() == {}
    assert db.attempts(claim.task_id) == []
    assert db.value("select count(*) from horsies_task_logs") == 0


@pytest.mark.parametrize(
    ("status", "column"),
    [
        ("COMPLETED", "completed_at"),
        ("FAILED", "failed_at"),
        ("EXPIRED", "failed_at"),
        ("CANCELLED", "updated_at"),
    ],
)
def test_age_is_counted_from_the_end(db: Database, status: str, column: str) -> None:
    db.insert(id="old", status=status, **{column: at(-2 * HOUR)})
    db.insert(id="new", status=status, **{column: at(-0.5 * HOUR)})

    count = prune_tasks(db, status)

    assert count == 1
    assert db.value("select id from horsies_tasks") == "new"


@pytest.mark.parametrize("status", ["PENDING", "CLAIMED", "RUNNING"])
def test_unfinished_task_never_leaves(db: Database, status: str) -> None:
    db.insert(status=status, updated_at=at(-9_999 * HOUR))

    assert prune_tasks(db, status) == 0


def test_other_states_stay(db: Database) -> None:
    db.insert(status="FAILED", failed_at=at(-2 * HOUR))

    assert prune_tasks(db, "COMPLETED") == 0


@pytest.mark.parametrize(("workflow_status", "count"), [("RUNNING", 0), ("COMPLETED", 1)])
def test_task_of_a_living_workflow_stays(db: Database, workflow_status: str, count: int) -> None:
    task_id = db.insert(status="COMPLETED", completed_at=at(-2 * HOUR), is_workflow_task=True)
    db.insert("horsies_workflows", id="w", name="w", status=workflow_status)
    db.insert(
        "horsies_workflow_tasks", id="n", workflow_id="w", task_index=0, task_name="j",
        task_id=task_id,
    )  # fmt: skip

    assert prune_tasks(db, "COMPLETED") == count


@pytest.mark.seed("S138")
@pytest.mark.parametrize(("workflow_status", "count"), [("PAUSED", 0), ("FAILED", 1)])
def test_ended_workflow_leaves_with_its_nodes(
    db: Database, workflow_status: str, count: int
) -> None:
    old = at(-2 * HOUR)
    db.insert(
        "horsies_workflows", id="w", name="w", status=workflow_status, completed_at=old,
        updated_at=old, created_at=old,
    )  # fmt: skip
    db.insert("horsies_workflow_tasks", id="n", workflow_id="w", task_index=0, task_name="j")

    assert prune(db, "workflows") == 2 * count  # the workflow and its node
    assert db.value("select count(*) from horsies_workflow_tasks") == 1 - count


def test_one_call_deletes_a_bounded_batch(db: Database) -> None:
    db.execute(
        "insert into horsies_heartbeats (task_id, sender_id, role, sent_at) "
        "select n::text, 'x', 'runner', %s from generate_series(1, 1500) n",
        at(-2 * HOUR),
    )

    counts = [prune(db, "heartbeats") for _ in range(3)]

    assert counts == [1_000, 500, 0]


def test_one_worker_sweeps_at_a_time(committing: Database, database_url: str) -> None:
    committing.beat("a", "runner", -2 * HOUR)

    with psycopg.connect(database_url) as other:
        other.execute("select pg_advisory_xact_lock(horsies_lock_key('sweep'))")
        assert sweep(committing, {"prune heartbeats": "1 hour"}) == []

    assert sweep(committing, {"prune heartbeats": "1 hour"}) == [("prune heartbeats", 1, None)]


def test_step_that_fails_says_why_and_undoes_no_other(db: Database) -> None:
    db.execute("alter table horsies_heartbeats rename to gone")
    task_id = db.insert(good_until=at(-HOUR))

    failed, expired = sweep(db, {"prune heartbeats": "30 days", "expire overdue tasks": None})

    assert failed == ("prune heartbeats", 0, 'relation "horsies_heartbeats" does not exist')
    assert expired == ("expire overdue tasks", 1, None)
    assert db.status(task_id) == "EXPIRED"


def test_step_that_gets_no_lock_is_left_to_the_next_pass(
    committing: Database, database_url: str
) -> None:
    committing.execute("set lock_timeout = '50ms'")

    with psycopg.connect(database_url) as other:
        other.execute("lock table horsies_heartbeats in access exclusive mode")
        with pytest.raises(psycopg.errors.LockNotAvailable):
            prune(committing, "heartbeats")
