"""horsies_start_one: one task by its id, whatever waits before it."""

import pytest

from horsies.worker.identity import WorkerIdentity
from horsies.worker.statements import start_one
from support.database import Database, at

ME = WorkerIdentity("worker-a", "host-a", 1000)


def test_starts_the_named_task_and_no_other(db: Database) -> None:
    first, second = db.insert(), db.insert()

    (task,) = db.run(start_one(second, ME))

    assert (task.task_id, task.attempt, task.pid) == (second, 1, 1000)
    assert (db.status(first), db.status(second)) == ("PENDING", "RUNNING")


def test_what_it_started_can_be_completed(db: Database) -> None:
    task_id = db.insert()

    (task,) = db.run(start_one(task_id, ME))
    db.complete(task)

    assert db.status(task_id) == "COMPLETED"


@pytest.mark.parametrize(
    "columns",
    [
        {"status": "COMPLETED"},
        {"enqueued_at": at(3600)},
        {"good_until": at(-1)},
        {"is_held": True},
    ],
    ids=["ended", "not due", "expired", "held"],
)
def test_what_may_not_run_is_not_started(db: Database, columns: dict[str, object]) -> None:
    task_id = db.insert(**columns)

    assert db.run(start_one(task_id, ME)) == []
