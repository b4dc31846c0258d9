"""Workflows that must not type-check: exactly the lines marked `# refused` are errors."""

from horsies import (
    Horsies,
    NodeKey,
    SubWorkflowNode,
    TaskError,
    TaskNode,
    TaskResult,
    WorkflowContext,
    WorkflowDefinition,
    WorkflowSpec,
    from_node,
)

app = Horsies()


@app.task("load")
def load(path: str) -> TaskResult[list[int], TaskError]:
    return TaskResult(ok=[len(path)])


@app.task("count")
def count(rows: TaskResult[list[int], TaskError], minimum: int = 0) -> TaskResult[int, TaskError]:
    return TaskResult(ok=len(rows.unwrap()) + minimum)


paid = app.event("paid", int)
loaded = load.node()(path="in.csv")
counted = count.node()(rows=from_node(loaded))


class Sized(WorkflowDefinition[int]):
    @classmethod
    def build_with(cls, app: Horsies, *, n: int) -> WorkflowSpec[int]:
        node = count.node()(rows=from_node(loaded), minimum=n)
        return app.workflow("sized", [loaded, node], output=node, definition_key="k")


class Import(WorkflowDefinition[int]):
    name = "import"
    definition_key = "shop.import.v1"
    load = TaskNode(fn=load, kwargs={"path": "in.csv"})


def wrong_arguments() -> None:
    load.node()()  # refused
    load.node()(path=3)  # refused
    load.node()(paht="in.csv")  # refused
    count.node()(rows=[1, 2])  # refused
    count.node()(rows=from_node(loaded), minimum="3")  # refused


def wrong_wiring() -> None:
    count.node()(rows=from_node(counted))  # refused
    count.node()(rows=from_node(paid.node(key="k")))  # refused
    from_node(load)  # refused
    count.node(each=from_node(counted))  # refused
    count.node(each=[1, 2])  # refused


def wrong_options() -> None:
    load.node(args=("in.csv",))  # refused
    load.node(join="most")  # refused
    load.node(waits_for=[load])  # refused
    load.node(priority="high")  # refused
    load.node(max_in_flight=3)  # refused
    paid.node(key=5)  # refused
    SubWorkflowNode(workflow_def=load)  # refused


def wrong_types(context: WorkflowContext) -> None:
    text: TaskNode[str] = load.node()(path="x")  # refused
    key: NodeKey[str] = Import.load.key()  # refused
    spec: WorkflowSpec[str] = Import.build(app)  # refused
    result: TaskResult[str, TaskError] = context.result_for(Import.load)  # refused
    app.workflow("w", [loaded], "ignore")  # refused
    Sized.build_with(app, n="3")  # refused
    Sized.build_with(app)  # refused
    print(text, key, spec, result)
