"""Recovery (docs/contract/workflows.md §10): every repair, also of rows written by hand."""

import uuid
from typing import Any

import pytest
from psycopg.types.json import Jsonb

from horsies.workflows import statements
from support.database import OK, Database
from support.workflow_model import ModelNode as N
from support.workflow_rows import Flow, code_of, failure, ok, recover, stored, sub_workflow

C, F, S, P, E, R = "COMPLETED", "FAILED", "SKIPPED", "PENDING", "ENQUEUED", "RUNNING"
DONE = {"status": C, "result": ok(1)}
BROKEN = {"status": F, "result": failure("BAD"), "error": failure("BAD")}


def everything(db: Database) -> list[dict[str, Any]]:
    """All that recovery may touch."""
    rows = db.execute("select * from horsies_workflows order by id")
    rows += db.execute("select * from horsies_workflow_tasks order by id")
    return rows + db.execute("select * from horsies_tasks order by id")


def recovered(db: Database) -> int:
    """One pass; a second one changes nothing."""
    count = recover(db)
    before = everything(db)
    db.set_now(1000)
    assert recover(db) == 0
    assert everything(db) == before
    return count


WAITING = [
    ("all-ok", [DONE, DONE], {}, E),
    ("all-failed", [DONE, BROKEN], {}, S),
    ("all-allow", [DONE, BROKEN], {"allow_failed_deps": True}, E),
    ("all-skipped", [DONE, {"status": S}], {}, S),
    ("any-one", [BROKEN, DONE], {"join_type": "any"}, E),
    ("any-none", [BROKEN, BROKEN], {"join_type": "any"}, S),
    ("quorum", [DONE, DONE], {"join_type": "quorum", "min_success": 2}, E),
    ("quorum-missed", [DONE, BROKEN], {"join_type": "quorum", "min_success": 2}, S),
]


@pytest.mark.parametrize(
    ("dependencies", "node", "expected"),
    [row[1:] for row in WAITING],
    ids=[row[0] for row in WAITING],
)
def test_waiting_node_whose_dependencies_have_ended_is_decided(
    db: Database, dependencies: list[dict[str, Any]], node: dict[str, Any], expected: str
) -> None:
    flow = Flow.by_hand(db, *dependencies, {"dependencies": [0, 1], **node})

    assert recovered(db) == 1

    assert flow.states[2] == expected
    assert flow.task_states()[2] == ("PENDING" if expected == E else None)


def test_waiting_node_without_counts_waits_for_its_dependencies(db: Database) -> None:
    task_id = db.insert()
    flow = Flow.by_hand(
        db, {"status": E, "task_id": task_id}, {"dependencies": [0]}, {"dependencies": [1]}
    )

    recovered(db)

    assert flow.states == [E, P, P]


def test_ready_node_without_task_is_enqueued(db: Database) -> None:
    flow = Flow.by_hand(db, {"status": "READY", "task_kwargs": '{"a":1}', "queue_name": "fast"})

    assert recovered(db) == 1

    assert flow.states == [E]
    assert (flow.task(0)["queue_name"], '"a":1' in flow.task(0)["kwargs"]) == ("fast", True)
    assert flow.task(0)["is_workflow_task"]


def test_ready_node_with_a_waiting_task_gets_no_second_one(db: Database) -> None:
    task_id = db.insert()
    flow = Flow.by_hand(db, {"status": "READY", "task_id": task_id})

    recovered(db)

    assert db.value("select count(*) from horsies_tasks") == 1
    assert flow.nodes[0]["task_id"] == task_id


def test_ready_child_node_is_left_for_a_worker_that_builds_it(db: Database) -> None:
    flow = Flow.by_hand(
        db, {"status": "READY", "is_subworkflow": True, "sub_definition_key": "child.v1"}
    )

    recovered(db)

    assert flow.states == ["READY"]
    ready = db.execute("select * from horsies_ready_subworkflows(10)")
    assert [row["definition_key"] for row in ready] == ["child.v1"]
    assert db.statuses() == {}


def test_waiting_child_node_becomes_ready(db: Database) -> None:
    flow = Flow.by_hand(
        db, DONE,
        {"dependencies": [0], "is_subworkflow": True, "sub_definition_key": "child.v1"},
    )  # fmt: skip

    recovered(db)

    assert flow.states == [C, "READY"]
    assert len(db.execute("select * from horsies_ready_subworkflows(10)")) == 1


