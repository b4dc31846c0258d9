"""What of ended workflows leaves with time, and what stays (schema.md, retention)."""

from datetime import timedelta

import pytest

from horsies.recovery import statements as recovery
from horsies.workflows import statements
from support.database import Database
from support.workflow_model import ModelNode as N
from support.workflow_rows import Flow, sub_workflow

HOUR = 3600.0


def prune(db: Database, what: str) -> int:
    return int(db.run(recovery.prune(what, timedelta(hours=1)))[0].value)


def prune_completed_tasks(db: Database) -> int:
    return int(db.run(recovery.prune_tasks("COMPLETED", timedelta(hours=1)))[0].value)


def test_ended_workflow_leaves_with_its_nodes_and_children(db: Database) -> None:
    root = Flow.start(db, N(), rows={0: sub_workflow()})
    root.start_child(0, N()).end({0: True})
    young = Flow.start(db, N())
    db.set_now(1.5 * HOUR)
    young.end({0: True})
    db.set_now(2 * HOUR)

    count = prune(db, "workflows")

    assert count == 4  # two workflows with a node each
    assert db.value("select string_agg(id, ',') from horsies_workflows") == young.id
    assert db.value("select count(*) from horsies_workflow_tasks") == 1


@pytest.mark.parametrize("status", ["RUNNING", "PAUSED"])
def test_live_workflow_stays_with_its_ended_children_and_tasks(db: Database, status: str) -> None:
    root = Flow.start(db, N(), N(), rows={0: sub_workflow()})
    root.start_child(0, N()).end({0: True})
    task = Flow.start(db, N(), N())
    task.end({0: True})
    if status == "PAUSED":
        root.pause()
        task.pause()
    db.set_now(2 * HOUR)

    assert prune(db, "workflows") == 0
    prune_completed_tasks(db)

    assert db.value("select count(*) from horsies_workflows") == 3
    assert task.task(0)["status"] == "COMPLETED"


def test_tasks_of_an_ended_workflow_leave_by_age(db: Database) -> None:
    flow = Flow.start(db, N())
    flow.end({0: True})
    db.execute("update horsies_tasks set completed_at = horsies_now()")
    db.set_now(2 * HOUR)

    assert prune_completed_tasks(db) == 1


def test_events_leave_by_age_unless_a_node_waits_for_them(db: Database) -> None:
    waiting = {"kind": "event", "settings": {"event": "paid", "key": "awaited", "seconds": None}}
    flow = Flow.start(db, N(), rows={0: waiting})
    flow.pause()
    for key in ("awaited", "old", "young"):
        db.run(statements.store_event("paid", key, "1"))
    db.execute("update horsies_events set sent_at = horsies_now()")
    db.execute(
        "update horsies_events set sent_at = horsies_now() + interval '90 min' where key = 'young'"
    )
    db.set_now(2 * HOUR)

    count = prune(db, "events")

    assert count == 1
    left = db.execute("select key from horsies_events order by key")
    assert [row["key"] for row in left] == ["awaited", "young"]


def test_large_workflow_leaves_in_bounded_pieces(db: Database) -> None:
    root = Flow.start(db, N(), rows={0: sub_workflow()})
    child = root.start_child(0, *(N() for _ in range(2_500)))
    for flow in (child, root):
        db.execute(
            "update horsies_workflows set status = 'COMPLETED', completed_at = horsies_now() "
            "where id = %s",
            flow.id,
        )
    db.set_now(2 * HOUR)

    counts = [prune(db, "workflows") for _ in range(4)]

    assert counts == [1_000, 1_000, 503, 0]
    assert db.value("select count(*) from horsies_workflows") == 0


def test_deep_tree_leaves_from_its_leaves(db: Database) -> None:
    flow = Flow.start(db, N(), rows={0: sub_workflow()})
    for _ in range(20):
        flow = flow.start_child(0, N(), rows={0: sub_workflow()})
    db.execute("update horsies_workflows set status = 'COMPLETED', completed_at = horsies_now()")
    db.set_now(2 * HOUR)

    assert prune(db, "workflows") == 42
    assert db.value("select count(*) from horsies_workflows") == 0
