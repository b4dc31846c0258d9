"""Workflows as classes: keys, nodes, builds."""

import sys
from pathlib import Path
from typing import Any, Generic, TypeVar

import pytest

from horsies import (
    OnError,
    SubWorkflowNode,
    SuccessCase,
    SuccessPolicy,
    TaskNode,
    WorkflowDefinition,
    WorkflowSpec,
    WorkflowValidationError,
)
from horsies.workflows.calls import build_codec
from horsies.workflows.definition import find_definition
from horsies.workflows.nodes import UNKNOWN_TYPE
from support.flows import Doubled, Numbers, app, codes, count, double, load

T = TypeVar("T")
first_step = TaskNode(fn=load)


class Import(WorkflowDefinition[int]):
    name = "import"
    definition_key = "tests.definitions.import"
    load = first_step
    count = TaskNode(fn=count, waits_for=[first_step], args_from={"rows": first_step})
    named = TaskNode(fn=load, node_id="given")

    class Meta:
        output = "count"
        on_error = OnError.PAUSE
        success_policy = SuccessPolicy([SuccessCase([first_step])])


def test_nodes_are_collected_in_the_order_of_their_definition() -> None:
    assert Import.get_workflow_nodes() == [Import.load, Import.count, Import.named]


def test_attribute_names_become_ids_when_the_class_is_made() -> None:
    assert [node.node_id for node in Import.get_workflow_nodes()] == ["load", "count", "given"]


def test_a_build_uses_meta_and_the_key() -> None:
    spec: Any = Import.build(app)

    assert (spec.name, spec.definition_key) == ("import", "tests.definitions.import")
    assert spec.workflow_def_cls is Import
    assert spec.on_error is OnError.PAUSE
    assert spec.output is spec.tasks[1]
    assert spec.success_policy.cases[0].required == (spec.tasks[0],)
    assert spec.broker is app.get_broker()


def test_meta_may_name_the_node_itself() -> None:
    step = TaskNode(fn=double, kwargs={"n": 1})

    class Direct(WorkflowDefinition[int]):
        name = "direct"
        definition_key = "tests.definitions.direct"
        only = step

        class Meta:
            output = step

    spec = Direct.build(app)

    assert spec.output is spec.tasks[0]


def test_without_meta_there_are_defaults() -> None:
    class Plain(WorkflowDefinition[Any]):
        name = "plain"
        definition_key = "tests.definitions.plain"
        only = TaskNode(fn=load)

    spec = Plain.build(app)

    assert (spec.output, spec.on_error, spec.success_policy) == (None, OnError.FAIL, None)


def test_builds_are_independent_and_leave_the_class_alone() -> None:
    first, second = Import.build(app), Import.build(app)

    assert first.tasks[0] is not second.tasks[0]
    assert first.tasks[0] is not Import.load
    assert (Import.load.index, Import.load.queue, Import.load.priority) == (None, None, None)


@pytest.mark.parametrize(
    ("attributes", "code", "text"),
    [
        ({"definition_key": "k1", "only": TaskNode(fn=load)}, "HRS-001", "must define a 'name'"),
        ({"name": "x", "definition_key": "k2"}, "HRS-002", "has no TaskNode"),
        ({"name": "x", "only": TaskNode(fn=load)}, "HRS-016", "definition_key"),
        (
            {"name": "x", "definition_key": " ", "only": TaskNode(fn=load)},
            "HRS-016",
            "definition_key",
        ),
    ],
    ids=["no name", "no nodes", "no key", "blank key"],
)
def test_an_incomplete_definition_cannot_be_built(
    attributes: dict[str, Any], code: str, text: str
) -> None:
    definition: Any = type(f"Incomplete{code[-1]}", (WorkflowDefinition,), attributes)

    with pytest.raises(WorkflowValidationError, match=text) as caught:
        definition.build(app)

    assert codes(caught.value) == [code]


def test_a_key_is_not_inherited() -> None:
    class Heir(Import):
        name = "heir"

    assert Heir.get_own_key() is None
    with pytest.raises(WorkflowValidationError) as caught:
        Heir.build(app)
    assert codes(caught.value) == ["HRS-016"]


def test_a_key_is_registered_when_the_class_is_made() -> None:
    assert find_definition("tests.definitions.import") is Import
    assert find_definition("tests.definitions.nowhere") is None


def test_a_key_names_one_class() -> None:
    with pytest.raises(WorkflowValidationError) as caught:

        class Other(WorkflowDefinition[int]):
            name = "other"
            definition_key = "tests.definitions.import"

    assert codes(caught.value) == ["HRS-017"]
    assert find_definition("tests.definitions.import") is Import


