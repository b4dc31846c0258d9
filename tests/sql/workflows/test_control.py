"""Pause, resume, cancel (docs/contract/workflows.md §7): tasks, nodes and children follow."""

import json

import pytest

from horsies.recovery.statements import return_unheld_tasks, return_unpermitted_runs
from horsies.worker import statements as worker
from horsies.worker.claim_request import LaneRequest, Mark, PermitRequest
from horsies.worker.held_task import Completion
from horsies.workflows import statements
from support.database import FAILURE, OK, Database, at
from support.workflow_model import ModelNode as N
from support.workflow_rows import Flow, code_of, failure, ok, recover, sub_workflow

C, F, S, P, E, R = "COMPLETED", "FAILED", "SKIPPED", "PENDING", "ENQUEUED", "RUNNING"


def in_status(db: Database, status: str) -> Flow:
    return Flow.by_hand(db, {"status": "READY"}, status=status)


@pytest.mark.parametrize(
    ("status", "pause", "resume", "cancel"),
    [
        ("PENDING", False, False, True),
        ("RUNNING", True, False, True),
        ("PAUSED", False, True, True),
        ("COMPLETED", False, False, False),
        ("FAILED", False, False, False),
        ("CANCELLED", False, False, False),
    ],
)
def test_answers_tell_whether_something_changed(
    db: Database, status: str, pause: bool, resume: bool, cancel: bool
) -> None:
    flows = [in_status(db, status) for _ in range(3)]

    answers = (flows[0].pause(), flows[1].resume(), flows[2].cancel())

    assert answers == (pause, resume, cancel)
    changed = [flow.status != status for flow in flows]
    assert changed == [pause, resume, cancel]


def test_unknown_workflow_has_no_answer(db: Database) -> None:
    nowhere = Flow(db, "nowhere")

    assert (nowhere.pause(), nowhere.resume(), nowhere.cancel()) == (None, None, None)


def test_claimed_tasks_of_a_paused_workflow_go_back(db: Database) -> None:
    flow = Flow.start(db, N(), N())
    held = flow.claims(0, starts=False)

    assert flow.pause() is True

    assert flow.task_states() == ["PENDING", "PENDING"]
    assert db.start(held) == ["claim_lost"]
    assert db.claim(10) == []


def test_paused_workflow_is_not_claimed_from_and_plain_tasks_are(db: Database) -> None:
    flow = Flow.start(db, N(), N())
    plain = db.insert()

    flow.pause()

    assert [task.task_id for task in db.claim(10)] == [plain]


def test_resumed_tasks_are_found_behind_the_marks_of_claims(db: Database) -> None:
    flow = Flow.start(db, N(), N())
    flow.pause()
    db.set_now(100)
    flow.resume()
    db.set_now(101)
    marks = {("default", 100, 1): Mark(at(99), "")}
    rows = db.claim(lanes=[LaneRequest(10, 0)], marks=marks, is_full_scan=False)

    assert {row.task_id for row in rows} == {node["task_id"] for node in flow.nodes}


def test_running_task_ends_in_a_paused_workflow_and_nothing_follows(db: Database) -> None:
    flow = Flow.start(db, N(), N((0,)))

    flow.pause()
    flow.end({0: ok(1)})

    assert (flow.status, flow.states) == ("PAUSED", [C, P])
    assert flow.nodes[0]["result"] == ok(1)
    assert flow.resume() is True
    assert flow.states == [C, E]


def test_paused_workflow_whose_nodes_all_ended_completes_when_resumed(db: Database) -> None:
    flow = Flow.start(db, N())

    flow.pause()
    flow.end({0: True})
    assert flow.status == "PAUSED"
    flow.resume()

    assert flow.status == C


def test_retry_does_not_start_while_paused_and_starts_once_resumed(db: Database) -> None:
    flow = Flow.start(db, N(), rows={0: {"max_retries": 1}})
    held = flow.claims(0)
    flow.pause()

    receipt = db.fail(held, retry_delay_s=0.0, ending="fail")
    assert receipt.outcome == "retried"
    db.set_now(10)
    while_paused = db.claim(5)
    flow.resume()
    db.set_now(11)

    assert while_paused == []
    assert [task.attempt for task in db.claim(5)] == [2]


def test_resume_makes_no_second_task_for_a_node(db: Database) -> None:
    flow = Flow.start(db, N(), N((0,)))
    tasks_before = db.value("select count(*) from horsies_tasks")

    flow.pause()
    flow.resume()

    assert db.value("select count(*) from horsies_tasks") == tasks_before


def test_resume_decides_by_states_where_rows_have_no_counts(db: Database) -> None:
    flow = Flow.by_hand(
        db, {"status": C, "result": ok(1)}, {"dependencies": [0]}, {"dependencies": [1]},
        status="PAUSED",
    )  # fmt: skip

    flow.resume()

    assert flow.states == [C, E, P]


