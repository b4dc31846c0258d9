"""horsies_cancel_tasks and horsies_requeue_tasks: what a user may do to a stored task."""

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import psycopg
import pytest

from horsies.operations.statements import cancel_tasks, request_cancel, requeue_tasks
from support.database import FAILURE, OK, Database, at, connect, retry_options

CLEARED = (
    "result", "error_code", "failed_reason", "completed_at", "failed_at", "started_at",
    "next_retry_at", "claimed_at", "claimed_by_worker_id", "claim_expires_at", "worker_pid",
    "worker_hostname", "worker_process_name",
)  # fmt: skip


def cancel(db: Database, task_id: str) -> str:
    return db.run(cancel_tasks([task_id]))[0].outcome


def requeue(db: Database, task_id: str, *, include_completed: bool = False) -> str:
    return db.run(requeue_tasks([task_id], include_completed=include_completed))[0].outcome


@pytest.mark.seed("S6")
@pytest.mark.parametrize("is_claimed", [False, True])
def test_waiting_task_is_cancelled(db: Database, is_claimed: bool) -> None:
    task_id = db.claimed().task_id if is_claimed else db.insert()
    db.set_now(5)

    outcome = cancel(db, task_id)

    row = db.task(task_id)
    assert outcome == "cancelled"
    assert (row["status"], row["claimed"], row["updated_at"]) == ("CANCELLED", False, at(5))
    names = ("claimed_at", "claimed_by_worker_id", "claim_expires_at", "result", "error_code")
    assert {name: row[name] for name in names} == dict.fromkeys(names)
    assert db.attempts(task_id) == []


@pytest.mark.seed("S6")
def test_running_task_is_not_cancelled(db: Database) -> None:
    claim = db.running()
    before = db.task(claim.task_id)

    assert cancel(db, claim.task_id) == "refused"
    assert db.task(claim.task_id) == before


@pytest.mark.seed("S8")
@pytest.mark.parametrize("status", ["COMPLETED", "FAILED", "CANCELLED", "EXPIRED"])
def test_ended_task_is_not_cancelled(db: Database, status: str) -> None:
    task_id = db.insert(status=status)

    assert cancel(db, task_id) == "refused"
    assert db.status(task_id) == status


def test_missing_task_is_refused(db: Database) -> None:
    assert cancel(db, "no such task") == "refused"
    assert requeue(db, "no such task") == "refused"


def test_workflow_task_is_left_to_its_workflow(db: Database) -> None:
    waiting = db.insert(is_workflow_task=True)
    failed = db.insert(is_workflow_task=True, status="FAILED")

    assert cancel(db, waiting) == "refused"
    assert requeue(db, failed) == "refused"


def test_cancelled_claim_is_lost_to_its_worker(db: Database) -> None:
    claim = db.claimed()
    cancel(db, claim.task_id)

    assert db.start(claim) == ["claim_lost"]
    assert db.status(claim.task_id) == "CANCELLED"


@pytest.mark.seed("S12", "S91", "S92")
def test_failed_task_is_requeued_with_attempts_going_on(db: Database) -> None:
    claim = db.running(max_retries=3, task_options=retry_options(3))
    db.fail(claim, failed_reason="why")
    db.set_now(20)

    outcome = requeue(db, claim.task_id)

    row = db.task(claim.task_id)
    assert outcome == "requeued"
    assert (row["status"], row["claimed"], row["retry_count"]) == ("PENDING", False, 1)
    assert row["max_retries"] - row["retry_count"] == 3, "the whole budget is there again"
    assert row["enqueued_at"] == row["updated_at"] == at(20)
    assert {name: row[name] for name in CLEARED} == dict.fromkeys(CLEARED)
    assert len(db.attempts(claim.task_id)) == 1
    (again,) = db.claim(1)
    assert again.attempt == 2


def test_task_cancelled_before_it_ran_is_requeued_as_its_first_attempt(db: Database) -> None:
    task_id = db.insert()
    cancel(db, task_id)

    assert requeue(db, task_id) == "requeued"
    assert db.task(task_id)["retry_count"] == 0


