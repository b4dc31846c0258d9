"""Each rule of docs/contract/workflows.md §11, broken on purpose."""

import datetime as dt
import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

from horsies import (
    SleepNode,
    SubWorkflowNode,
    SuccessCase,
    SuccessPolicy,
    TaskError,
    TaskFunction,
    TaskNode,
    TaskResult,
    WorkflowDefinition,
    WorkflowSpec,
    WorkflowValidationError,
)
from horsies.errors import HorsiesError, MultipleValidationErrors
from horsies.workflows.start_checks import start_problems
from support.flows import (
    Doubled,
    Numbers,
    add,
    anything,
    app,
    codes,
    count,
    custom_app,
    double,
    fast,
    load,
    nothing,
    problems,
    report,
    spec_of,
)

node_of: Any = TaskNode
child_of: Any = SubWorkflowNode


class Keyless(WorkflowDefinition[int]):
    name = "keyless"
    only = TaskNode(fn=double, kwargs={"n": 1})


class Inheriting(Numbers):
    name = "inheriting"


class Open(WorkflowDefinition[int]):
    name = "open"
    definition_key = "tests.validation.open"

    @classmethod
    def build_with(cls, app: Any, **params: Any) -> WorkflowSpec[int]:
        node = double.node()(n=len(params))
        return app.workflow("open", [node], output=node, definition_key=cls.definition_key)


def a() -> TaskNode[list[int]]:
    return TaskNode(fn=load, node_id="a")


def foreign() -> WorkflowSpec[Any]:
    return spec_of(TaskNode(fn=load, waits_for=[a()]), a())


def ring() -> WorkflowSpec[Any]:
    first, second = node_of(fn=load, node_id="a"), node_of(fn=load, node_id="b")
    first.waits_for, second.waits_for = [second], [first]
    return spec_of(first, second)


def cycle_with_root() -> WorkflowSpec[Any]:
    root, first, second = a(), node_of(fn=load, node_id="b"), node_of(fn=load, node_id="c")
    first.waits_for, second.waits_for = [root, second], [first]
    return spec_of(root, first, second)


def joined(**options: Any) -> WorkflowSpec[Any]:
    root = a()
    return spec_of(root, node_of(fn=load, waits_for=[root], **options))


def after_a(**options: Any) -> WorkflowSpec[Any]:
    root = a()
    fn = options.pop("fn", count)
    given = {key: value(root) if callable(value) else value for key, value in options.items()}
    return spec_of(root, node_of(**{"fn": fn, "waits_for": [root], **given}))


def policy(make: Callable[[Any], Any], optional: Any = None) -> WorkflowSpec[Any]:
    root = a()
    return spec_of(root, success_policy=SuccessPolicy(make(root), optional=optional))


def with_positional() -> WorkflowSpec[Any]:
    node: Any = a()
    node.args = (1,)
    return spec_of(node)


def child(definition: Any, **options: Any) -> WorkflowSpec[Any]:
    return spec_of(child_of(workflow_def=definition, node_id="child", **options))


