"""Running failed nodes again: what is kept, what is decided anew."""

import json

import pytest

from support.database import Database
from support.workflow_model import ModelNode as N
from support.workflow_rows import Flow, failure, ok, sub_workflow

C, F, S, P, E, R = "COMPLETED", "FAILED", "SKIPPED", "PENDING", "ENQUEUED", "RUNNING"


def retry(db: Database, flow: Flow, from_node: str | None = None) -> str | None:
    answer: str | None = db.value("select horsies_retry_workflow(%s, %s)", flow.id, from_node)
    return answer


def failed(db: Database) -> Flow:
    flow = Flow.start(db, N(), N((0,)), N((1,)), N())
    flow.end({0: ok(1), 3: ok(3)})
    flow.end({1: failure("BAD")})
    assert flow.status == F
    return flow


def test_failed_and_skipped_nodes_run_again_and_results_are_kept(db: Database) -> None:
    flow = failed(db)

    assert retry(db, flow) == "retried"

    assert (flow.status, flow.states) == ("RUNNING", [C, E, P, C])
    assert (flow.row["error"], flow.row["completed_at"]) == (None, None)
    assert flow.nodes[0]["result"] == ok(1)
    flow.end({1: True})
    flow.end({2: True})
    assert flow.status == C


def test_attempt_numbers_go_on_and_the_retry_budget_is_whole_again(db: Database) -> None:
    flow = Flow.start(db, N(), rows={0: {"max_retries": 1}})
    held = flow.claims(0)
    db.fail(held, retry_delay_s=0.0)
    db.set_now(1)
    held = flow.claims(0)
    db.fail(held)
    db.value("select horsies_advance_tasks(%s)", [held.task_id])
    assert flow.status == F

    retry(db, flow)
    db.set_now(2)
    again = flow.claims(0)

    assert again.attempt == 3
    assert db.fail(again, retry_delay_s=0.0).outcome == "retried"


@pytest.mark.parametrize("status", ["RUNNING", "PAUSED", "CANCELLED", "COMPLETED"])
def test_only_a_failed_workflow_is_retried(db: Database, status: str) -> None:
    flow = Flow.by_hand(db, {"status": "COMPLETED"}, status=status)

    assert retry(db, flow) == "refused"
    assert flow.status == status


def test_unknown_workflow_and_node_are_told(db: Database) -> None:
    assert retry(db, Flow(db, "nowhere")) is None
    assert retry(db, failed(db), "nowhere") == "no_node"


def test_from_node_runs_it_and_all_behind_it_again(db: Database) -> None:
    flow = Flow.start(db, N(), N((0,)), N((1,)), N())
    flow.end({0: ok(1), 3: ok(3)})
    flow.end({1: ok(2)})
    flow.end({2: ok(2)})
    assert flow.status == C

    assert retry(db, flow, "n1") == "retried"

    assert flow.states == [C, E, P, C]


def test_failed_child_is_retried_in_its_turn(db: Database) -> None:
    root = Flow.start(db, N(), N((0,)), rows={0: sub_workflow()})
    child = root.start_child(0, N(), N((0,)))
    child.end({0: ok(1)})
    child.end({1: False})
    assert (root.status, root.states) == (F, [F, S])

    assert retry(db, root) == "retried"

    assert (root.states, child.states) == ([R, P], [C, E])
    child.end({1: ok(9)})
    assert (child.status, root.states) == (C, [C, E])


def test_from_node_makes_children_anew(db: Database) -> None:
    root = Flow.start(db, N(), output=0, rows={0: sub_workflow()})
    root.start_child(0, N()).end({0: ok(1)})
    assert root.status == C

    assert retry(db, root, "n0") == "retried"
    assert root.states == ["READY"]
    root.start_child(0, N(), output=0).end({0: ok(2)})

    assert json.loads(root.row["result"])["ok"] == 2


def test_cancelled_child_is_made_anew(db: Database) -> None:
    root = Flow.start(db, N(), output=0, rows={0: sub_workflow()})
    child = root.start_child(0, N())
    db.value("select horsies_cancel_workflow(%s)", child.id)
    assert (root.status, root.states) == (F, [F])

    assert retry(db, root) == "retried"

    assert root.states == ["READY"]
    root.start_child(0, N(), output=0).end({0: ok(2)})
    assert root.status == C


def test_child_alone_is_not_retried(db: Database) -> None:
    root = Flow.start(db, N(), rows={0: sub_workflow()})
    child = root.start_child(0, N())
    child.end({0: False})

    assert retry(db, child) == "refused"


def test_failure_after_a_retry_is_the_error_again(db: Database) -> None:
    flow = failed(db)
    retry(db, flow)

    flow.end({1: failure("WORSE")})

    assert flow.status == F
    assert "WORSE" in flow.row["error"]


def test_run_left_by_a_cancelled_fan_out_is_not_started_beside_itself(db: Database) -> None:
    settings = {"each_index": 0, "each_as": "value", "max_in_flight": 2}
    flow = Flow.start(db, N(), N((0,)), rows={1: {"kind": "each", "settings": settings}})
    flow.end({0: ok([1, 2])})
    child = Flow(db, flow.nodes[1]["id"])
    held = child.claims(0)
    child.cancel()
    assert flow.status == F

    refused = retry(db, flow)
    still = db.status(held.task_id)
    db.complete(held)
    db.value("select horsies_advance_tasks(%s)", [held.task_id])

    assert (refused, still) == ("refused", "RUNNING")
    assert retry(db, flow) == "retried"
    assert child.states == [E, E]
