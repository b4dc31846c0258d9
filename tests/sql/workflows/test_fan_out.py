"""One task per element of a list: order, bounds, ends."""

import json
from typing import Any

import pytest

from support.database import Database
from support.workflow_model import ModelNode as N
from support.workflow_rows import Flow, code_of, failure, ok

C, F, R, E = "COMPLETED", "FAILED", "RUNNING", "ENQUEUED"


def fan_out(db: Database, elements: Any, max_in_flight: int = 2) -> tuple[Flow, Flow]:
    """A workflow whose second node runs over the list of its first; and the child that does it."""
    settings = {"each_index": 0, "each_as": "value", "max_in_flight": max_in_flight}
    flow = Flow.start(
        db, N(), N((0,)), output=1,
        rows={1: {"kind": "each", "settings": settings, "task_kwargs": '{"plus":1}'}},
    )  # fmt: skip
    flow.end({0: ok(elements)})
    return flow, Flow(db, flow.nodes[1]["id"])


def in_flight(child: Flow) -> int:
    return child.states.count(E)


def test_each_element_joins_the_static_arguments(db: Database) -> None:
    _, child = fan_out(db, ["a", {"b": [1, None]}])

    kwargs = [json.loads(child.task(index)["kwargs"]) for index in (0, 1)]

    assert [(k["plus"], k["value"]) for k in kwargs] == [(1, "a"), (1, {"b": [1, None]})]


def test_never_more_are_in_flight_than_allowed(db: Database) -> None:
    _, child = fan_out(db, list(range(7)), max_in_flight=3)
    seen = [in_flight(child)]

    while child.status == "RUNNING":
        child.end({child.states.index(E): True})
        seen.append(in_flight(child))

    assert seen == [3, 3, 3, 3, 3, 2, 1, 0]


def test_results_come_in_the_order_of_the_elements(db: Database) -> None:
    flow, child = fan_out(db, list(range(4)), max_in_flight=4)

    for index in (2, 0, 3, 1):
        child.end({index: ok(index * 10)})

    assert json.loads(flow.row["result"])["ok"] == [0, 10, 20, 30]


def test_empty_list_gives_an_empty_list(db: Database) -> None:
    flow, _ = fan_out(db, [])

    assert (flow.status, json.loads(flow.row["result"])["ok"]) == (C, [])


@pytest.mark.parametrize("value", [7, None, {"a": 1}, "text"], ids=str)
def test_what_is_no_list_fails_the_node(db: Database, value: Any) -> None:
    flow, _ = fan_out(db, value)

    assert (flow.status, flow.states) == (F, [C, F])
    assert code_of(flow.row["error"]) == "WORKFLOW_ENQUEUE_FAILED"


def test_failed_element_fails_the_node_after_all_have_ended(db: Database) -> None:
    flow, child = fan_out(db, [1, 2, 3], max_in_flight=3)

    child.end({0: failure("BAD")})
    assert flow.states[1] == R
    child.end({1: True, 2: True})

    assert flow.status == F
    assert code_of(flow.nodes[1]["error"]) == "SUBWORKFLOW_FAILED"
    summary = json.loads(flow.nodes[1]["sub_workflow_summary"])
    assert (summary["completed_tasks"], summary["failed_tasks"]) == (2, 1)


def test_pause_holds_elements_and_resume_goes_on_within_the_bound(db: Database) -> None:
    flow, child = fan_out(db, list(range(6)), max_in_flight=2)

    flow.pause()
    child.end({0: True, 1: True})
    paused = child.states.count("READY")
    flow.resume()

    assert paused == 4
    assert in_flight(child) == 2


def test_cancel_skips_the_elements_that_have_not_started(db: Database) -> None:
    flow, child = fan_out(db, list(range(4)), max_in_flight=2)

    flow.cancel()

    assert (child.status, set(child.states)) == ("CANCELLED", {"SKIPPED"})


def test_retry_of_failed_elements_keeps_the_bound(db: Database) -> None:
    flow, child = fan_out(db, list(range(6)), max_in_flight=2)
    while child.status == "RUNNING":
        child.end({child.states.index(E): child.states.index(E) == 3})

    assert db.value("select horsies_retry_workflow(%s, null)", flow.id) == "retried"
    seen = [in_flight(child)]
    while child.status == "RUNNING":
        child.end({child.states.index(E): True})
        seen.append(in_flight(child))

    assert max(seen) == 2
    assert len(seen) == 6
    assert flow.status == C


def test_ten_thousand_elements_run_to_their_end(db: Database) -> None:
    flow, child = fan_out(db, list(range(10_000)), max_in_flight=2_500)

    while child.status == "RUNNING":
        nodes = [index for index, state in enumerate(child.states) if state == E]
        ids = [node["task_id"] for node in child.nodes if node["status"] == E]
        assert len(nodes) == 2_500
        db.execute(
            "update horsies_tasks set status = 'COMPLETED', "
            "result = '{\"__task_result__\":true,\"ok\":1,\"err\":null}' where id = any (%s)", ids
        )  # fmt: skip
        assert db.value("select horsies_advance_tasks(%s)", ids) is None

    assert flow.status == C
    assert json.loads(flow.row["result"])["ok"] == [1] * 10_000
