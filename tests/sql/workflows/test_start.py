"""Starting workflows (docs/contract/workflows.md §8): one transaction, one receipt each."""

import threading

import pytest

from horsies.workflows import statements
from support.database import Database, connect
from support.workflow_model import ModelNode as N
from support.workflow_rows import Flow, stored, sub_workflow


def test_start_stores_all_rows_and_enqueues_the_roots(db: Database) -> None:
    flow = Flow.start(db, N(), N((0,)), N(), name="import", on_error="pause", output=1)

    row = flow.row
    assert (row["name"], row["status"], row["on_error"]) == ("import", "RUNNING", "pause")
    assert (row["output_task_index"], row["depth"], row["parent_workflow_id"]) == (1, 0, None)
    assert row["started_at"] is not None
    assert flow.states == ["ENQUEUED", "PENDING", "ENQUEUED"]
    assert [node["task_index"] for node in flow.nodes] == [0, 1, 2]
    assert flow.task_states() == ["PENDING", None, "PENDING"]


def test_task_carries_what_its_node_says(db: Database) -> None:
    node = {"queue_name": "fast", "priority": 3, "max_retries": 2, "task_options": "{}"}
    flow = Flow.start(db, N(), rows={0: node})

    task = flow.task(0)

    assert {key: task[key] for key in node} == node
    assert task["is_workflow_task"] is True


@pytest.mark.parametrize(
    ("name", "outcome"), [("flow", "exists"), ("other", "mismatch")], ids=["same", "other"]
)
def test_second_start_of_an_id_changes_nothing(db: Database, name: str, outcome: str) -> None:
    flow = Flow.start(db, N())
    again = stored([N(), N()], id=flow.id, name=name)

    (receipt,) = db.run(statements.start_workflows([again]))

    assert receipt.outcome == outcome
    assert len(flow.nodes) == 1
    assert db.statuses() == {"PENDING": 1}


def test_receipts_come_in_the_order_of_the_starts(db: Database) -> None:
    flow = Flow.start(db, N())
    starts = [stored([N()]), stored([N()], id=flow.id), stored([N()])]

    receipts = db.run(statements.start_workflows(starts))

    assert [r.task_id for r in receipts] == [rows.workflow.id for rows in starts]
    assert [r.outcome for r in receipts] == ["created", "exists", "created"]


@pytest.mark.parametrize("end", ["commit", "rollback"])
def test_two_starts_of_one_id_at_once_store_one(
    committing: Database, database_url: str, end: str
) -> None:
    other = connect(database_url)
    other.connection.autocommit = False
    first, second = stored([N()], id="one"), stored([N()], id="one")
    other.run(statements.start_workflows([first]))
    outcomes: list[str] = []
    pid = committing.connection.info.backend_pid
    starting = threading.Thread(
        target=lambda: outcomes.extend(
            r.outcome for r in committing.run(statements.start_workflows([second]))
        )
    )

    starting.start()
    other.wait_until_blocked(pid)
    getattr(other.connection, end)()
    starting.join(10)

    other.connection.close()
    assert outcomes == (["exists"] if end == "commit" else ["created"])
    assert len(Flow(committing, "one").nodes) == 1
    assert committing.statuses() == {"PENDING": 1}


def test_child_knows_its_parent_root_and_depth(db: Database) -> None:
    root = Flow.start(db, N(), rows={0: sub_workflow()})
    child = root.start_child(0, N(), rows={0: sub_workflow()})
    grandchild = child.start_child(0, N())

    rows = [child.row, grandchild.row]

    assert [row["parent_workflow_id"] for row in rows] == [root.id, child.id]
    assert [row["root_workflow_id"] for row in rows] == [root.id, root.id]
    assert [row["depth"] for row in rows] == [1, 2]
    assert (root.states, child.states) == (["RUNNING"], ["RUNNING"])


@pytest.mark.parametrize("stop", ["pause", "cancel"])
def test_child_of_a_stopped_parent_is_refused(db: Database, stop: str) -> None:
    root = Flow.start(db, N(), rows={0: sub_workflow()})
    getattr(root, stop)()
    node_id = root.nodes[0]["id"]

    rows = stored([N()], id=node_id, parent_node_id=node_id)
    (receipt,) = db.run(statements.start_workflows([rows]))

    assert receipt.outcome == "refused"
    assert db.value("select count(*) from horsies_workflows") == 1
