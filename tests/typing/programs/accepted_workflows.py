"""Workflows that must type-check, with the types they must have."""

from datetime import timedelta
from typing import Any, assert_type

from horsies import (
    EventNode,
    Horsies,
    NodeKey,
    OnError,
    SleepNode,
    SubWorkflowNode,
    SubWorkflowSummary,
    SuccessCase,
    SuccessPolicy,
    TaskError,
    TaskNode,
    TaskResult,
    WorkflowContext,
    WorkflowDefinition,
    WorkflowMeta,
    WorkflowSpec,
    from_node,
)

app = Horsies()


@app.task("load")
def load(path: str) -> TaskResult[list[int], TaskError]:
    return TaskResult(ok=[len(path)])


@app.task("count")
async def count(
    rows: TaskResult[list[int], TaskError],
    minimum: int = 0,
    workflow_ctx: WorkflowContext | None = None,
    workflow_meta: WorkflowMeta | None = None,
) -> TaskResult[int, TaskError]:
    return TaskResult(ok=len(rows.unwrap()) + minimum)


@app.task("double")
def double(n: int, times: int = 2) -> TaskResult[float, TaskError]:
    return TaskResult(ok=float(n * times))


paid = app.event("paid", int)
prices = app.event("prices", list[int])


class Import(WorkflowDefinition[int]):
    name = "import"
    definition_key = "shop.import.v1"
    load = TaskNode(fn=load, kwargs={"path": "in.csv"})
    count = TaskNode(fn=count, waits_for=[load], args_from={"rows": load})

    class Meta:
        output = "count"


class Sized(WorkflowDefinition[float]):
    name = "sized"
    definition_key = "shop.sized.v1"

    @classmethod
    def build_with(cls, app: Horsies, *, n: int) -> WorkflowSpec[float]:
        node = double.node()(n=n)
        return app.workflow("sized", [node], output=node, definition_key=cls.definition_key)


def nodes_have_the_type_of_their_result() -> None:
    assert_type(load.node()(path="in.csv"), TaskNode[list[int]])
    assert_type(TaskNode(fn=count), TaskNode[int])
    assert_type(SubWorkflowNode(workflow_def=Import), SubWorkflowNode[int])
    assert_type(paid.node(key="order-1", timeout=timedelta(hours=1)), EventNode[int])
    assert_type(Import.count, TaskNode[int])


def results_are_wired_by_type() -> None:
    loaded = load.node(node_id="load")(path="in.csv")
    counted = count.node(node_id="count", waits_for=[loaded])(rows=from_node(loaded), minimum=3)
    count.node()(rows=from_node(prices.node(key="today")))

    assert_type(from_node(counted), TaskResult[int, TaskError])
    assert_type(from_node(SleepNode(timedelta(seconds=1))), TaskResult[None, TaskError])


def a_fan_out_gives_a_list() -> None:
    loaded = load.node()(path="in.csv")
    doubled = double.node(each=from_node(loaded), max_in_flight=10)(times=3)

    assert_type(doubled, TaskNode[list[float]])
    double.node(each=from_node(loaded), each_as="times", node_id="each")(n=1)


def keys_carry_the_type() -> None:
    assert_type(Import.count.key(), NodeKey[int])
    assert_type(NodeKey[str]("name"), NodeKey[str])


def specs_have_the_type_of_their_output() -> None:
    loaded = load.node()(path="in.csv")
    wait = SleepNode(timedelta(seconds=1), waits_for=[loaded])
    policy = SuccessPolicy([SuccessCase([loaded])], optional=[wait])

    assert_type(
        app.workflow("w", [loaded, wait], output=loaded, definition_key="k"),
        WorkflowSpec[list[int]],
    )
    assert_type(
        app.workflow("w", [loaded], "pause", success_policy=policy, definition_key="k"),
        WorkflowSpec[dict[str, TaskResult[Any, TaskError] | None]],
    )
    assert_type(app.workflow("w", [loaded], OnError.FAIL, loaded), WorkflowSpec[list[int]])
    assert_type(Import.build(app), WorkflowSpec[int])
    assert_type(Sized.build_with(app, n=3), WorkflowSpec[float])
    assert_type(WorkflowSpec(name="w", tasks=[loaded], output=loaded), WorkflowSpec[list[int]])


def a_context_gives_typed_results(context: WorkflowContext) -> None:
    child = SubWorkflowNode(workflow_def=Import)

    assert_type(context.result_for(Import.load), TaskResult[list[int], TaskError])
    assert_type(context.result_for(NodeKey[str]("x")), TaskResult[str, TaskError])
    assert_type(context.summary_for(child), SubWorkflowSummary[int])


@app.workflow_builder(cases=[{"path": "in.csv"}])
def build(path: str) -> WorkflowSpec[list[int]]:
    loaded = load.node()(path=path)
    return app.workflow("w", [loaded], output=loaded, definition_key="k")


def a_builder_stays_what_it_is() -> None:
    assert_type(build("x"), WorkflowSpec[list[int]])
