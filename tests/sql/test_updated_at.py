"""Every transition dates the row."""

from collections.abc import Callable
from datetime import timedelta

import pytest

from horsies.operations.statements import cancel_tasks, requeue_tasks
from horsies.recovery import statements as recovery
from horsies.recovery.lost_runs import judge_lost
from horsies.worker.identity import WorkerIdentity
from horsies.worker.statements import Beat, beat
from support.database import Database, at, retry_options

SPAN = timedelta(seconds=1)


def beat_once(db: Database) -> object:
    owed = Beat([], [], [db.value("select id from horsies_tasks")])
    return db.run(beat(WorkerIdentity("worker-a", "h", 1), SPAN, SPAN, owed))


def give_up(db: Database) -> object:
    lost = [judge_lost(run, SPAN) for run in db.run(recovery.lost_runs(SPAN))]
    return db.run(recovery.fail_lost_runs(SPAN, lost))


def the_id(db: Database) -> list[str]:
    return [db.value("select id from horsies_tasks")]


TRANSITIONS: dict[str, tuple[str, Callable[[Database], object]]] = {
    "claim": ("PENDING", lambda db: db.claim(0, waiting=1)),
    "claim and start": ("PENDING", lambda db: db.claim(1)),
    "expire": ("PENDING", lambda db: db.run(recovery.expire_tasks())),
    "cancel": ("PENDING", lambda db: db.run(cancel_tasks(the_id(db)))),
    "requeue stale claim": (
        "CLAIMED", lambda db: db.run(recovery.requeue_stale_claims(SPAN, [])),
    ),
    "mark finalizing": ("RUNNING", beat_once),
    "give up": ("RUNNING", give_up),
    "return unheld": ("RUNNING", lambda db: db.run(recovery.return_unheld_tasks("worker-a", []))),
    "requeue": (
        "FAILED", lambda db: db.run(requeue_tasks(the_id(db), include_completed=False)),
    ),
}  # fmt: skip


@pytest.mark.seed("S79", "S109")
@pytest.mark.parametrize("name", TRANSITIONS)
def test_transition_sets_updated_at(db: Database, name: str) -> None:
    status, change = TRANSITIONS[name]
    good_until = at(50) if name == "expire" else None
    match status:
        case "CLAIMED":
            task_id = db.claimed().task_id
        case "RUNNING":
            task_id = db.running(task_options=retry_options()).task_id
        case _:
            task_id = db.insert(status=status, good_until=good_until)
    created_at = db.task(task_id)["created_at"]
    db.set_now(50)

    change(db)

    row = db.task(task_id)
    assert (row["updated_at"], row["created_at"]) == (at(50), created_at)