@pytest.mark.parametrize(
    ("child", "expected"),
    [
        ({"status": C, "result": ok(5)}, (C, C)),
        ({"status": F, "error": failure("BAD")}, (F, F)),
        ({"status": "CANCELLED"}, (F, F)),
    ],
    ids=["completed", "failed", "cancelled"],
)
def test_ended_child_ends_its_node(
    db: Database, child: dict[str, Any], expected: tuple[str, str]
) -> None:
    child_id = str(uuid.uuid4())
    flow = Flow.by_hand(db)
    Flow.by_hand(
        db, id=child_id, parent_workflow_id=flow.id, parent_task_index=0, depth=1,
        root_workflow_id=flow.id, **child,
    )  # fmt: skip
    db.insert(
        "horsies_workflow_tasks", id=str(uuid.uuid4()), workflow_id=flow.id, task_index=0,
        node_id="n0", task_name="child", status=R, is_subworkflow=True, sub_workflow_id=child_id,
    )  # fmt: skip

    assert recovered(db) == 1

    assert (flow.states[0], flow.status) == expected
    if expected[0] == C:
        assert flow.nodes[0]["result"] == ok(5)
    else:
        assert code_of(flow.nodes[0]["error"]) == "SUBWORKFLOW_FAILED"
    assert flow.nodes[0]["sub_workflow_summary"] is not None
    assert db.statuses() == {}


REPLAYS = [
    ("completed", C, ok(4), C, None),
    ("failed", F, failure("BAD"), F, "BAD"),
    ("cancelled-with-result", "CANCELLED", failure("STOPPED"), F, "STOPPED"),
    ("expired", "EXPIRED", failure("TASK_EXPIRED"), F, "TASK_EXPIRED"),
    ("completed-without-result", C, None, F, "RESULT_NOT_AVAILABLE"),
    ("failed-without-result", F, None, F, "WORKER_CRASHED"),
    ("cancelled-without-result", "CANCELLED", None, F, "TASK_CANCELLED"),
    ("expired-without-result", "EXPIRED", None, F, "TASK_EXPIRED"),
    ("completed-unreadable", C, "not json", F, "WORKER_CRASHED"),
    ("failed-unreadable", F, "[1", F, "WORKER_CRASHED"),
    ("completed-no-result-shape", C, '{"a": 1}', F, "WORKER_CRASHED"),
    ("completed-a-number", C, "7", F, "WORKER_CRASHED"),
]


@pytest.mark.seed("S148", "S149", "S150")
@pytest.mark.parametrize("node_status", [E, R, "READY", P])
@pytest.mark.parametrize(
    ("status", "result", "expected", "code"),
    [row[1:] for row in REPLAYS],
    ids=[row[0] for row in REPLAYS],
)
def test_ended_task_ends_its_node_and_the_workflow_in_one_pass(
    db: Database, status: str, result: str | None, expected: str, code: str | None, node_status: str
) -> None:
    task_id = db.insert(id="any id at all", status=status, result=result)
    flow = Flow.by_hand(
        db, {"status": node_status, "task_id": task_id}, {"dependencies": [0]} if code else DONE
    )

    assert recovered(db) == 1

    assert (flow.states[0], flow.status) == (expected, C if expected == C else F)
    if code is not None:
        assert code_of(flow.nodes[0]["result"]) == code_of(flow.row["error"]) == code
        assert flow.states[1] == S
    else:
        assert flow.nodes[0]["result"] == result


def test_waiting_node_with_an_ended_task_and_open_dependencies_takes_its_result(
    db: Database,
) -> None:
    running = db.insert()
    ended = db.insert(status=C, result=OK)
    flow = Flow.by_hand(
        db, {"status": E, "task_id": running}, {"task_id": ended, "dependencies": [0]}
    )

    recovered(db)

    assert flow.states == [E, C]


def test_workflow_whose_nodes_have_all_ended_is_finalized(db: Database) -> None:
    completed = Flow.by_hand(db, DONE, {"status": S})
    failed = Flow.by_hand(db, DONE, {"status": F, "result": failure("BAD")})

    assert recovered(db) == 2

    assert (completed.status, failed.status) == (C, F)
    assert code_of(failed.row["error"]) == "BAD"
    assert completed.row["completed_at"] is not None


def test_stored_error_is_kept(db: Database) -> None:
    flow = Flow.by_hand(
        db, {"status": F, "result": failure("LATER"), "error": failure("LATER")},
        error=failure("FIRST"),
    )  # fmt: skip

    recovered(db)

    assert code_of(flow.row["error"]) == "FIRST"


