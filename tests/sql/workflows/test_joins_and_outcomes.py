"""Joins, failure and success policies, row by row (docs/contract/workflows.md §5)."""

import json
from typing import Any

import pytest

from support.database import Database
from support.workflow_model import ModelNode as N
from support.workflow_rows import Flow, code_of, failure, ok

C, F, S, P, E = "COMPLETED", "FAILED", "SKIPPED", "PENDING", "ENQUEUED"
UNMET = "WORKFLOW_SUCCESS_CASE_NOT_MET"
ALLOW = {"allow_failed_deps": True}

# Two roots that end one after the other, and a node that waits for both: how the roots end,
# what the node is after the first end, and after the second.
JOINS: list[tuple[str, dict[str, Any], list[bool], str, str]] = [
    ("all-ok-ok", {}, [True, True], P, E),
    ("all-ok-failed", {}, [True, False], P, S),
    ("all-failed-ok", {}, [False, True], P, S),
    ("all-allow-failed-failed", ALLOW, [False, False], P, E),
    ("all-allow-ok-failed", ALLOW, [True, False], P, E),
    ("any-ok", {"join": "any"}, [True, False], E, E),
    ("any-failed-ok", {"join": "any"}, [False, True], P, E),
    ("any-failed-failed", {"join": "any"}, [False, False], P, S),
    ("quorum1-ok", {"join": "quorum", "min_success": 1}, [True, False], E, E),
    ("quorum1-failed-failed", {"join": "quorum", "min_success": 1}, [False, False], P, S),
    ("quorum2-ok-ok", {"join": "quorum", "min_success": 2}, [True, True], P, E),
    ("quorum2-failed", {"join": "quorum", "min_success": 2}, [False, True], S, S),
    ("any-ctx-waits-for-both", {"join": "any", "ctx_from": (1,)}, [True, False], P, E),
    ("any-ctx-of-the-first", {"join": "any", "ctx_from": (0,)}, [True, False], E, E),
]


@pytest.mark.parametrize(
    ("node", "ends", "after_first", "after_second"),
    [row[1:] for row in JOINS],
    ids=[row[0] for row in JOINS],
)
def test_join_decides(
    db: Database, node: dict[str, Any], ends: list[bool], after_first: str, after_second: str
) -> None:
    flow = Flow.start(db, N(), N(), N(dependencies=(0, 1), **node))

    flow.end({0: ends[0]})
    first = flow.states[2]
    flow.end({1: ends[1]})

    assert (first, flow.states[2]) == (after_first, after_second)


@pytest.mark.parametrize(
    ("node", "expected"),
    [
        ({}, S),
        (ALLOW, E),
        ({"join": "any"}, S),
        ({"join": "quorum", "min_success": 1}, S),
    ],
    ids=["all", "all-allow", "any", "quorum"],
)
def test_skip_travels_by_the_same_rules(db: Database, node: dict[str, Any], expected: str) -> None:
    flow = Flow.start(db, N(), N((0,)), N((1,), **node), N())

    flow.end({0: False})

    assert flow.states == [F, S, expected, E]
    skipped = [node for node in flow.nodes if node["status"] == S]
    assert {(node["started_at"], node["completed_at"]) for node in skipped} == {(None, None)}


def test_node_is_enqueued_once_although_its_dependencies_end_together(db: Database) -> None:
    flow = Flow.start(db, N(), N(), N(dependencies=(0, 1), join="any"))

    flow.end({0: True, 1: True})
    flow.end({0: True, 1: True})  # told twice: nothing new

    assert flow.states == [C, C, E]
    assert db.statuses() == {"COMPLETED": 2, "PENDING": 1}
    assert flow.row["open_nodes"] == 1


CASES: list[tuple[Any, ...]] = [
    ("no-policy-all-ok", [N(), N()], {0: True, 1: True}, None, C, None),
    ("no-policy-one-failed", [N(), N()], {0: False, 1: True}, None, F, "BAD0"),
    ("no-policy-last-failure-counts", [N(), N()], {1: False, 0: False}, None, F, "BAD0"),
    (
        "no-policy-failure-forgiven-by-no-one",
        [N(), N((0,), **ALLOW)],
        {0: False, 1: True},
        None,
        F,
        "BAD0",
    ),
    (
        "no-policy-skips-are-no-failures",
        [N(), N(), N((0, 1), "any")],
        {0: True, 1: True, 2: True},
        None,
        C,
        None,
    ),
    ("policy-met-although-another-failed", [N(), N()], {0: True, 1: False}, [[0]], C, None),
    ("policy-second-case-met", [N(), N()], {0: False, 1: True}, [[0], [1]], C, None),
    (
        "policy-unmet-lowest-required-failure",
        [N(), N(), N()],
        {0: True, 2: False, 1: False},
        [[1, 2]],
        F,
        "BAD1",
    ),
    (
        "policy-unmet-failure-of-another-is-no-cause",
        [N(), N((0,)), N()],
        {0: False, 2: True},
        [[1]],
        F,
        UNMET,
    ),
    ("policy-skipped-does-not-count", [N(), N((0,))], {0: False}, [[1]], F, UNMET),
]


