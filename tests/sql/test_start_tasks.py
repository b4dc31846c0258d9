"""horsies_start_tasks: CLAIMED -> RUNNING or EXPIRED."""

from typing import Any

import pytest

from support.database import Database, at


@pytest.mark.seed("S17", "S46", "S65", "S101", "S104")
def test_start_sets_time_and_the_executing_process(db: Database) -> None:
    claim = db.claimed()
    db.set_now(5)

    outcomes = db.start(claim, pid=4321)

    row = db.task(claim.task_id)
    assert outcomes == ["started"]
    assert row["status"] == "RUNNING"
    assert row["started_at"] == row["updated_at"] == at(5)
    assert (row["claimed"], row["claim_expires_at"]) == (False, None)
    assert (row["claimed_at"], row["claimed_by_worker_id"]) == (at(0), "worker-a")
    assert (row["worker_pid"], row["worker_hostname"]) == (4321, "host-a")
    assert row["worker_process_name"] == "worker-4321"


@pytest.mark.seed("S7", "S34", "S35", "S36", "S37", "S38", "S54", "S55")
def test_overdue_claim_expires_and_keeps_its_claim_columns(db: Database) -> None:
    claim = db.claimed(good_until=at(5))
    db.set_now(5)

    outcomes = db.start(claim)

    row = db.task(claim.task_id)
    error = db.error_of(claim.task_id)
    assert outcomes == ["expired"]
    assert (row["status"], row["error_code"]) == ("EXPIRED", "TASK_EXPIRED")
    assert (row["failed_at"], row["started_at"]) == (at(5), None)
    assert (row["claimed"], row["claim_expires_at"]) == (False, None)
    assert (row["claimed_at"], row["claimed_by_worker_id"]) == (at(0), "worker-a")
    assert error["error_code"] == {"__builtin_task_code__": "TASK_EXPIRED"}
    assert error["data"] == {"task_id": claim.task_id, "worker_id": "worker-a"}
    assert db.attempts(claim.task_id) == []


@pytest.mark.seed("S15", "S123")
@pytest.mark.parametrize(
    ("change", "owner"),
    [
        pytest.param({}, "worker-b", id="another owner"),
        pytest.param({"claimed_at": at(1)}, "worker-a", id="claimed again later"),
        pytest.param({"retry_count": 1}, "worker-a", id="another attempt"),
        pytest.param({"status": "PENDING"}, "worker-a", id="given back"),
        pytest.param({"status": "CANCELLED"}, "worker-a", id="cancelled"),
        pytest.param({"status": "RUNNING"}, "worker-a", id="already started"),
        pytest.param({"claim_expires_at": at(0)}, "worker-a", id="lease passed"),
    ],
)
def test_lost_claim_changes_nothing(db: Database, change: dict[str, Any], owner: str) -> None:
    claim = db.claimed()
    for column, value in change.items():
        db.execute(f"update horsies_tasks set {column} = %s", value)
    before = db.task(claim.task_id)

    outcomes = db.start(claim, owner=owner)

    assert outcomes == ["claim_lost"]
    assert db.task(claim.task_id) == before
    assert db.attempts(claim.task_id) == []


def test_deleted_task_is_a_lost_claim(db: Database) -> None:
    claim = db.claimed()
    db.execute("delete from horsies_tasks")

    assert db.start(claim) == ["claim_lost"]


@pytest.mark.seed("S39")
@pytest.mark.parametrize("workflow_status", ["PAUSED", "CANCELLED"])
@pytest.mark.parametrize("is_overdue", [True, False])
def test_expiry_explains_before_a_stopped_workflow(
    db: Database, workflow_status: str, is_overdue: bool
) -> None:
    claim = db.claimed(is_workflow_task=True, good_until=at(5) if is_overdue else None)
    db.execute(
        "insert into horsies_workflows (id, name, status) values ('w', 'w', %s)", workflow_status
    )
    db.execute(
        "insert into horsies_workflow_tasks (id, workflow_id, task_index, task_name, task_id) "
        "values ('n', 'w', 0, 'job', %s)",
        claim.task_id,
    )
    db.set_now(5)

    outcomes = db.start(claim)

    assert outcomes == ["expired" if is_overdue else workflow_status.lower()]


def test_receipts_come_in_input_order(db: Database) -> None:
    first, second = db.claimed(id="b"), db.claimed(id="a")
    db.execute("update horsies_tasks set status = 'CANCELLED' where id = 'b'")

    assert db.start(first, second) == ["claim_lost", "started"]