def test_cancel_skips_what_has_not_started_and_cancels_its_tasks(db: Database) -> None:
    flow = Flow.start(db, N(), N(), N(), N((0,)))
    flow.claims(0)
    held = flow.claims(1, starts=False)

    assert flow.cancel() is True

    assert flow.states == [E, S, S, S]
    assert flow.row["open_nodes"] == 1
    assert flow.task_states()[:3] == ["RUNNING", "CANCELLED", "CANCELLED"]
    assert flow.row["completed_at"] is not None
    assert db.start(held) == ["claim_lost"]


@pytest.mark.parametrize("is_ok", [True, False], ids=["completed", "failed"])
def test_running_task_of_a_cancelled_workflow_keeps_its_result(db: Database, is_ok: bool) -> None:
    flow = Flow.start(db, N(), N((0,), allow_failed_deps=True))
    flow.claims(0)
    flow.cancel()
    before = flow.row

    flow.end({0: is_ok})

    assert flow.states == [C if is_ok else F, S]
    assert flow.status == "CANCELLED"
    assert (flow.row["error"], flow.row["completed_at"]) == (None, before["completed_at"])


@pytest.mark.parametrize(("status", "state"), [("COMPLETED", C), ("FAILED", F), ("EXPIRED", F)])
def test_cancel_settles_a_node_whose_task_has_ended_unnoticed(
    db: Database, status: str, state: str
) -> None:
    flow = Flow.start(db, N(), N((0,)))
    result = OK if status == "COMPLETED" else None
    sql = "update horsies_tasks set status = %s, result = %s where id = %s"
    db.execute(sql, status, result, flow.nodes[0]["task_id"])

    flow.cancel()

    assert (flow.status, flow.states) == ("CANCELLED", [state, S])
    assert (flow.nodes[0]["result"] == OK) is (status == "COMPLETED")


def test_cancel_skips_a_node_whose_task_has_vanished(db: Database) -> None:
    flow = Flow.start(db, N(), N((0,)))
    db.execute("delete from horsies_tasks")

    flow.cancel()

    assert (flow.status, flow.states) == ("CANCELLED", [S, S])


@pytest.mark.seed("S63")
def test_cancel_between_retries_skips_the_node_and_cancels_its_task(db: Database) -> None:
    flow = Flow.start(db, N(), rows={0: {"max_retries": 3}})
    held = flow.claims(0)
    db.run(statements.mark_running_nodes([held.task_id]))
    assert flow.states == [R]
    db.fail(held, retry_delay_s=5.0)

    flow.cancel()

    assert (flow.states, flow.task_states()) == ([S], ["CANCELLED"])
    node = flow.nodes[0]
    assert (node["started_at"], node["completed_at"]) == (None, None)


def test_failed_run_of_a_cancelled_workflow_is_not_tried_again(db: Database) -> None:
    flow = Flow.start(db, N(), rows={0: {"max_retries": 3}})
    held = flow.claims(0)
    flow.cancel()

    assert db.fail(held, retry_delay_s=5.0).outcome == "failed"


def test_interrupted_run_of_a_cancelled_workflow_does_not_start_again(db: Database) -> None:
    flow = Flow.start(db, N())
    held = flow.claims(0)
    flow.cancel()

    db.run(statements.lock_workflows_of_tasks([held.task_id]))
    db.run(worker.interrupt_tasks("worker-a", [Completion(held, FAILURE)]))
    db.run(statements.advance_tasks([held.task_id]))

    assert flow.task_states() == ["CANCELLED"]
    assert flow.states == [S]
    assert db.claim(5) == []


def test_unheld_run_of_a_cancelled_workflow_does_not_start_again(db: Database) -> None:
    flow = Flow.start(db, N())
    flow.claims(0)
    flow.cancel()

    db.run(return_unheld_tasks("worker-a", []))

    assert flow.task_states() == ["CANCELLED"]
    assert flow.states == [S]


def test_run_beyond_its_permit_in_a_cancelled_workflow_does_not_start_again(db: Database) -> None:
    flow = Flow.start(db, N(), N())
    permit = PermitRequest("claim", 1, 0, (0,))
    db.claim_pass(lanes=[LaneRequest(2, free_slots=0, ahead_from=1)], permit=permit)
    flow.cancel()

    assert db.run(return_unpermitted_runs("worker-a"))[0].value == 2

    assert flow.task_states() == ["CANCELLED", "CANCELLED"]
    assert flow.states == [S, S]


def test_resume_enqueues_ready_nodes_and_takes_over_what_ended(db: Database) -> None:
    ended = db.insert(status="COMPLETED", result=OK)
    child = {"status": "READY", "is_subworkflow": True, "sub_definition_key": "child.v1"}
    flow = Flow.by_hand(
        db, {"status": "READY"}, {"status": E, "task_id": ended}, child, {"dependencies": [1]},
        status="PAUSED",
    )  # fmt: skip

    flow.resume()

    assert flow.states == [E, C, "READY", E]
    assert flow.task_states() == ["PENDING", "COMPLETED", None, "PENDING"]
    assert len(db.execute("select * from horsies_ready_subworkflows(10)")) == 1