def test_required_failure_without_error_column_is_told_from_its_result(db: Database) -> None:
    policy = Jsonb({"cases": [{"required_indices": [0]}]})
    flow = Flow.by_hand(db, {"status": F, "result": failure("BAD")}, success_policy=policy)

    recovered(db)

    assert code_of(flow.row["error"]) == "BAD"


@pytest.mark.parametrize("status", ["PENDING", "PAUSED", "CANCELLED", C, F])
def test_only_running_workflows_are_touched(db: Database, status: str) -> None:
    Flow.by_hand(db, DONE, {"dependencies": [0]}, {"status": "READY"}, status=status)
    before = everything(db)

    assert recover(db) == 0

    assert everything(db) == before


LATE_ENDS = [
    ("completed", {"status": C, "result": OK}, C),
    ("failed", {"status": F, "result": failure("BAD")}, F),
    ("expired", {"status": "EXPIRED"}, F),
    ("went-back-unstarted", {"status": "CANCELLED"}, S),
]


@pytest.mark.parametrize(
    ("end", "expected"), [row[1:] for row in LATE_ENDS], ids=[row[0] for row in LATE_ENDS]
)
def test_run_that_ends_unnoticed_in_a_cancelled_workflow_ends_its_node(
    db: Database, end: dict[str, str], expected: str
) -> None:
    flow = Flow.start(db, N(), N((0,), allow_failed_deps=True))
    flow.claims(0)
    flow.cancel()
    ended_at = flow.row["completed_at"]
    columns = ", ".join(f"{column} = %s" for column in end)
    task_id = flow.nodes[0]["task_id"]
    db.execute(f"update horsies_tasks set {columns} where id = %s", *end.values(), task_id)

    assert recovered(db) == 1

    assert flow.states == [expected, S]
    assert (flow.status, flow.row["open_nodes"]) == ("CANCELLED", 0)
    assert (flow.row["error"], flow.row["completed_at"]) == (None, ended_at)


def test_run_that_vanishes_in_a_cancelled_workflow_is_skipped(db: Database) -> None:
    flow = Flow.start(db, N())
    flow.claims(0)
    flow.cancel()
    db.execute("delete from horsies_tasks")

    assert recovered(db) == 1

    assert (flow.states, flow.row["open_nodes"], flow.status) == ([S], 0, "CANCELLED")


def test_run_that_still_goes_on_in_a_cancelled_workflow_is_left(db: Database) -> None:
    flow = Flow.start(db, N())
    flow.claims(0)
    flow.cancel()

    assert recovered(db) == 0

    assert (flow.states, flow.row["open_nodes"]) == ([E], 1)


def test_vanished_task_is_enqueued_anew(db: Database) -> None:
    flow = Flow.start(db, N(), N((0,)))
    db.execute("delete from horsies_tasks")

    assert recovered(db) == 1

    assert (flow.states, flow.task_states()) == ([E, P], ["PENDING", None])


def test_result_of_rows_by_hand_holds_only_the_last_nodes(db: Database) -> None:
    task_id = db.insert()
    flow = Flow.by_hand(db, DONE, {"dependencies": [0], "status": E, "task_id": task_id})

    flow.end({1: ok(2)})

    assert flow.status == C
    assert '"n0"' not in flow.row["result"]


def test_workflow_that_cannot_be_repaired_stops_no_other(db: Database) -> None:
    bad = Flow.by_hand(db, {"status": "READY"}, name="bad")
    good = Flow.by_hand(db, {"status": "READY"}, name="good")
    db.execute(
        "create function refuse() returns trigger language plpgsql as $$ begin "
        "if new.workflow_id = tg_argv[0] then raise 'no luck'; end if; return new; end $$"
    )
    db.execute(
        "create trigger refuse before update on horsies_workflow_tasks "
        f"for each row execute function refuse('{bad.id}')"
    )

    answers = db.execute("select * from horsies_recover_workflows('', 100)")

    assert "no luck" in answers[0]["failure"]
    assert (bad.states, good.states) == (["READY"], [E])


def test_child_built_twice_is_stored_once(db: Database) -> None:
    flow = Flow.start(db, N(), rows={0: sub_workflow()})
    child = flow.start_child(0, N())
    db.execute(
        "update horsies_workflow_tasks set status = 'READY', sub_workflow_id = null where id = %s",
        child.id,
    )

    rows = stored([N()], id=child.id, parent_node_id=child.id)
    (receipt,) = db.run(statements.start_workflows([rows]))

    assert receipt.outcome == "exists"
    assert flow.states == [R]
    assert len(child.nodes) == 1
    assert flow.nodes[0]["sub_workflow_id"] == child.id