@pytest.mark.parametrize(
    ("nodes", "ends", "cases", "status", "error"),
    [row[1:] for row in CASES],
    ids=[row[0] for row in CASES],
)
def test_outcome(
    db: Database,
    nodes: list[N],
    ends: dict[int, bool],
    cases: list[list[int]] | None,
    status: str,
    error: str | None,
) -> None:
    policy = None if cases is None else {"cases": [{"required_indices": one} for one in cases]}
    flow = Flow.start(db, *nodes, success_policy=policy)

    for seconds, (index, is_ok) in enumerate(ends.items()):
        db.set_now(seconds)
        flow.end({index: ok(index) if is_ok else failure(f"BAD{index}")})

    assert flow.status == status
    assert (error is None) == (flow.row["error"] is None)
    if error is not None:
        assert code_of(flow.row["error"]) == error
    assert flow.row["completed_at"] is not None


def test_failure_stores_its_error_while_the_rest_goes_on(db: Database) -> None:
    flow = Flow.start(db, N(), N(), N())

    flow.end({0: failure("FIRST")})
    first = code_of(flow.row["error"])
    flow.end({1: failure("SECOND")})

    assert (flow.status, first, code_of(flow.row["error"])) == ("RUNNING", "FIRST", "SECOND")


def test_pause_policy_keeps_the_first_error_to_the_end(db: Database) -> None:
    flow = Flow.start(db, N(), N(), N((0,)), on_error="pause")

    flow.end({0: failure("FIRST")})
    assert (flow.status, flow.states) == ("PAUSED", [F, E, P])
    db.set_now(1)
    flow.end({1: failure("SECOND")})
    paused = code_of(flow.row["error"])
    assert flow.resume() is True

    assert (flow.status, flow.states) == (F, [F, F, S])
    assert (paused, code_of(flow.row["error"])) == ("FIRST", "FIRST")


def test_pause_policy_wins_over_a_success_policy(db: Database) -> None:
    policy = {"cases": [{"required_indices": [1]}]}
    flow = Flow.start(db, N(), N(), on_error="pause", success_policy=policy)

    flow.end({1: True})
    flow.end({0: False})

    assert flow.status == "PAUSED"
    assert flow.resume() is True
    assert flow.status == C


def test_optional_nodes_do_not_matter(db: Database) -> None:
    policy = {"cases": [{"required_indices": [0]}], "optional_indices": [1]}
    flow = Flow.start(db, N(), N(), success_policy=policy)

    flow.end({0: True, 1: False})

    assert flow.status == C


@pytest.mark.parametrize(
    ("ends", "expected"),
    [
        ({0: ok(7), 1: ok(8)}, {"ok": 8}),
        ({0: failure("BAD")}, "UPSTREAM_SKIPPED"),
    ],
    ids=["output", "skipped output"],
)
def test_result_is_that_of_the_output(
    db: Database, ends: dict[int, str], expected: dict[str, int] | str
) -> None:
    policy = {"cases": [{"required_indices": [2]}]}
    flow = Flow.start(db, N(), N((0,)), N(), output=1, success_policy=policy)

    flow.end({2: True})
    for index, result in ends.items():
        flow.end({index: result})

    assert flow.status == C
    result = json.loads(flow.row["result"])
    if isinstance(expected, str):
        assert code_of(flow.row["result"]) == expected
        assert result["err"]["data"] == {"dependency_index": 1}
    else:
        assert result["ok"] == expected["ok"]


def test_result_without_output_holds_exactly_the_last_nodes(db: Database) -> None:
    policy = {"cases": [{"required_indices": [0]}]}
    flow = Flow.start(db, N(), N(), N((0,)), N((1,)), success_policy=policy)

    flow.end({0: ok("a"), 1: failure("BAD")})
    flow.end({2: ok("c")})

    result = json.loads(flow.row["result"])["ok"]
    assert (sorted(result), result["n2"]["ok"], result["n3"]) == (["n2", "n3"], "c", None)


def test_output_without_a_stored_result_says_so(db: Database) -> None:
    flow = Flow.by_hand(db, {"status": "COMPLETED"}, output_task_index=0)

    db.value("select horsies_recover_workflow(%s)::text", flow.id)

    assert flow.status == C
    assert code_of(flow.row["result"]) == "RESULT_NOT_AVAILABLE"


@pytest.mark.parametrize(
    ("end", "handed_on"),
    [
        (ok(3), {"ok": 3}),
        (failure("BAD"), {"code": "BAD"}),
    ],
    ids=["completed", "failed"],
)
def test_dependency_hands_its_stored_result_on(
    db: Database, end: str, handed_on: dict[str, Any]
) -> None:
    flow = Flow.start(
        db, N(), N((0,), allow_failed_deps=True), rows={1: {"args_from": {"value": 0}}}
    )

    flow.end({0: end})

    given = json.loads(json.loads(flow.task(1)["kwargs"])["value"]["data"])
    if "ok" in handed_on:
        assert given["ok"] == handed_on["ok"]
    else:
        assert given["err"]["error_code"] == handed_on["code"]


def test_skipped_dependency_hands_on_that_it_was_skipped(db: Database) -> None:
    flow = Flow.start(
        db, N(), N((0,)), N((1,), allow_failed_deps=True), rows={2: {"args_from": {"value": 1}}}
    )

    flow.end({0: False})

    data = json.loads(flow.task(2)["kwargs"])["value"]["data"]
    assert code_of(data) == "UPSTREAM_SKIPPED"
    assert json.loads(data)["err"]["data"] == {"dependency_index": 1}


def test_dependency_that_has_not_ended_is_not_passed(db: Database) -> None:
    flow = Flow.start(
        db, N(), N(), N((0, 1), join="any"), rows={2: {"args_from": {"left": 0, "right": 1}}}
    )

    flow.end({1: True})

    kwargs = json.loads(flow.task(2)["kwargs"])
    assert ("left" in kwargs, "right" in kwargs) == (False, True)
