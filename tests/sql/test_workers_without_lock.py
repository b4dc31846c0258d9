"""Workers found dead by a lock they no longer hold, and the runs they left."""

from datetime import timedelta

import psycopg
import pytest

from horsies.database.statement import run_blocking
from horsies.recovery.statements import running_tasks_of_worker, watch_workers
from horsies.worker.statements import hold_worker_lock
from support.database import Database, at
from support.eventually import eventually


def insert_worker(db: Database, worker_id: str, seconds: float = 0, *, holds: bool = True) -> None:
    db.insert(
        "horsies_worker_states", worker_id=worker_id, snapshot_at=at(seconds), hostname="h", pid=7,
        processes=1, queues=["default"], max_claim_batch=0, max_claim_per_worker=0,
        worker_started_at=at(0), holds_lock=holds,
    )  # fmt: skip


def absent(db: Database, seen_within: timedelta | None = None) -> list[str]:
    return [worker.worker_id for worker in db.run(watch_workers(None, seen_within))]


def test_worker_is_absent_once_its_session_ends(committing: Database, database_url: str) -> None:
    insert_worker(committing, "a")
    with psycopg.connect(database_url, autocommit=True) as session:
        run_blocking(session, hold_worker_lock("a"))
        during = absent(committing)

    assert during == []
    assert eventually(lambda: absent(committing)) == ["a"]


def test_worker_without_session_locks_is_never_called_absent(db: Database) -> None:
    insert_worker(db, "behind a pooler", holds=False)

    assert absent(db) == []


@pytest.mark.parametrize(("age", "found"), [(10, ["a"]), (100, [])])
def test_only_workers_seen_lately_are_looked_at(db: Database, age: float, found: list[str]) -> None:
    insert_worker(db, "a", -age)

    assert absent(db, timedelta(seconds=60)) == found


def test_each_worker_is_told_once_by_its_latest_snapshot(db: Database) -> None:
    for seconds in (-30, -20, -10):
        insert_worker(db, "a", seconds)
        insert_worker(db, "b", seconds)

    assert absent(db) == ["a", "b"]


def test_runs_of_a_worker_are_its_running_rows(db: Database) -> None:
    run = db.running()
    db.claimed()
    db.insert(status="RUNNING", claimed_by_worker_id="worker-b")

    found = db.run(running_tasks_of_worker("worker-a"))

    assert [(row.id, row.attempt, row.worker_pid) for row in found] == [(run.task_id, 1, 2001)]
