"""horsies_store_progress: the last report of each task."""

from horsies.executors.base import Progress
from horsies.worker.held_task import HeldTask
from horsies.worker.statements import store_progress
from support.database import NOW, Database


def report(db: Database, task: HeldTask, attempt: int, progress: Progress) -> object:
    task.attempt = attempt
    return db.run(store_progress([(task, progress)]))[0].value


def test_the_latest_report_replaces_the_earlier(db: Database) -> None:
    task = db.running()

    counts = [
        report(db, task, 1, Progress(1, 10, "first")),
        report(db, task, 1, Progress(2, None, None)),
    ]

    (row,) = db.execute("select * from horsies_task_progress")
    assert counts == [1, 1]
    assert row == {
        "task_id": task.task_id, "attempt": 1, "done": 2.0, "total": None, "note": None,
        "updated_at": NOW,
    }  # fmt: skip


def test_a_late_report_of_an_earlier_attempt_changes_nothing(db: Database) -> None:
    task = db.running()
    report(db, task, 2, Progress(1))

    count = report(db, task, 1, Progress(9))

    assert count == 0
    assert db.value("select done from horsies_task_progress") == 1.0


def test_a_task_that_is_gone_is_left_out(db: Database) -> None:
    task = db.running()
    db.execute("delete from horsies_tasks")

    assert report(db, task, 1, Progress(1)) == 0


def test_a_report_goes_with_its_task(db: Database) -> None:
    task = db.running()
    report(db, task, 1, Progress(1))

    db.execute("delete from horsies_tasks")

    assert db.value("select count(*) from horsies_task_progress") == 0