ROWS: list[tuple[str, Callable[[], Any], list[str], str]] = [
    ("no name", lambda: WorkflowSpec(name=" ", tasks=[a()]), ["HRS-001"], "name"),
    ("no nodes", spec_of, ["HRS-002"], "has no tasks"),
    ("foreign dependency", foreign, ["HRS-006"], "not in workflow"),
    ("ring", ring, ["HRS-005", "HRS-007"], "no root tasks found"),
    ("cycle", cycle_with_root, ["HRS-007"], "cycle detected in workflow DAG"),
    (
        "source not awaited",
        lambda: after_a(args_from=lambda root: {"rows": root}, waits_for=[]),
        ["HRS-008"],
        "not in waits_for",
    ),
    (
        "context not awaited",
        lambda: after_a(fn=report, workflow_ctx_from=lambda root: [root], waits_for=[]),
        ["HRS-009"],
        "not in waits_for",
    ),
    (
        "no context parameter",
        lambda: after_a(fn=nothing, workflow_ctx_from=lambda root: [root]),
        ["HRS-010"],
        "missing workflow_ctx param",
    ),
    ("foreign output", lambda: spec_of(a(), output=a()), ["HRS-011"], "not in workflow"),
    ("no cases", lambda: policy(lambda root: []), ["HRS-012"], "at least one SuccessCase"),
    (
        "empty case",
        lambda: policy(lambda root: [SuccessCase([])]),
        ["HRS-012"],
        "has no required tasks",
    ),
    (
        "foreign case",
        lambda: policy(lambda root: [SuccessCase([a()])]),
        ["HRS-012"],
        "not in workflow",
    ),
    (
        "foreign optional",
        lambda: policy(lambda root: [SuccessCase([root])], [a()]),
        ["HRS-012"],
        "not in workflow",
    ),
    ("unknown join", lambda: joined(join="most"), ["HRS-013"], "unknown join"),
    ("no quorum", lambda: joined(join="quorum"), ["HRS-013"], "min_success is not set"),
    ("quorum 0", lambda: joined(join="quorum", min_success=0), ["HRS-013"], "must be >= 1"),
    (
        "quorum 2 of 1",
        lambda: joined(join="quorum", min_success=2),
        ["HRS-013"],
        "exceeds dependency count",
    ),
    (
        "quorum of any",
        lambda: joined(join="any", min_success=1),
        ["HRS-013"],
        "only used with join='quorum'",
    ),
    ("priority 0", lambda: joined(priority=0), ["HRS-015"], "priority"),
    ("priority 101", lambda: joined(priority=101), ["HRS-015"], "priority"),
    ("keyless child", lambda: child(Keyless), ["HRS-016"], "definition_key"),
    ("no definition", lambda: child(5), ["HRS-016"], "must be a WorkflowDefinition"),
    ("inherited key", lambda: child(Inheriting), ["HRS-016"], "definition_key"),
    (
        "unknown kwarg",
        lambda: spec_of(node_of(fn=load, kwargs={"paht": "x"})),
        ["HRS-019"],
        "paht",
    ),
    (
        "unknown source",
        lambda: after_a(fn=nothing, args_from=lambda root: {"rows": root}),
        ["HRS-019"],
        "rows",
    ),
    (
        "unknown child parameter",
        lambda: child(Doubled, kwargs={"n": 1, "m": 2}),
        ["HRS-019"],
        "'m'",
    ),
    ("missing parameter", lambda: spec_of(node_of(fn=add)), ["HRS-020"], "left, right"),
    ("missing child parameter", lambda: child(Doubled), ["HRS-020"], "needs n"),
    (
        "kwargs and args_from",
        lambda: after_a(kwargs={"rows": TaskResult(ok=[1])}, args_from=lambda r: {"rows": r}),
        ["HRS-021"],
        "rows",
    ),
    ("parameters nobody takes", lambda: child(Numbers, kwargs={"n": 1}), ["HRS-022"], "Numbers"),
    ("parameter app", lambda: child(Open, kwargs={"app": 1}), ["HRS-023"], "app"),
    ("parameter cls", lambda: child(Open, kwargs={"cls": 1}), ["HRS-023"], "cls"),
    (
        "wrong type",
        lambda: after_a(fn=report, args_from=lambda root: {"total": root}),
        ["HRS-024"],
        "does not fit",
    ),
    ("arguments on a node", with_positional, ["HRS-026"], "positional"),
    ("NaN", lambda: spec_of(node_of(fn=anything, kwargs={"x": math.nan})), ["HRS-031"], "NaN|nan"),
    (
        "equal keys",
        lambda: spec_of(node_of(fn=anything, kwargs={"x": {1: "a", "1": "b"}})),
        ["HRS-031"],
        "same as text",
    ),
    (
        "unfit value",
        lambda: spec_of(node_of(fn=double, kwargs={"n": "many"})),
        ["HRS-031"],
        "parameter 'n'",
    ),
    (
        "no shape",
        lambda: spec_of(node_of(fn=anything, kwargs={"x": object()})),
        ["HRS-031"],
        "object",
    ),
    (
        "naive deadline",
        lambda: joined(good_until=dt.datetime(2030, 1, 1)),  # noqa: DTZ001
        ["none"],
        "good_until must be a timezone-aware",
    ),
    ("not a node", lambda: spec_of(load), ["HRS-002"], "not a node"),
]


@pytest.mark.parametrize(
    ("build", "expected", "text"), [row[1:] for row in ROWS], ids=[row[0] for row in ROWS]
)
def test_a_broken_rule_has_its_code_and_text(
    build: Callable[[], Any], expected: list[str], text: str
) -> None:
    with pytest.raises(HorsiesError, match=text) as caught:
        build()

    assert codes(caught.value) == expected
    assert all(isinstance(error, WorkflowValidationError) for error in problems(caught.value))


