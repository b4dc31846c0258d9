"""horsies_complete_tasks: RUNNING -> COMPLETED, with the attempt row."""

from typing import Any

import psycopg
import pytest

from support.database import OK, Database, at, connect


@pytest.mark.seed("S4", "S19", "S20", "S21", "S47", "S99", "S100")
def test_completion_stores_result_and_time_and_keeps_the_worker(db: Database) -> None:
    claim = db.running()
    db.execute("update horsies_tasks set finalizing_at = now(), finalizing_by_worker_id = 'x'")
    db.set_now(7)

    refusals = db.complete(claim)

    row = db.task(claim.task_id)
    assert refusals == []
    assert (row["status"], row["result"], row["error_code"]) == ("COMPLETED", OK, None)
    assert row["completed_at"] == row["updated_at"] == at(7)
    assert (row["failed_at"], row["failed_reason"]) == (None, None)
    assert (row["finalizing_at"], row["finalizing_by_worker_id"]) == (None, None)
    assert (row["claimed_by_worker_id"], row["worker_pid"]) == ("worker-a", 2001)
    assert row["claimed_at"] == row["started_at"] == at(0)


@pytest.mark.seed("S111", "S115", "S117", "S118", "S119", "S121")
def test_completion_writes_the_attempt(db: Database) -> None:
    claim = db.running(retry_count=2)
    db.set_now(7)

    db.complete(claim)

    (attempt,) = db.attempts(claim.task_id)
    assert (attempt["attempt"], attempt["outcome"], attempt["will_retry"]) == (
        3,
        "COMPLETED",
        False,
    )
    assert (attempt["started_at"], attempt["finished_at"]) == (at(0), at(7))
    assert (attempt["error_code"], attempt["error_message"]) == (None, None)
    assert attempt["failed_reason"] is None
    assert (attempt["worker_id"], attempt["worker_hostname"]) == ("worker-a", "host-a")
    assert (attempt["worker_pid"], attempt["worker_process_name"]) == (2001, "worker-2001")


@pytest.mark.parametrize(
    ("change", "owner"),
    [
        pytest.param({}, "worker-b", id="another owner"),
        pytest.param({"claimed_at": at(1)}, "worker-a", id="claimed again later"),
        pytest.param({"retry_count": 1}, "worker-a", id="another attempt"),
        pytest.param({"status": "PENDING"}, "worker-a", id="requeued"),
        pytest.param({"status": "FAILED"}, "worker-a", id="given up by a reaper"),
        pytest.param({"status": "COMPLETED"}, "worker-a", id="already completed"),
    ],
)
def test_lost_claim_changes_nothing(db: Database, change: dict[str, Any], owner: str) -> None:
    claim = db.running()
    for column, value in change.items():
        db.execute(f"update horsies_tasks set {column} = %s", value)
    before = db.task(claim.task_id)

    refusals = db.complete(claim, owner=owner)

    assert [(r.task_id, r.outcome) for r in refusals] == [(claim.task_id, "claim_lost")]
    assert db.task(claim.task_id) == before
    assert db.attempts(claim.task_id) == []


def test_one_lost_claim_does_not_spoil_the_batch(db: Database) -> None:
    claims = [db.running(id=name) for name in "abc"]
    db.execute("update horsies_tasks set status = 'PENDING' where id = 'b'")

    refusals = db.complete(*claims)

    assert [refusal.task_id for refusal in refusals] == ["b"]
    assert [db.status(name) for name in "abc"] == ["COMPLETED", "PENDING", "COMPLETED"]


@pytest.mark.seed("S116", "S122")
def test_second_end_of_one_attempt_is_impossible(db: Database) -> None:
    claim = db.running()
    db.complete(claim)
    attempt = {"task_id": claim.task_id, "started_at": at(0), "finished_at": at(0)}

    with pytest.raises(psycopg.errors.UniqueViolation), db.connection.transaction():
        db.insert("horsies_task_attempts", attempt=1, outcome="FAILED", **attempt)
    with pytest.raises(psycopg.errors.CheckViolation), db.connection.transaction():
        db.insert("horsies_task_attempts", attempt=2, outcome="PENDING", **attempt)

    assert len(db.attempts(claim.task_id)) == 1


@pytest.mark.seed("S112")
def test_state_and_attempt_are_seen_together_or_not_at_all(
    committing: Database, database_url: str
) -> None:
    claim = committing.running()

    with psycopg.connect(database_url) as writer_connection:
        writer = Database(writer_connection)
        writer.set_now(1)
        writer.complete(claim)
        during = (committing.status(claim.task_id), len(committing.attempts(claim.task_id)))
    after = (committing.status(claim.task_id), len(committing.attempts(claim.task_id)))

    assert during == ("RUNNING", 0)
    assert after == ("COMPLETED", 1)


def test_two_completers_of_one_claim_record_one_end(
    committing: Database, database_url: str
) -> None:
    claim = committing.running()
    other = connect(database_url)
    other.set_now(3)

    assert committing.complete(claim) == []
    (refusal,) = other.complete(claim)
    other.connection.close()

    assert refusal.outcome == "claim_lost"
    assert len(committing.attempts(claim.task_id)) == 1
