"""Cancelling and interrupting runs: request, T16, T17; and logs stored with an end."""

from random import Random
from typing import Any

import pytest

from horsies.executors.base import NotBegun
from horsies.operations.statements import request_cancel
from horsies.worker.held_task import Completion, HeldTask
from horsies.worker.outcome import judge
from horsies.worker.statements import (
    cancel_requests,
    cancel_running_tasks,
    interrupt_tasks,
    notify_capacity,
    store_logs,
)
from support.database import FAILURE, Database, at

LOST = [
    pytest.param({}, "worker-b", id="another owner"),
    pytest.param({"claimed_at": at(1)}, "worker-a", id="claimed again later"),
    pytest.param({"retry_count": 1}, "worker-a", id="another attempt"),
    pytest.param({"status": "COMPLETED"}, "worker-a", id="already ended"),
]


def end(claim: HeldTask, **fields: Any) -> Completion:
    return Completion(claim, FAILURE, error_message="stopped on request", **fields)


def ask(db: Database, task_id: str) -> str:
    return db.run(request_cancel([task_id]))[0].outcome


def test_request_cancels_what_waits_and_asks_what_runs(db: Database) -> None:
    running, waiting, ended = db.running(), db.insert(), db.insert(status="COMPLETED")
    db.set_now(5)

    outcomes = [ask(db, running.task_id), ask(db, waiting), ask(db, ended), ask(db, "missing")]

    assert outcomes == ["requested", "cancelled", "refused", "refused"]
    assert db.status(running.task_id) == "RUNNING"
    assert db.task(running.task_id)["cancel_requested_at"] == at(5)
    assert [row.value for row in db.run(cancel_requests("worker-a"))] == [running.task_id]
    assert db.run(cancel_requests("worker-b")) == []


def test_workflow_task_is_left_to_its_workflow(db: Database) -> None:
    claim = db.running(is_workflow_task=True)

    assert ask(db, claim.task_id) == "refused"
    assert db.task(claim.task_id)["cancel_requested_at"] is None


def test_stopped_run_is_cancelled_with_its_attempt(db: Database) -> None:
    claim = db.running()
    ask(db, claim.task_id)
    db.set_now(7)

    (receipt,) = db.run(cancel_running_tasks("worker-a", [end(claim)]))

    row = db.task(claim.task_id)
    (attempt,) = db.attempts(claim.task_id)
    assert receipt.outcome == "cancelled"
    assert (row["status"], row["result"], row["error_code"]) == ("CANCELLED", FAILURE, None)
    assert row["failed_at"] == row["updated_at"] == at(7)
    assert (row["worker_pid"], row["claimed_by_worker_id"]) == (2001, "worker-a")
    assert row["cancel_requested_at"] is None
    assert (attempt["outcome"], attempt["error_code"]) == ("FAILED", "TASK_CANCELLED")
    assert (attempt["will_retry"], attempt["error_message"]) == (False, "stopped on request")


def test_run_that_had_not_begun_is_cancelled_without_an_attempt(db: Database) -> None:
    claim = db.running()
    claim.stop = "cancel"
    unbegun = judge(claim, NotBegun(), random=Random(1))

    (receipt,) = db.run(cancel_running_tasks("worker-a", [unbegun]))

    row = db.task(claim.task_id)
    assert (receipt.outcome, row["status"]) == ("cancelled", "CANCELLED")
    assert "TASK_CANCELLED" in row["result"]
    assert db.attempts(claim.task_id) == []


def test_interrupted_run_is_pending_again_and_counts_no_attempt(db: Database) -> None:
    claim = db.running(retry_count=1)
    db.set_now(7)

    (receipt,) = db.run(interrupt_tasks("worker-a", [end(claim)]))

    row = db.task(claim.task_id)
    cleared = (
        "claimed_at", "claimed_by_worker_id", "claim_expires_at", "started_at", "worker_pid",
        "worker_hostname", "worker_process_name",
    )  # fmt: skip
    assert receipt.outcome == "interrupted"
    assert (row["status"], row["claimed"], row["retry_count"]) == ("PENDING", False, 1)
    assert {name: row[name] for name in cleared} == dict.fromkeys(cleared)
    assert (row["enqueued_at"], row["updated_at"]) == (at(-10), at(7))
    assert db.attempts(claim.task_id) == []


@pytest.mark.parametrize(("change", "owner"), LOST)
@pytest.mark.parametrize("statement", [cancel_running_tasks, interrupt_tasks])
def test_lost_claim_changes_nothing(
    db: Database, change: dict[str, Any], owner: str, statement: Any
) -> None:
    claim = db.running()
    for column, value in change.items():
        db.execute(f"update horsies_tasks set {column} = %s", value)
    before = db.task(claim.task_id)

    (receipt,) = db.run(statement(owner, [end(claim)]))

    assert receipt.outcome == "claim_lost"
    assert db.task(claim.task_id) == before
    assert db.attempts(claim.task_id) == []


def test_log_is_stored_with_the_end_of_its_attempt(db: Database) -> None:
    claim = db.running()
    db.complete(claim)

    (stored,) = db.run(store_logs([end(claim, log='say "hi"\n\\', log_truncated=True)]))

    (row,) = db.execute("select * from horsies_task_logs")
    assert stored.value == 1
    assert (row["task_id"], row["attempt"]) == (claim.task_id, 1)
    assert (row["log"], row["truncated"]) == ('say "hi"\n\\', True)


def test_log_of_an_attempt_that_was_not_recorded_is_dropped(db: Database) -> None:
    claim = db.running()

    (stored,) = db.run(store_logs([end(claim, log="text")]))

    assert stored.value == 0


def test_second_log_of_an_attempt_is_dropped(db: Database) -> None:
    claim = db.running()
    db.complete(claim)
    db.run(store_logs([end(claim, log="first")]))

    db.run(store_logs([end(claim, log="second")]))

    assert db.value("select log from horsies_task_logs") == "first"


def test_freed_places_are_told_once_per_queue(committing: Database) -> None:
    claims = [committing.running(id=name, queue_name="q") for name in "ab"]
    committing.execute("listen task_queue_q")
    committing.execute("listen finished")

    committing.run(notify_capacity([end(claim) for claim in claims]))
    committing.execute("notify finished")

    heard: list[str] = []
    for notification in committing.connection.notifies(timeout=10):
        if notification.channel == "finished":
            break
        heard.append(notification.payload)
    assert heard == ["capacity:a"]