@pytest.mark.parametrize(
    ("columns", "include_completed", "outcome"),
    [
        pytest.param({"status": "FAILED", "result": FAILURE}, False, "requeued", id="failed"),
        pytest.param({"status": "CANCELLED"}, False, "requeued", id="cancelled"),
        pytest.param({"status": "COMPLETED", "result": OK}, False, "refused", id="completed"),
        pytest.param({"status": "COMPLETED", "result": OK}, True, "requeued", id="if asked for"),
        pytest.param({"status": "EXPIRED"}, True, "refused", id="expired never"),
        pytest.param({"status": "PENDING"}, True, "refused", id="pending"),
        pytest.param({"status": "FAILED", "good_until": at(0)}, False, "refused", id="overdue"),
        pytest.param({"status": "FAILED", "good_until": at(1)}, False, "requeued", id="in time"),
    ],
)
def test_requeue_needs_an_end_it_may_leave(
    db: Database, columns: dict[str, Any], include_completed: bool, outcome: str
) -> None:
    task_id = db.insert(**columns)

    assert requeue(db, task_id, include_completed=include_completed) == outcome


def test_requeue_needs_the_unique_key_free(db: Database) -> None:
    failed = db.insert(status="FAILED", unique_key="k")
    holder = db.insert(unique_key="k")

    refused = requeue(db, failed)
    cancel(db, holder)

    assert refused == "refused"
    assert requeue(db, failed) == "requeued"


def test_of_tasks_with_one_unique_key_the_newest_is_requeued(db: Database) -> None:
    other = db.insert(status="FAILED")
    older, newer = (
        db.insert(status="FAILED", unique_key="k", created_at=f"2026-11-{day} 12:00+00")
        for day in (16, 17)
    )

    receipts = db.run(requeue_tasks([other, older, newer], include_completed=False))

    outcomes = {receipt.task_id: receipt.outcome for receipt in receipts}
    assert outcomes == {other: "requeued", older: "refused", newer: "requeued"}
    assert db.status(older) == "FAILED"


def test_requeue_is_refused_when_the_unique_key_is_taken_meanwhile(
    committing: Database, database_url: str
) -> None:
    older, newer, other = (
        committing.insert(status="FAILED", unique_key=key) for key in ("k", "k", None)
    )
    with psycopg.connect(database_url) as first, ThreadPoolExecutor(1) as threads:
        Database(first).run(requeue_tasks([newer], include_completed=False))
        second = connect(database_url)
        requeued = threads.submit(
            second.run, requeue_tasks([older, other], include_completed=False)
        )
        committing.wait_until_blocked(second.connection.info.backend_pid)
        first.commit()
        receipts = requeued.result(timeout=20)
    second.connection.close()

    outcomes = {receipt.task_id: receipt.outcome for receipt in receipts}
    assert outcomes == {older: "refused", other: "requeued"}


@pytest.mark.parametrize(
    ("change", "outcome", "status"),
    [
        pytest.param("start", "requested", "RUNNING", id="it starts"),
        pytest.param("fail", "cancelled", "CANCELLED", id="it fails and is to be retried"),
    ],
)
def test_request_to_cancel_meets_the_task_as_it_is_by_then(
    committing: Database, database_url: str, change: str, outcome: str, status: str
) -> None:
    claim = committing.claimed() if change == "start" else committing.running(max_retries=1)
    with psycopg.connect(database_url) as first, ThreadPoolExecutor(1) as threads:
        changing = Database(first)
        changing.set_now(0)
        if change == "start":
            changing.start(claim)
        else:
            changing.fail(claim, retry_delay_s=10.0)
        second = connect(database_url)
        requested = threads.submit(second.run, request_cancel([claim.task_id]))
        committing.wait_until_blocked(second.connection.info.backend_pid)
        first.commit()
        (receipt,) = requested.result(timeout=20)
    second.connection.close()

    row = committing.task(claim.task_id)
    assert (receipt.outcome, row["status"]) == (outcome, status)
    assert (row["cancel_requested_at"] is not None) == (outcome == "requested")
