"""Nodes as values: their fields, names, keys and ids."""

import dataclasses
import datetime as dt
from typing import Any

import pytest

from horsies import (
    NODE_ID_PATTERN,
    WORKFLOW_TASK_TERMINAL_STATES,
    WORKFLOW_TERMINAL_STATES,
    NodeKey,
    OnError,
    SleepNode,
    SubWorkflowNode,
    TaskNode,
    WorkflowStatus,
    WorkflowTaskStatus,
    WorkflowValidationError,
    slugify,
)
from support.flows import Numbers, app, codes, count, double, load, spec_of

TASK_FIELDS = [
    *("fn", "kwargs", "waits_for", "args_from", "workflow_ctx_from", "queue", "priority"),
    *("allow_failed_deps", "join", "min_success", "good_until", "index", "node_id"),
]
CHILD_FIELDS = [
    *("workflow_def", "kwargs", "waits_for", "args_from", "workflow_ctx_from", "join"),
    *("min_success", "allow_failed_deps", "index", "node_id"),
]
paid = app.event("nodes.paid", dict[str, int])


@pytest.mark.parametrize(
    ("cls", "expected"), [(TaskNode, TASK_FIELDS), (SubWorkflowNode, CHILD_FIELDS)]
)
def test_fields_come_in_the_contracts_order(cls: Any, expected: list[str]) -> None:
    assert [field.name for field in dataclasses.fields(cls)][: len(expected)] == expected


def test_a_node_has_the_contracts_defaults() -> None:
    node = TaskNode(fn=load)

    assert (node.kwargs, node.waits_for, node.args_from) == ({}, [], {})
    assert (node.workflow_ctx_from, node.queue, node.priority, node.good_until) == (None,) * 4
    assert (node.allow_failed_deps, node.join, node.min_success) == (False, "all", None)
    assert (node.node_id, node.index) == (None, None)


def test_positional_arguments_have_no_field() -> None:
    made: Any = TaskNode

    with pytest.raises(TypeError, match="unexpected keyword argument 'args'"):
        made(fn=load, args=(1,))


@pytest.mark.parametrize("option", ["queue", "priority", "good_until"])
def test_a_child_has_no_queue_priority_or_deadline(option: str) -> None:
    made: Any = SubWorkflowNode

    with pytest.raises(TypeError, match=f"unexpected keyword argument '{option}'"):
        made(workflow_def=Numbers, **{option: None})


@pytest.mark.parametrize(
    ("node", "name", "ok_type"),
    [
        (TaskNode(fn=load), "flows.load", list[int]),
        (TaskNode(fn=double, each=TaskNode(fn=load)), "flows.double", list[int]),
        (SubWorkflowNode(workflow_def=Numbers), "numbers", int),
        (SleepNode(dt.timedelta(seconds=1)), "sleep", type(None)),
        (paid.node(key="order-1"), "nodes.paid", dict[str, int]),
    ],
    ids=["task", "each", "sub-workflow", "sleep", "event"],
)
def test_a_node_knows_its_name_and_the_type_of_its_result(
    node: Any, name: str, ok_type: Any
) -> None:
    node.node_id = "here"

    assert node.name == name
    assert node.key() == NodeKey("here")
    assert node.key().ok_type == ok_type


def test_a_node_without_id_has_no_key() -> None:
    with pytest.raises(WorkflowValidationError, match="node_id is not set"):
        TaskNode(fn=load).key()


def test_a_key_is_a_frozen_value() -> None:
    key: Any = NodeKey[int]("load")

    assert key == NodeKey("load")
    assert hash(key) == hash(NodeKey("load"))
    assert repr(key) == "NodeKey(node_id='load')"
    with pytest.raises(dataclasses.FrozenInstanceError):
        key.node_id = "other"


def test_a_key_remembers_its_type_parameter() -> None:
    assert NodeKey[list[int]]("load").ok_type == list[int]


def test_the_repr_of_a_deep_chain_is_short() -> None:
    node = TaskNode(fn=double)
    for _ in range(5_000):
        node = TaskNode(fn=double, waits_for=[node])

    assert repr(node) == "<TaskNode 'flows.double' node_id=None>"


@pytest.mark.parametrize(
    ("text", "slug"),
    [
        ("import", "import"),
        ("nightly import", "nightly_import"),
        ("a/b(c)", "abc"),
        ("v1.2:x-y_z", "v1.2:x-y_z"),
        ("日本", "_"),
        ("", "_"),
    ],
)
def test_slugs_keep_only_characters_of_ids(text: str, slug: str) -> None:
    assert slugify(text) == slug
    assert NODE_ID_PATTERN.fullmatch(slug)


