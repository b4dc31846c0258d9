"""horsies_next_due: how long an idle worker may sleep."""

import pytest

from horsies.worker.statements import next_due
from support.database import Database, at


def seconds(db: Database, *queues: str) -> float | None:
    value: float | None = db.run(next_due(queues or ("default",)))[0].value
    return value


def test_nothing_waits(db: Database) -> None:
    assert seconds(db) is None


def test_earliest_row_of_any_priority_counts(db: Database) -> None:
    db.insert(priority=1, enqueued_at=at(30))
    db.insert(priority=50, enqueued_at=at(12.5))
    db.insert(priority=99, enqueued_at=at(20))

    assert seconds(db) == pytest.approx(12.5)


def test_row_that_has_just_become_due_is_due_now(db: Database) -> None:
    db.insert(enqueued_at=at(-1))
    db.insert(enqueued_at=at(7))

    assert seconds(db) == 0


def test_rows_long_due_do_not_count(db: Database) -> None:
    db.insert(enqueued_at=at(-6))
    db.insert(enqueued_at=at(7))

    assert seconds(db) == pytest.approx(7)


def test_only_served_queues_count(db: Database) -> None:
    db.insert(queue_name="a", enqueued_at=at(30))
    db.insert(queue_name="b", enqueued_at=at(10))
    db.insert(queue_name="c", enqueued_at=at(5))

    assert seconds(db, "a", "b") == pytest.approx(10)


def test_only_pending_rows_count(db: Database) -> None:
    db.insert(status="CANCELLED", enqueued_at=at(5))

    assert seconds(db) is None
