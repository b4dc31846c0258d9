"""`task.node(...)(...)` and `from_node`."""

from typing import Any

import pytest

from horsies import NodeFactory, TaskNode, WorkflowValidationError, from_node
from support.flows import codes, count, double, load, spec_of

OPTIONS: dict[str, Any] = {
    "waits_for": None,
    "args_from": None,
    "workflow_ctx_from": None,
    "node_id": None,
    "queue": None,
    "priority": None,
    "allow_failed_deps": False,
    "join": "all",
    "min_success": None,
    "good_until": None,
}
misuse: Any = from_node


def test_the_second_call_gives_the_arguments() -> None:
    node = load.node(node_id="load", queue="q", priority=3)(path="in.csv")

    assert isinstance(node, TaskNode)
    assert (node.fn, node.kwargs) == (load, {"path": "in.csv"})
    assert (node.node_id, node.queue, node.priority) == ("load", "q", 3)


def test_from_node_wires_a_parameter_and_waits_once() -> None:
    source = load.node()()

    node = count.node(waits_for=[source])(rows=from_node(source), minimum=3)

    assert node.args_from == {"rows": source}
    assert node.kwargs == {"minimum": 3}
    assert node.waits_for == [source]


def test_from_node_adds_the_source_to_waits_for() -> None:
    first, source = load.node()(), load.node()()

    node = count.node(waits_for=[first])(rows=from_node(source))

    assert node.waits_for == [first, source]


def test_positional_arguments_are_refused() -> None:
    with pytest.raises(WorkflowValidationError) as caught:
        load.node()("in.csv")

    assert codes(caught.value) == ["HRS-026"]


@pytest.mark.parametrize("thing", [load, "load", None, 5])
def test_from_node_takes_only_nodes(thing: Any) -> None:
    with pytest.raises(WorkflowValidationError) as caught:
        misuse(thing)

    assert codes(caught.value) == ["HRS-008"]


def test_a_parameter_is_wired_once() -> None:
    source = load.node()()

    with pytest.raises(WorkflowValidationError) as caught:
        count.node(args_from={"rows": source})(rows=from_node(source))

    assert codes(caught.value) == ["HRS-021"]


@pytest.mark.parametrize("nested", [False, True], ids=["itself", "in a list"])
def test_from_node_inside_kwargs_is_refused_by_the_spec(nested: bool) -> None:
    source = TaskNode(fn=load)
    marker = from_node(source)
    wrong = TaskNode(
        fn=double, kwargs={"n": [{"deep": marker}] if nested else marker}, waits_for=[source]
    )

    with pytest.raises(WorkflowValidationError) as caught:
        spec_of(source, wrong)

    assert codes(caught.value) == ["HRS-008"]


def test_unknown_options_are_type_errors() -> None:
    wrong: Any = load.node

    with pytest.raises(TypeError, match="unexpected keyword argument 'args'"):
        wrong(args=(1,))


def test_a_factory_needs_every_option() -> None:
    made: Any = NodeFactory[Any, Any]

    assert made(load, **OPTIONS)(path="x").kwargs == {"path": "x"}
    for name in OPTIONS:
        with pytest.raises(TypeError, match=name):
            made(load, **{key: value for key, value in OPTIONS.items() if key != name})


def test_node_options_reach_the_node() -> None:
    other = load.node()()

    node = load.node(waits_for=[other], join="quorum", min_success=1, allow_failed_deps=True)()

    assert (node.join, node.min_success, node.allow_failed_deps) == ("quorum", 1, True)