def test_other_errors_are_collected() -> None:
    with pytest.raises(MultipleValidationErrors) as caught:
        spec_of(node_of(fn=add, kwargs={"middle": 1}, join="most"))

    assert caught.value.report.phase_name == "workflow"
    assert sorted(codes(caught.value)) == ["HRS-013", "HRS-019", "HRS-020"]


def test_the_first_note_names_the_nodes_of_the_cycle() -> None:
    with pytest.raises(WorkflowValidationError) as caught:
        cycle_with_root()

    assert set(caught.value.notes[0].split(" -> ")) == {"b", "c"}


def test_a_failed_construction_touches_nothing() -> None:
    good, bad = TaskNode(fn=load), node_of(fn=add)

    with pytest.raises(WorkflowValidationError):
        spec_of(good, bad)

    assert (good.node_id, good.index, bad.node_id) == (None, None, None)


def test_keys_taken_by_var_kwargs_are_not_checked() -> None:
    root = a()
    spec = spec_of(
        root,
        node_of(fn=anything, kwargs={"x": 1}, waits_for=[root], args_from={"y": root}),
        child_of(workflow_def=Open, kwargs={"z": 1}, waits_for=[root], args_from={"y": root}),
    )

    assert [node.kwargs_json for node in spec.tasks[1:]] == ['{"x":1}', '{"z":1}']


def test_injected_parameters_count_as_provided() -> None:
    from horsies import WorkflowContext, WorkflowMeta

    def told(workflow_ctx: WorkflowContext, workflow_meta: WorkflowMeta) -> None: ...

    task: Any = app.task("validation.told", _returning(told))
    root = a()

    assert spec_of(root, node_of(fn=task, waits_for=[root], workflow_ctx_from=[root]))
    with pytest.raises(WorkflowValidationError) as caught:
        spec_of(node_of(fn=task))  # nothing would be injected for workflow_ctx
    assert codes(caught.value) == ["HRS-020"]


def _returning(function: Any) -> Any:
    function.__annotations__["return"] = TaskResult[None, TaskError]
    return function


@dataclass
class Stub(TaskFunction[Any, Any]):
    """A task function of the user's own, with nothing but a name, a type and a signature."""

    task_name: str
    task_ok_type: Any = None

    def __call__(self, rows: TaskResult[list[int], TaskError], limit: int = 1) -> Any: ...
    def send(self, *args: Any, **kwargs: Any) -> Any: ...
    async def send_async(self, *args: Any, **kwargs: Any) -> Any: ...
    def schedule(self, delay: int, *args: Any, **kwargs: Any) -> Any: ...
    def with_options(self, **changes: Any) -> Any: ...
    def retry_send(self, error: Any) -> Any: ...
    async def retry_send_async(self, error: Any) -> Any: ...
    def retry_schedule(self, error: Any) -> Any: ...
    def node(self, **options: Any) -> Any: ...


@pytest.mark.parametrize(
    ("source", "options", "expected"),
    [
        (Stub("s", list[int]), {"kwargs": {"limit": 3}}, []),
        (Stub("s", list[int]), {"kwargs": {"limt": 3}}, ["HRS-019"]),
        (Stub("s", str), {}, ["HRS-024"]),
        (Stub("s", None), {}, ["HRS-024"]),
    ],
    ids=["fits", "unknown key", "wrong type", "unknown type"],
)
def test_checks_work_on_any_object_with_a_signature(
    source: Any, options: dict[str, Any], expected: list[str]
) -> None:
    first = node_of(fn=source, kwargs={"rows": TaskResult(ok=[1])})
    second = node_of(fn=Stub("t"), waits_for=[first], args_from={"rows": first}, **options)

    if not expected:
        assert len(spec_of(first, second).tasks) == 2
        return
    with pytest.raises(WorkflowValidationError) as caught:
        spec_of(first, second)
    assert codes(caught.value) == expected


def test_nested_definitions_must_not_contain_each_other() -> None:
    class Outer(WorkflowDefinition[int]):
        name = "outer"
        definition_key = "tests.validation.outer"

    class Inner(WorkflowDefinition[int]):
        name = "inner"
        definition_key = "tests.validation.inner"
        outer = SubWorkflowNode(workflow_def=Outer)

    vars_of: Any = Outer
    vars_of.inner = SubWorkflowNode(workflow_def=Inner)

    with pytest.raises(WorkflowValidationError, match="cycle detected in workflow DAG") as caught:
        Outer.build(app)

    assert codes(caught.value) == ["HRS-007"]
    assert "Inner" in caught.value.notes[0]


