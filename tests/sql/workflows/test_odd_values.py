"""What one user stores, or writes into a row, costs its own workflow, and stops no other."""

from typing import Any

import pytest

from horsies.recovery.statements import recover_workflows
from horsies.workflows import statements
from support.database import Database
from support.workflow_model import ModelNode as N
from support.workflow_rows import Flow, ok, recover

C, F, R, E, S = "COMPLETED", "FAILED", "RUNNING", "ENQUEUED", "SKIPPED"
NUL = '"a\\u0000b"'
SURROGATE = '"a\\ud800b"'
DEEP = "[" * 20_000 + "]" * 20_000
IDS = ["nul", "surrogate", "low-surrogate", "deep", "no-json"]
ODD_TEXTS = [NUL, SURROGATE, '"\\udc00\\ud800"', DEEP, "{"]


def event(key: str) -> dict[str, Any]:
    return {"kind": "event", "settings": {"event": "signal", "key": key, "seconds": None}}


def sleep(seconds: Any) -> dict[str, Any]:
    return {"kind": "sleep", "settings": {"seconds": seconds}}


def wake(db: Database) -> int:
    return db.run(statements.wake_nodes(100))[0].woken


@pytest.mark.parametrize("payload", ODD_TEXTS, ids=IDS)
def test_odd_event_ends_its_wait_and_no_other(db: Database, payload: str) -> None:
    odd = Flow.start(db, N(), N((0,)), rows={0: event("odd")})
    plain = Flow.start(db, N(), N((0,)), rows={0: event("plain")})
    db.run(statements.store_event("signal", "odd", payload))
    db.run(statements.store_event("signal", "plain", "1"))

    assert wake(db) == 2

    assert odd.states == [C, E]
    assert plain.states == [C, E]


@pytest.mark.parametrize("payload", ODD_TEXTS, ids=IDS)
def test_odd_error_of_a_node_fails_that_node(db: Database, payload: str) -> None:
    """As of a `build_with` whose message has NUL."""
    odd = Flow.start(db, N(), rows={0: {"kind": "sub_workflow"}})
    result = f'{{"__task_result__":true,"ok":null,"err":{payload}}}'

    db.run(statements.fail_nodes([odd.nodes[0]["id"]], [result]))

    assert (odd.states, odd.status) == ([F], F)


@pytest.mark.parametrize("seconds", [1e300, "x", -1e300, [1]], ids=["far", "text", "past", "list"])
def test_sleep_out_of_range_fails_its_node(db: Database, seconds: Any) -> None:
    odd = Flow.start(db, N(), N((0,)), N((1,)), rows={0: sleep(5), 1: sleep(seconds)})
    plain = Flow.start(db, N(), N((0,)), rows={0: sleep(5)})

    db.set_now(6)
    wake(db)

    assert odd.states == [C, F, S]
    assert "could not be started" in odd.nodes[1]["error"]
    assert plain.states == [C, E]


@pytest.mark.parametrize(
    "change",
    [
        """update horsies_workflow_tasks set args_from = '{"n": "x"}' where task_index = 1""",
        """update horsies_workflow_tasks set args_from = '[1, 2]' where task_index = 1""",
        "update horsies_workflow_tasks set open_dependencies = -2147483648 where task_index = 1",
        "update horsies_workflow_tasks set completed_dependencies = 2147483647",
        "update horsies_workflows set open_nodes = -2147483648",
        "update horsies_workflow_tasks set dependents = '{{1,1},{1,1}}' where task_index = 0",
    ],
    ids=["args-text", "args-list", "open-least", "completed-most", "nodes-least", "dependents-2d"],
)
def test_odd_row_costs_its_own_workflow(db: Database, change: str) -> None:
    odd = Flow.start(db, N(), N((0,)), rows={0: sleep(5)})
    db.execute(change)
    plain = Flow.start(db, N(), N((0,)), rows={0: sleep(5)})

    db.set_now(6)
    wake(db)
    db.run(recover_workflows(""))

    assert plain.states == [C, E]
    assert odd.states in ([C, F], [C, E], [C, S]), "it went on, or it failed"


def test_workflow_that_cannot_go_on_fails_with_the_reason(db: Database) -> None:
    odd = Flow.start(db, N(), success_policy={"cases": [{"required_indices": [0]}]})
    db.execute("update horsies_workflows set success_policy = %s", '{"cases": "x"}')
    plain = Flow.start(db, N())

    tasks = [flow.nodes[0]["task_id"] for flow in (odd, plain)]
    db.execute(
        "update horsies_tasks set status = 'COMPLETED', result = %s where id = any (%s)",
        ok(1),
        tasks,
    )
    (why_not,) = db.run(statements.advance_tasks(tasks))

    assert odd.id in why_not.value
    assert odd.status == F
    assert "cannot go on" in odd.row["error"]
    assert plain.status == C
    assert recover(db) == 0


def test_recovery_gives_a_workflow_up_that_cannot_go_on(db: Database) -> None:
    odd = Flow.start(db, N(), success_policy={"cases": [{"required_indices": [0]}]})
    db.execute("update horsies_workflows set success_policy = %s", '{"cases": "x"}')
    db.execute("update horsies_tasks set status = 'COMPLETED', result = %s", ok(1))

    (answer,) = db.run(recover_workflows(""))

    assert odd.id in (answer.failure or "")
    assert odd.status == F
    assert recover(db) == 0
