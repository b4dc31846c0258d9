"""Which results fit which parameters (docs/contract/workflows.md §11.1); fan-out over lists."""

from collections.abc import Sequence
from typing import Annotated, Any, TypeVar

import pytest

from horsies import (
    SubWorkflowNode,
    TaskError,
    TaskNode,
    TaskResult,
    WorkflowDefinition,
    WorkflowValidationError,
    from_node,
)
from horsies.workflows.nodes import UNKNOWN_TYPE
from horsies.workflows.wiring import element_type, fits, result_target
from support.codec_models import Horse, RaceHorse
from support.flows import (
    Numbers,
    add,
    app,
    codes,
    count,
    double,
    feed,
    foal,
    load,
    nothing,
    report,
    spec_of,
)

T = TypeVar("T")
node_of: Any = TaskNode


@pytest.mark.parametrize(
    ("source", "target", "expected"),
    [
        (int, Any, True),
        (Any, int, True),
        (int, int, True),
        (list[int], list[int], True),
        (RaceHorse, Horse, True),
        (Horse, RaceHorse, False),
        (bool, int, True),
        (int, str, False),
        (int, int | None, True),
        (int, str | bytes, False),
        (int | None, int | str | None, True),
        (int | None, int, False),
        (type(None), None, True),
        (list[int], list[str], False),
        (list[int], list, True),
        (list[int], Sequence[int], True),
        (tuple[int, ...], Sequence[int], True),
        (tuple[int, str], tuple[int, str], True),
        (tuple[int, str], tuple[int, int], False),
        (dict[str, int], dict[str, int], True),
        (dict[str, int], dict[str, str], False),
        (Annotated[int, "positive"], int, True),
        (int, T, True),
        (int, object, True),
    ],
)
def test_fitting(source: Any, target: Any, expected: bool) -> None:
    assert fits(source, target) is expected


@pytest.mark.parametrize(
    ("annotation", "expected"),
    [
        (TaskResult[int, TaskError], int),
        (TaskResult[int, TaskError] | None, int),
        (Annotated[TaskResult[int, TaskError], "x"], int),
        (TaskResult[int, TaskError] | TaskResult[str, TaskError], UNKNOWN_TYPE),
        (int, UNKNOWN_TYPE),
        (Any, UNKNOWN_TYPE),
        (TaskResult, UNKNOWN_TYPE),
    ],
)
def test_a_parameter_receives_results_if_it_says_so_once(annotation: Any, expected: Any) -> None:
    assert result_target(annotation) is expected


@pytest.mark.parametrize(
    ("declared", "expected"),
    [
        (list[int], int),
        (tuple[int, ...], int),
        (tuple[int, str], int | str),
        (Sequence[Horse], Horse),
        (list, Any),
        (Any, Any),
        (str, UNKNOWN_TYPE),
        (set[int], UNKNOWN_TYPE),
        (int, UNKNOWN_TYPE),
        (UNKNOWN_TYPE, UNKNOWN_TYPE),
    ],
)
def test_the_elements_of_a_list_have_a_type(declared: Any, expected: Any) -> None:
    assert element_type(declared) == expected


def wired(source: Any, target: Any, name: str) -> Any:
    return spec_of(source, node_of(fn=target, waits_for=[source], args_from={name: source}))


class Untyped(WorkflowDefinition):  # type: ignore[type-arg]
    name = "untyped"
    definition_key = "tests.wiring.untyped"
    only = TaskNode(fn=nothing)


@pytest.mark.parametrize(
    ("source", "target", "name"),
    [
        (TaskNode(fn=load), count, "rows"),
        (TaskNode(fn=foal), feed, "horse"),
        (TaskNode(fn=double, kwargs={"n": 1}), report, "total"),
        (SubWorkflowNode(workflow_def=Numbers), report, "total"),
    ],
    ids=["equal", "subclass", "union", "sub-workflow"],
)
def test_results_that_fit_are_accepted(source: Any, target: Any, name: str) -> None:
    spec = wired(source, target, name)

    assert spec.tasks[1].args_from == {name: spec.tasks[0]}


@pytest.mark.parametrize(
    ("source", "target", "name"),
    [
        (TaskNode(fn=load), report, "total"),
        (TaskNode(fn=double, kwargs={"n": 1}), double, "n"),
        (SubWorkflowNode(workflow_def=Untyped), report, "total"),
    ],
    ids=["other type", "no TaskResult", "unknown source"],
)
def test_results_that_do_not_fit_are_refused(source: Any, target: Any, name: str) -> None:
    with pytest.raises(WorkflowValidationError) as caught:
        wired(source, target, name)

    assert codes(caught.value) == ["HRS-024"]