@pytest.mark.parametrize("node_id", ["a", "A-z_0:9.", "x" * 128])
def test_valid_ids_are_kept(node_id: str) -> None:
    spec = spec_of(TaskNode(fn=load, node_id=node_id))

    assert spec.tasks[0].node_id == node_id


@pytest.mark.parametrize("node_id", ["", "a b", "x" * 129, "a/b", "é", "a\n", 5])
def test_other_ids_are_refused(node_id: Any) -> None:
    with pytest.raises(WorkflowValidationError, match="contains invalid characters") as caught:
        spec_of(TaskNode(fn=load, node_id=node_id))

    assert codes(caught.value) == ["HRS-003"]


def test_a_name_too_long_for_generated_ids_is_refused() -> None:
    from horsies import WorkflowSpec

    with pytest.raises(WorkflowValidationError, match="contains invalid characters") as caught:
        WorkflowSpec(name="x" * 127, tasks=[TaskNode(fn=load)])

    assert codes(caught.value) == ["HRS-003"]


@pytest.mark.parametrize("given", ["same", None], ids=["two nodes", "one node twice"])
def test_an_id_names_one_node(given: str | None) -> None:
    first = TaskNode(fn=load, node_id="same")
    second = first if given is None else TaskNode(fn=load, node_id=given)

    with pytest.raises(WorkflowValidationError, match="duplicate node_id") as caught:
        spec_of(first, second)

    assert codes(caught.value) == ["HRS-004"]


def test_id_errors_are_reported_alone() -> None:
    lonely = TaskNode(fn=count, node_id="!")  # lacks its required parameter, too

    with pytest.raises(WorkflowValidationError) as caught:
        spec_of(lonely)

    assert codes(caught.value) == ["HRS-003"]


def test_generated_ids_are_slug_and_position() -> None:
    from horsies import WorkflowSpec

    spec = WorkflowSpec(name="my flow", tasks=[TaskNode(fn=load), TaskNode(fn=load)])

    assert [node.node_id for node in spec.tasks] == ["my_flow:0", "my_flow:1"]


def test_in_a_second_spec_given_ids_stay_and_generated_ones_are_renewed() -> None:
    given, by_hand, generated = TaskNode(fn=load, node_id="g"), TaskNode(fn=load), TaskNode(fn=load)
    spec_of(given, by_hand, generated)
    by_hand.node_id = "flow:1"  # the same text, but now it is the user's

    second = spec_of(generated, by_hand, given)

    assert [node.node_id for node in second.tasks] == ["flow:0", "flow:1", "g"]
    assert (generated.node_id, generated.index) == ("flow:0", 0)


def test_states_and_policies_are_texts_of_the_contract() -> None:
    workflow = ["PENDING", "RUNNING", "COMPLETED", "FAILED", "PAUSED", "CANCELLED"]
    node = ["PENDING", "READY", "ENQUEUED", "RUNNING", "COMPLETED", "FAILED", "SKIPPED"]

    assert [(s.name, s.value) for s in WorkflowStatus] == [(name, name) for name in workflow]
    assert [(s.name, s.value) for s in WorkflowTaskStatus] == [(name, name) for name in node]
    assert {p.name: p.value for p in OnError} == {"FAIL": "fail", "PAUSE": "pause"}
    assert all(issubclass(enum, str) for enum in (WorkflowStatus, WorkflowTaskStatus, OnError))


def test_terminal_states_are_three_each() -> None:
    assert isinstance(WORKFLOW_TERMINAL_STATES, frozenset)
    assert isinstance(WORKFLOW_TASK_TERMINAL_STATES, frozenset)
    assert {s for s in WorkflowStatus if s.is_terminal} == WORKFLOW_TERMINAL_STATES
    assert {s for s in WorkflowTaskStatus if s.is_terminal} == WORKFLOW_TASK_TERMINAL_STATES
    assert {s.value for s in WORKFLOW_TERMINAL_STATES} == {"COMPLETED", "FAILED", "CANCELLED"}
    assert {s.value for s in WORKFLOW_TASK_TERMINAL_STATES} == {"COMPLETED", "FAILED", "SKIPPED"}


@pytest.mark.parametrize("given", ["pause", OnError.PAUSE])
def test_on_error_may_be_a_plain_string(given: Any) -> None:
    assert spec_of(TaskNode(fn=load), on_error=given).on_error is OnError.PAUSE


def test_an_unknown_failure_policy_is_refused() -> None:
    with pytest.raises(WorkflowValidationError, match="on_error must be"):
        spec_of(TaskNode(fn=load), on_error="ignore")
