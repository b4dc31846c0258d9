"""A spec keeps frozen copies; the caller's nodes stay the caller's."""

import copy
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

import pytest

from horsies import (
    OnError,
    SubWorkflowNode,
    SuccessCase,
    SuccessPolicy,
    TaskNode,
    WorkflowSpec,
)
from support.codec_models import Horse
from support.flows import Numbers, anything, app, count, double, load, report, spec_of


@dataclass
class Box:
    items: list[int] = field(default_factory=list)


def whole() -> tuple[TaskNode[Any], TaskNode[Any], Any]:
    first = TaskNode(fn=load)
    second = TaskNode(fn=count, waits_for=[first, first], args_from={"rows": first})
    policy = SuccessPolicy([SuccessCase([second])], optional=[first])
    spec: Any = spec_of(first, second, output=second, success_policy=policy)
    return first, second, spec


def test_fields_come_in_the_contracts_order() -> None:
    made: Any = WorkflowSpec
    node = TaskNode(fn=double, kwargs={"n": 1})

    spec = made("n", [node], "pause", node, None, "k", Numbers, None, True)

    assert (spec.name, spec.on_error, spec.output) == ("n", OnError.PAUSE, spec.tasks[0])
    assert (spec.definition_key, spec.workflow_def_cls) == ("k", Numbers)
    assert (spec.broker, spec.resend_on_transient_err) == (None, True)


def test_references_point_to_the_copies() -> None:
    first, second, spec = whole()
    a, b = spec.tasks

    assert a is not first
    assert b is not second
    assert b.waits_for == (a,)
    assert dict(b.args_from) == {"rows": a}
    assert spec.output is b
    assert spec.success_policy.cases[0].required == (b,)
    assert spec.success_policy.optional == (a,)


def test_sequences_become_tuples_and_mappings_read_only() -> None:
    root = TaskNode(fn=load)
    node = TaskNode(
        fn=report, waits_for=[root], workflow_ctx_from=[root], kwargs={"workflow_meta": None}
    )

    frozen: Any = spec_of(root, node).tasks[1]

    assert isinstance(frozen.waits_for, tuple)
    assert isinstance(frozen.workflow_ctx_from, tuple)
    assert isinstance(frozen.kwargs, MappingProxyType)
    assert isinstance(frozen.args_from, MappingProxyType)


def test_values_are_captured() -> None:
    value: dict[str, Any] = {"list": [1, [2]], "dict": {"a": [1]}, "box": Box([1])}
    value["horse"] = Horse(name="Fury", age=3)
    node = TaskNode(fn=anything, kwargs=value)

    frozen: Any = spec_of(node).tasks[0]
    value["list"].append(3)
    value["box"].items.append(2)
    value["horse"].age = 4

    assert frozen.kwargs["list"] == (1, (2,))
    assert isinstance(frozen.kwargs["dict"], MappingProxyType)
    assert frozen.kwargs["dict"]["a"] == (1,)
    assert frozen.kwargs["box"] == Box([1])
    assert frozen.kwargs["horse"].age == 3
    assert '"list":[1,[2]]' in frozen.kwargs_json


@pytest.mark.parametrize(
    ("of", "name"),
    [
        (lambda spec: spec.tasks[0], "TaskNode"),
        (lambda spec: spec, "WorkflowSpec"),
        (lambda spec: spec.success_policy, "SuccessPolicy"),
        (lambda spec: spec.success_policy.cases[0], "SuccessCase"),
    ],
    ids=["node", "spec", "policy", "case"],
)
def test_nothing_in_a_spec_can_be_set_or_deleted(of: Any, name: str) -> None:
    _, _, spec = whole()

    with pytest.raises(AttributeError, match=f"frozen {name}"):
        of(spec).node_id = "x"
    with pytest.raises(AttributeError, match=f"frozen {name}"):
        del of(spec).name


def test_a_frozen_child_says_what_it_is() -> None:
    frozen: Any = spec_of(SubWorkflowNode(workflow_def=Numbers)).tasks[0]

    with pytest.raises(AttributeError, match="frozen SubWorkflowNode"):
        frozen.index = 5


def test_the_callers_nodes_learn_their_place_and_stay_mutable() -> None:
    first, second, _ = whole()

    assert [(n.index, n.node_id) for n in (first, second)] == [(0, "flow:0"), (1, "flow:1")]
    second.queue = "other"
    assert second.queue == "other"
    assert second.key().node_id == "flow:1"


def test_later_changes_do_not_reach_the_spec() -> None:
    first, second, spec = whole()

    first.waits_for = [second]
    second.kwargs = {"minimum": 9}

    assert spec.tasks[0].waits_for == ()
    assert dict(spec.tasks[1].kwargs) == {}


def test_a_spec_can_be_made_of_frozen_nodes() -> None:
    _, _, spec = whole()

    again: Any = WorkflowSpec(name="again", tasks=spec.tasks, output=spec.output)

    assert [node.node_id for node in again.tasks] == ["again:0", "again:1"]
    assert [node.node_id for node in spec.tasks] == ["flow:0", "flow:1"]
    assert again.output is again.tasks[1]
    assert again.tasks[1].waits_for == (again.tasks[0],)


def test_a_node_may_be_used_in_several_specs() -> None:
    shared = TaskNode(fn=load, node_id="shared")

    specs = [app.workflow(name, [shared], definition_key=name) for name in ("one", "two")]

    assert [spec.tasks[0].node_id for spec in specs] == ["shared", "shared"]
    assert specs[0].tasks[0] is not specs[1].tasks[0]


def test_a_repeated_dependency_counts_once() -> None:
    _, _, spec = whole()

    assert len(spec.tasks[1].waits_for) == 1


def test_an_unhashable_value_is_no_obstacle() -> None:
    original = {"x": [{"deep": [1, 2]}]}
    before = copy.deepcopy(original)

    spec_of(TaskNode(fn=anything, kwargs=original))

    assert original == before