@pytest.mark.parametrize(
    ("make", "app_of_broker", "expected"),
    [
        (lambda: spec_of(a(), definition_key="k"), app, ["HRS-014", "HRS-015"]),
        (lambda: spec_of(node_of(fn=load, queue="q", priority=1)), app, ["HRS-016"]),
        (lambda: app.workflow("w", [a()], definition_key="k"), None, []),
        (
            lambda: app.workflow("w", [child_of(workflow_def=Numbers)], definition_key="k"),
            None,
            ["HRS-018"],
        ),
        (
            lambda: app.workflow("w", [child_of(workflow_def=Numbers)], definition_key="k"),
            app,
            [],
        ),
        (
            lambda: spec_of(SleepNode(dt.timedelta(1)), definition_key="k"),
            None,
            [],
        ),
    ],
    ids=["no queue", "no key", "complete", "no app", "app", "sleep"],
)
def test_a_start_checks_what_construction_left_open(
    make: Any, app_of_broker: Any, expected: list[str]
) -> None:
    found = [error.code.value for error in start_problems(make(), app_of_broker) if error.code]

    assert found == expected


@pytest.mark.parametrize(
    ("build", "code"),
    [
        (lambda: app.workflow("w", [node_of(fn=load, queue="q")], definition_key="k"), "HRS-200"),
        (
            lambda: custom_app.workflow("w", [node_of(fn=fast, queue="q")], definition_key="k"),
            "HRS-103",
        ),
        (lambda: app.workflow("w", [a()]), "HRS-016"),
        (lambda: app.workflow("w", [a()], definition_key=" "), "HRS-016"),
        (lambda: app.workflow(" ", [a()], definition_key="k"), "HRS-001"),
    ],
    ids=["queue in DEFAULT", "unknown queue", "no key", "blank key", "blank name"],
)
def test_an_app_checks_queues_key_and_name(build: Callable[[], Any], code: str) -> None:
    with pytest.raises(HorsiesError) as caught:
        build()

    assert codes(caught.value) == [code]


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, ("fast", 7)),
        ({"queue": "slow"}, ("slow", 70)),
        ({"priority": 3}, ("fast", 3)),
        ({"queue": "slow", "priority": 3}, ("slow", 3)),
    ],
)
def test_an_app_resolves_queue_and_priority(
    options: dict[str, Any], expected: tuple[str, int]
) -> None:
    node = node_of(fn=fast, **options)

    spec = custom_app.workflow("w", [node], definition_key="k")

    first: Any = spec.tasks[0]
    assert (first.queue, first.priority) == expected
    assert (node.queue, node.priority) == (options.get("queue"), options.get("priority"))
    assert spec.broker is custom_app.get_broker()


@pytest.mark.parametrize("queue", [None, "default"])
def test_in_default_mode_there_is_one_queue(queue: str | None) -> None:
    spec = app.workflow("w", [node_of(fn=load, queue=queue)], definition_key="k")

    first: Any = spec.tasks[0]
    assert (first.queue, first.priority) == ("default", 100)


def test_many_errors_are_reported_quickly() -> None:
    nodes = [node_of(fn=add) for _ in range(10_000)]
    started = time.process_time()

    with pytest.raises(MultipleValidationErrors) as caught:
        spec_of(*nodes)

    assert len(caught.value.report.errors) == 10_000
    assert time.process_time() - started < 5  # half a second on an idle machine


@pytest.mark.parametrize("is_deep", [True, False], ids=["10,000 levels", "10,000 in a row"])
def test_large_graphs_are_checked_quickly(is_deep: bool) -> None:
    nodes = [node_of(fn=double, kwargs={"n": 0})]
    for n in range(9_998):
        awaited = nodes[-1:] if is_deep else nodes[:1]
        nodes.append(node_of(fn=double, kwargs={"n": n}, waits_for=awaited))
    nodes.append(node_of(fn=double, kwargs={"n": 1}, waits_for=nodes[-1:] if is_deep else [*nodes]))
    started = time.process_time()

    spec = spec_of(*nodes)

    assert len(spec.tasks) == 10_000
    assert time.process_time() - started < 5  # about one second on an idle machine
