"""How many there are of each state, and what happens to workflows and tasks that are steered."""

from datetime import UTC, datetime, timedelta

import pytest

from horsies import Horsies
from horsies.operations.control import Note
from horsies.states import TaskStatus
from horsies.workflows.statements import start_workflows
from support.apps import bad, good
from support.database import Database
from support.scenes import snapshot
from support.workflow_model import ModelNode
from support.workflow_rows import stored

ANN = Note("ann", "by hand")


def ago(**duration: float) -> datetime:
    return datetime.now(UTC) - timedelta(**duration)


def start(db: Database) -> str:
    """A stored workflow of two nodes, one after the other."""
    rows = stored([ModelNode(), ModelNode(dependencies=(0,))])
    db.run(start_workflows([rows]))
    return rows.workflow.id


def test_totals_count_every_state(app: Horsies, db: Database) -> None:
    for status in TaskStatus:
        is_held = status in (TaskStatus.CLAIMED, TaskStatus.RUNNING)
        columns = {"claimed_at": ago(hours=1)} if is_held else {}
        db.insert(status=status.value, **columns)
    db.insert(
        status="CLAIMED", claimed=True, claimed_at=ago(hours=1), claim_expires_at=ago(minutes=1)
    )
    start(db)

    totals = good(app.operations.totals())

    # The first node of the workflow waits as well.
    expected = dict.fromkeys((status.value for status in TaskStatus), "1")
    assert {name: str(count) for name, count in totals.tasks.items()} == {
        **expected,
        "PENDING": "2",
        "CLAIMED": "2",
    }
    assert {name for name, count in totals.workflows.items() if count.number} == {"RUNNING"}
    assert totals.stale_claims.number == 1


def test_tasks_are_counted_by_worker_and_state(app: Horsies, db: Database) -> None:
    db.insert(status="RUNNING", claimed_at=ago(hours=1), claimed_by_worker_id="a")
    for _ in range(2):
        db.insert(status="COMPLETED", completed_at=ago(hours=1), claimed_by_worker_id="a")
    db.insert(status="EXPIRED", failed_at=ago(hours=1))

    totals = good(app.operations.worker_totals())

    assert set(totals) == {("a", "RUNNING", 1), ("a", "COMPLETED", 2), (None, "EXPIRED", 1)}


def test_snapshots_are_counted_by_age(app: Horsies, db: Database) -> None:
    for hours in (0, 0.5, 2, 200):
        snapshot(db, snapshot_at=ago(hours=hours))

    ages = good(app.operations.snapshot_ages())

    assert [age.count.number for age in ages] == [2, 1, 0, 0, 0, 1]
    assert (ages[0].under, ages[-1].under) == (timedelta(hours=1), None)


def test_a_workflow_is_paused_resumed_and_cancelled_with_a_note(app: Horsies, db: Database) -> None:
    workflow_id = start(db)
    steer = app.operations

    assert good(steer.pause_workflow(workflow_id, note=ANN)) is True
    assert good(steer.pause_workflow(workflow_id, note=ANN)) is False
    assert good(steer.resume_workflow(workflow_id, note=ANN)) is True
    assert good(steer.cancel_workflow(workflow_id, note=ANN)) is True
    assert good(steer.retry_workflow(workflow_id, note=ANN)) is False

    assert good(steer.workflow(workflow_id)).workflow.status == "CANCELLED"
    told = [(entry.action, entry.done_by, entry.target) for entry in good(steer.audit())]
    actions = ("retry", "cancel", "resume", "pause", "pause")
    assert told == [(action, "ann", f"workflow {workflow_id}") for action in actions]


async def test_a_workflow_that_is_not_there_is_refused(app: Horsies) -> None:
    assert good(await app.operations.workflow_async("none")) is None
    error = bad(await app.operations.pause_workflow_async("none"))

    assert error.message == "there is no workflow none"


def test_an_ended_task_runs_again_as_a_new_one(app: Horsies, db: Database) -> None:
    ended = db.insert(status="FAILED", failed_at=ago(hours=1))

    new_id = good(app.operations.rerun(ended, note=ANN))

    assert db.task(new_id)["rerun_of"] == ended
    (entry,) = good(app.operations.audit())
    assert (entry.action, entry.details) == ("rerun", {"new_task": new_id})


@pytest.mark.parametrize("status", ["PENDING", "RUNNING"])
def test_a_task_that_has_not_ended_is_not_run_again(
    app: Horsies, db: Database, status: str
) -> None:
    waiting = db.insert(status=status, claimed_at=ago(hours=1))

    assert "there is no ended task" in bad(app.operations.rerun(waiting)).message
