"""Queues that operators pause and limit: what claims make of it, and what stays as it was."""

import pytest

from horsies.worker.claim_request import LaneRequest, Mark, ScanPosition
from horsies.worker.statements import next_due
from support.database import Database, at


def pause(db: Database, queue: str) -> bool:
    return bool(db.value("select horsies_pause_queue(%s, 'ann', 'why')", queue))


def resume(db: Database, queue: str) -> bool:
    return bool(db.value("select horsies_resume_queue(%s, 'ann', null)", queue))


def limit(db: Database, queue: str, number: int | None) -> None:
    db.execute("select horsies_limit_queue(%s, %s, 'ann', null)", queue, number)


def test_nothing_of_a_paused_queue_is_claimed(db: Database) -> None:
    paused, other = db.insert(queue_name="mail"), db.insert(queue_name="web")
    pause(db, "mail")

    claimed = db.claim(5, queues={"mail": None, "web": None})

    assert [task.task_id for task in claimed] == [other]
    assert db.status(paused) == "PENDING"


def test_a_resumed_queue_goes_on_where_it_was(db: Database) -> None:
    first = db.insert(queue_name="mail", enqueued_at=at(-9))
    (taken,) = db.claim(1, queues={"mail": None})
    pause(db, "mail")
    second = db.insert(queue_name="mail", enqueued_at=at(-5))
    marks = {("mail", 100, 1): Mark(at(-9).isoformat(), first)}

    while_paused = db.claim_pass(
        lanes=[LaneRequest(1, 0)], queues={"mail": None}, marks=marks, is_full_scan=False
    )
    resume(db, "mail")
    after = db.claim(1, queues={"mail": None}, marks=marks, is_full_scan=False)

    assert taken.task_id == first
    assert [row for row in while_paused if isinstance(row, ScanPosition)] == []
    assert [task.task_id for task in after] == [second]


def test_only_a_change_is_told_and_recorded(db: Database) -> None:
    answers = [pause(db, "mail"), pause(db, "mail"), resume(db, "mail"), resume(db, "mail")]

    assert answers == [True, False, True, False]
    assert db.value("select count(*) from horsies_queue_controls") == 0
    assert db.execute("select done_by, action, target, reason from horsies_audit order by id") == [
        {"done_by": "ann", "action": "pause", "target": "queue mail", "reason": "why"},
        {"done_by": "ann", "action": "resume", "target": "queue mail", "reason": None},
    ]


@pytest.mark.parametrize("configured", [None, 4], ids=["no cap in the code", "a cap in the code"])
def test_a_limit_set_at_run_time_counts(db: Database, configured: int | None) -> None:
    for _ in range(5):
        db.insert(queue_name="mail")
    limit(db, "mail", 2)

    first = db.claim(5, queues={"mail": configured})
    second = db.claim(5, queues={"mail": configured})
    limit(db, "mail", None)
    third = db.claim(5, queues={"mail": configured})

    assert (len(first), len(second), len(third)) == (2, 0, 3 if configured is None else 2)


def test_a_limit_outlives_a_pause(db: Database) -> None:
    db.insert(queue_name="mail")
    db.insert(queue_name="mail")
    limit(db, "mail", 1)
    pause(db, "mail")
    resume(db, "mail")

    assert len(db.claim(5, queues={"mail": None})) == 1


def test_a_worker_does_not_wake_for_a_paused_queue(db: Database) -> None:
    db.insert(queue_name="mail", enqueued_at=at(30))

    before = db.run(next_due(["mail"]))[0].value
    pause(db, "mail")

    assert before == 30
    assert db.run(next_due(["mail"]))[0].value is None
