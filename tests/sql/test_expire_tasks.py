"""horsies_expire_tasks: PENDING -> EXPIRED at the deadline."""

import psycopg
import pytest

from horsies.recovery.statements import expire_tasks
from support.database import Database, at


def expire(db: Database) -> int:
    return len(db.run(expire_tasks()))


@pytest.mark.seed("S7", "S30", "S31", "S32", "S53", "S55")
def test_overdue_task_expires_without_an_attempt(db: Database) -> None:
    task_id = db.insert(good_until=at(5))
    db.set_now(5)

    count = expire(db)

    row = db.task(task_id)
    assert count == 1
    assert (row["status"], row["error_code"]) == ("EXPIRED", "TASK_EXPIRED")
    assert row["failed_at"] == row["updated_at"] == at(5)
    assert db.error_of(task_id)["error_code"] == {"__builtin_task_code__": "TASK_EXPIRED"}
    assert db.attempts(task_id) == []


@pytest.mark.parametrize("good_until", [None, at(0.001)])
def test_task_in_time_stays(db: Database, good_until: object) -> None:
    task_id = db.insert(good_until=good_until)

    assert expire(db) == 0
    assert db.status(task_id) == "PENDING"


@pytest.mark.parametrize("status", ["CLAIMED", "RUNNING", "COMPLETED", "FAILED", "CANCELLED"])
def test_only_pending_tasks_expire(db: Database, status: str) -> None:
    task_id = db.insert(status=status, good_until=at(-5))

    assert expire(db) == 0
    assert db.status(task_id) == status


def test_rows_locked_by_others_are_skipped(committing: Database, database_url: str) -> None:
    committing.insert(id="a", good_until=at(-1))
    committing.insert(id="b", good_until=at(-1))

    with psycopg.connect(database_url) as other:
        other.execute("select from horsies_tasks where id = 'a' for update")
        count = expire(committing)

    assert count == 1
    assert (committing.status("a"), committing.status("b")) == ("PENDING", "EXPIRED")