def test_fan_out_gives_each_element_to_the_parameter_left_open() -> None:
    source = load.node()()
    node = double.node(each=from_node(source), max_in_flight=5)(times=3)

    frozen: Any = spec_of(source, node).tasks[1]

    assert node.waits_for == [source]
    assert (frozen.each.name, frozen.each_as, frozen.max_in_flight) == ("flows.load", "n", 5)
    assert frozen.kwargs_json == '{"times":3}'
    assert frozen.ok_type == list[int]


def test_each_as_chooses_among_parameters() -> None:
    source = load.node()()
    node = add.node(each=from_node(source), each_as="right")(left=1)

    assert spec_of(source, node).tasks[1].each_as == "right"  # type: ignore[union-attr]


def test_results_of_a_fan_out_can_be_fanned_out_again() -> None:
    source = load.node()()
    doubled = double.node(each=from_node(source))()
    again = double.node(each=from_node(doubled))()

    assert len(spec_of(source, doubled, again).tasks) == 3


def fan_out(task: Any, kwargs: dict[str, Any], source: Any = None, **options: Any) -> Any:
    producer = load.node()() if source is None else source
    return spec_of(producer, task.node(each=from_node(producer), **options)(**kwargs))


@pytest.mark.parametrize(
    ("build", "expected", "text"),
    [
        (lambda: fan_out(add, {}), ["HRS-020"], "candidates: left, right"),
        (lambda: fan_out(nothing, {}), ["HRS-020"], "none is left open"),
        (lambda: fan_out(add, {"left": 1}, each_as="middle"), ["HRS-019", "HRS-020"], "middle"),
        (lambda: fan_out(double, {"n": 1}, each_as="n"), ["HRS-021"], "given already"),
        (
            lambda: fan_out(double, {}, double.node()(n=1)),
            ["HRS-024"],
            "the elements do not fit 'n'",
        ),
        (lambda: fan_out(count, {}), ["HRS-024"], "the elements do not fit 'rows'"),
        (lambda: fan_out(double, {}, max_in_flight=0), ["none"], "max_in_flight must be >= 1"),
        (lambda: fan_out(double, {}, join="any"), ["HRS-013"], "each needs join='all'"),
    ],
    ids=["two", "none", "unknown", "given", "no list", "element", "no slots", "any"],
)
def test_a_fan_out_without_sense_is_refused(build: Any, expected: list[str], text: str) -> None:
    with pytest.raises(Exception, match=text) as caught:
        build()

    assert codes(caught.value) == expected  # type: ignore[arg-type]


def test_a_producer_must_be_awaited() -> None:
    source = TaskNode(fn=load)

    with pytest.raises(WorkflowValidationError, match="not in waits_for") as caught:
        spec_of(source, node_of(fn=double, each=source))

    assert codes(caught.value) == ["HRS-008"]


def test_each_takes_from_node_only() -> None:
    wrong: Any = double.node

    with pytest.raises(WorkflowValidationError) as caught:
        wrong(each=[1, 2])

    assert codes(caught.value) == ["HRS-008"]


def test_a_definition_promises_the_type_of_its_output() -> None:
    class Wrong(WorkflowDefinition[str]):
        name = "wrong"
        definition_key = "tests.wiring.wrong"
        only = TaskNode(fn=double, kwargs={"n": 1})

        class Meta:
            output = "only"

    with pytest.raises(WorkflowValidationError) as caught:
        Wrong.build(app)

    assert codes(caught.value) == ["HRS-025"]


@pytest.mark.parametrize("promised", [Any, int | None, int])
def test_a_promise_that_holds_is_accepted(promised: Any) -> None:
    definition: Any = type(
        f"Kept{id(promised)}",
        (WorkflowDefinition,),
        {
            "__orig_bases__": (WorkflowDefinition[promised],),
            "name": "kept",
            "definition_key": f"tests.wiring.kept.{promised}",
            "only": TaskNode(fn=double, kwargs={"n": 1}),
            "Meta": type("Meta", (), {"output": "only"}),
        },
    )

    assert definition.build(app).output.name == "flows.double"