@pytest.mark.parametrize("how", ["interrupted", "unheld"])
def test_run_that_goes_back_in_a_paused_workflow_waits_for_resume(db: Database, how: str) -> None:
    flow = Flow.start(db, N())
    held = flow.claims(0)
    flow.pause()

    if how == "interrupted":
        db.run(worker.interrupt_tasks("worker-a", [Completion(held, FAILURE)]))
    else:
        db.run(return_unheld_tasks("worker-a", []))
    while_paused = db.claim(5)
    flow.resume()
    db.set_now(1)

    assert while_paused == []
    assert len(db.claim(5)) == 1


def tree(db: Database) -> list[Flow]:
    """A workflow, its child and its grandchild, all running."""
    root = Flow.start(db, N(), N((0,), allow_failed_deps=True), rows={0: sub_workflow()})
    child = root.start_child(0, N(), N(), rows={0: sub_workflow()})
    return [root, child, child.start_child(0, N(), N((0,)))]


def test_pause_and_resume_reach_children_at_any_depth(db: Database) -> None:
    flows = tree(db)

    flows[0].pause()
    paused = [flow.status for flow in flows]
    claimed = db.claim(10)
    flows[0].resume()
    db.set_now(1)

    assert paused == ["PAUSED"] * 3
    assert claimed == []
    assert [flow.status for flow in flows] == ["RUNNING"] * 3
    assert len(db.claim(10)) == 2


def test_pause_of_a_child_leaves_its_parent_running(db: Database) -> None:
    root, child, grandchild = tree(db)

    child.pause()

    assert [f.status for f in (root, child, grandchild)] == ["RUNNING", "PAUSED", "PAUSED"]


def test_cancel_ends_children_at_any_depth_and_the_nodes_that_wait_for_them(db: Database) -> None:
    flows = tree(db)
    flows[2].claims(0)

    flows[0].cancel()

    assert [flow.status for flow in flows] == ["CANCELLED"] * 3
    assert flows[0].states == [F, S]
    assert flows[1].states == [F, S]
    assert code_of(flows[0].nodes[0]["error"]) == "SUBWORKFLOW_FAILED"
    assert flows[2].states == [E, S]
    flows[2].end({0: True})
    assert flows[2].states == [C, S]
    assert [flow.status for flow in flows] == ["CANCELLED"] * 3


def test_cancelled_child_fails_its_node_and_the_parent_goes_on(db: Database) -> None:
    root, child, grandchild = tree(db)

    child.cancel()

    assert grandchild.status == "CANCELLED"
    assert (root.status, root.states) == ("RUNNING", [F, E])


def test_summary_of_a_failed_child_says_why(db: Database) -> None:
    parent = Flow.start(db, N(), rows={0: sub_workflow()})
    child = parent.start_child(0, N(), N((0,)), N())

    child.end({0: failure("BAD"), 2: ok(1)})

    summary = json.loads(parent.nodes[0]["sub_workflow_summary"])
    assert summary == {
        "status": "FAILED", "output": None, "total_tasks": 3, "completed_tasks": 1,
        "failed_tasks": 1, "skipped_tasks": 1, "error_summary": "BAD",
    }  # fmt: skip


def test_child_paused_by_its_own_policy_leaves_its_node_running(db: Database) -> None:
    root = Flow.start(db, N(), rows={0: sub_workflow()})
    child = root.start_child(0, N(), N((0,)), on_error="pause")

    child.end({0: False})

    assert (child.status, root.status, root.states) == ("PAUSED", "RUNNING", [R])
    child.resume()
    assert (child.status, root.status, root.states) == (F, F, [F])


def test_waiting_nodes_of_a_cancelled_workflow_are_skipped(db: Database) -> None:
    flow = Flow.start(db, N(), rows={0: {"kind": "sleep", "settings": {"seconds": 5}}})
    assert flow.states == [R]

    flow.cancel()

    assert flow.states == [S]
    assert flow.nodes[0]["started_at"] is None
    db.set_now(10)
    assert db.run(statements.wake_nodes(100))[0].woken == 0


def test_status_changed_by_hand_has_the_same_effect(db: Database) -> None:
    flow = Flow.start(db, N(), N((0,)))

    db.execute("update horsies_workflows set status = 'PAUSED' where id = %s", flow.id)
    while_paused = db.claim(5)
    db.execute("update horsies_workflows set status = 'CANCELLED' where id = %s", flow.id)

    assert while_paused == []
    assert flow.states == [S, S]


@pytest.mark.seed("S98")
def test_only_tasks_of_workflows_are_marked_as_such(db: Database) -> None:
    flow = Flow.start(db, N())
    plain = db.insert()

    assert flow.task(0)["is_workflow_task"] is True
    assert db.task(plain)["is_workflow_task"] is False
    assert sorted(task.is_workflow_task for task in db.claim(2)) == [False, True]


def test_recovery_leaves_paused_and_cancelled_workflows_alone(db: Database) -> None:
    paused = Flow.start(db, N(), N((0,)))
    cancelled = Flow.start(db, N())
    paused.pause()
    paused.end({0: True})
    cancelled.cancel()

    assert recover(db) == 0

    assert (paused.status, paused.states) == ("PAUSED", [C, P])
    assert cancelled.status == "CANCELLED"