def test_a_reloaded_module_replaces_its_definition(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import importlib

    (tmp_path / "reloaded_flow.py").write_text(
        "from horsies import WorkflowDefinition\n"
        "class Again(WorkflowDefinition[int]):\n"
        "    definition_key = 'tests.definitions.reloaded'\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    module = importlib.import_module("reloaded_flow")
    before = find_definition("tests.definitions.reloaded")

    importlib.reload(module)

    assert find_definition("tests.definitions.reloaded") is module.Again is not before
    del sys.modules["reloaded_flow"]


def test_a_subclass_has_the_nodes_of_its_base() -> None:
    class Longer(Import):
        name = "longer"
        definition_key = "tests.definitions.longer"
        extra = TaskNode(fn=load)

    assert [n.node_id for n in Longer.get_workflow_nodes()] == ["load", "count", "given", "extra"]


def test_build_with_ignores_parameters_by_default() -> None:
    spec = Import.build_with(app, path="other.csv", limit=5)

    assert len(spec.tasks) == 3
    assert not Import.takes_parameters()


def test_an_overridden_build_with_uses_them_and_takes_the_key() -> None:
    spec = Doubled.build_with(app, n=5)

    first: Any = spec.tasks[0]
    assert dict(first.kwargs) == {"n": 5}
    assert (spec.definition_key, spec.workflow_def_cls) == ("tests.flows.doubled", Doubled)


def test_stored_parameters_are_read_by_the_annotations_of_build_with() -> None:
    text = '{"n":5,"base":{"__horsies_taskresult__":true,"data":"{\\"ok\\":2}"}}'
    codec = build_codec(Doubled.build_with)

    _, params = codec.decode(None, text).unwrap()
    spec = Doubled.build_with(app, **params)

    first: Any = spec.tasks[0]
    assert dict(first.kwargs) == {"n": 7}
    assert codec.decode(None, "{}").is_err()


class Cached(WorkflowDefinition[int]):
    name = "cached"
    definition_key = "tests.definitions.cached"
    kept: WorkflowSpec[int] | None = None

    @classmethod
    def build_with(cls, app: Any, **params: Any) -> Any:
        if Cached.kept is None:
            node = double.node()(n=1)
            Cached.kept = app.workflow("c", [node], output=node, definition_key="other")
        return Cached.kept


class CachedHeir(Cached):
    definition_key = "tests.definitions.cached-heir"


def test_build_with_must_return_a_spec_of_this_call() -> None:
    first = Cached.build_with(app)

    assert first.definition_key == "tests.definitions.cached"
    for definition in (Cached, CachedHeir):
        with pytest.raises(WorkflowValidationError, match="not constructed during this call"):
            definition.build_with(app)


def test_build_with_must_return_a_spec() -> None:
    class Nothing(WorkflowDefinition[int]):
        definition_key = "tests.definitions.nothing"

        @classmethod
        def build_with(cls, app: Any, **params: Any) -> Any:
            return None

    with pytest.raises(WorkflowValidationError, match="not constructed during this call"):
        Nothing.build_with(app)


def test_a_subclass_gets_its_own_key_from_an_inherited_build_with() -> None:
    class Heir(Doubled):
        definition_key = "tests.definitions.heir"

    spec = Heir.build_with(app, n=1)

    assert (spec.definition_key, spec.workflow_def_cls) == ("tests.definitions.heir", Heir)


def test_build_with_keeps_the_promise_of_the_class() -> None:
    class Wrong(WorkflowDefinition[str]):
        definition_key = "tests.definitions.wrong-output"

        @classmethod
        def build_with(cls, app: Any, **params: Any) -> Any:
            node = double.node()(n=1)
            return app.workflow("w", [node], output=node, definition_key="any")

    with pytest.raises(WorkflowValidationError) as caught:
        Wrong.build_with(app)

    assert codes(caught.value) == ["HRS-025"]


def test_build_with_must_be_a_classmethod() -> None:
    with pytest.raises(WorkflowValidationError) as caught:
        type("Loose", (WorkflowDefinition,), {"build_with": lambda app: None})

    assert codes(caught.value) == ["HRS-023"]


def test_a_recursion_that_parameters_end_is_no_cycle() -> None:
    class Countdown(WorkflowDefinition[Any]):
        name = "countdown"
        definition_key = "tests.definitions.countdown"

        @classmethod
        def build_with(cls, app: Any, *, n: int) -> Any:
            step: Any = double.node()(n=n)
            below = [SubWorkflowNode(workflow_def=cls, kwargs={"n": n - 1})] if n else []
            return app.workflow("countdown", [step, *below], definition_key=cls.definition_key)

    assert [len(Countdown.build_with(app, n=n).tasks) for n in (2, 0)] == [2, 1]


class Base(WorkflowDefinition[T], Generic[T]):
    """A base that leaves its type open."""


class Concrete(Base[list[int]]):
    """Its type comes from the base."""


class Further(Concrete):
    """Its type comes from further up."""


class Bare(WorkflowDefinition):  # type: ignore[type-arg]
    """It declares no type."""


@pytest.mark.parametrize(
    ("definition", "expected"),
    [
        (Numbers, int),
        (Concrete, list[int]),
        (Further, list[int]),
        (Bare, UNKNOWN_TYPE),
        (Base, UNKNOWN_TYPE),
    ],
)
def test_the_type_of_a_definition_is_what_it_declares(definition: Any, expected: Any) -> None:
    assert definition.get_ok_type() == expected
