"""horsies_return_tasks and horsies_return_unheld_tasks: claims given back unstarted."""

from typing import Any

import psycopg
import pytest

from horsies.recovery.statements import return_unheld_tasks
from support.database import Database, at

CLAIM_COLUMNS = ("claimed_at", "claimed_by_worker_id", "claim_expires_at")
RUN_COLUMNS = ("started_at", "worker_pid", "worker_hostname", "worker_process_name")


@pytest.mark.seed("S42")
def test_returned_claim_is_pending_again(db: Database) -> None:
    claim = db.claimed()
    db.set_now(5)

    outcomes = db.give_back(claim)

    row = db.task(claim.task_id)
    assert outcomes == ["returned"]
    assert (row["status"], row["claimed"], row["retry_count"]) == ("PENDING", False, 0)
    assert {name: row[name] for name in CLAIM_COLUMNS} == dict.fromkeys(CLAIM_COLUMNS)
    assert (row["updated_at"], row["enqueued_at"]) == (at(5), at(-10))
    assert db.attempts(claim.task_id) == []


@pytest.mark.parametrize(
    ("change", "owner"),
    [
        pytest.param({}, "worker-b", id="another owner"),
        pytest.param({"claimed_at": at(1)}, "worker-a", id="claimed again later"),
        pytest.param({"status": "RUNNING"}, "worker-a", id="already started"),
        pytest.param({"status": "CANCELLED"}, "worker-a", id="cancelled"),
    ],
)
def test_lost_claim_changes_nothing(db: Database, change: dict[str, Any], owner: str) -> None:
    claim = db.claimed()
    for column, value in change.items():
        db.execute(f"update horsies_tasks set {column} = %s", value)
    before = db.task(claim.task_id)

    assert db.give_back(claim, owner=owner) == ["claim_lost"]
    assert db.task(claim.task_id) == before


def test_rows_of_a_lost_answer_go_back_without_an_attempt(db: Database) -> None:
    held, waiting, started = db.running(), db.claimed(), db.running()

    (answer,) = db.run(return_unheld_tasks("worker-a", [held.task_id]))

    assert answer == (2, 0)
    assert db.status(held.task_id) == "RUNNING"
    for claim in (waiting, started):
        row = db.task(claim.task_id)
        columns = CLAIM_COLUMNS + RUN_COLUMNS
        assert (row["status"], row["claimed"], row["retry_count"]) == ("PENDING", False, 0)
        assert {name: row[name] for name in columns} == dict.fromkeys(columns)
        assert db.attempts(claim.task_id) == []


def test_unheld_rows_of_other_workers_are_left_alone(db: Database) -> None:
    claim = db.running()

    (answer,) = db.run(return_unheld_tasks("worker-b", []))

    assert answer == (0, 0)
    assert db.status(claim.task_id) == "RUNNING"


def test_unheld_row_that_another_session_has_locked_is_left_for_later(
    committing: Database, database_url: str
) -> None:
    for task_id in ("a", "b"):
        committing.running(id=task_id)

    with psycopg.connect(database_url) as other:
        other.execute("select from horsies_tasks where id = 'a' for update")
        first = committing.run(return_unheld_tasks("worker-a", []))
    second = committing.run(return_unheld_tasks("worker-a", []))

    assert (first, second) == ([(1, 1)], [(1, 0)])
    assert committing.statuses() == {"PENDING": 2}
