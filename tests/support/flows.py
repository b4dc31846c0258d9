"""Tasks and workflows for tests that never run them."""

from typing import Any

from horsies import (
    AppConfig,
    CustomQueueConfig,
    Horsies,
    PostgresConfig,
    QueueMode,
    TaskError,
    TaskNode,
    TaskResult,
    WorkflowContext,
    WorkflowDefinition,
    WorkflowMeta,
    WorkflowSpec,
)
from horsies.errors import HorsiesError, MultipleValidationErrors
from support.codec_models import Horse, RaceHorse

BROKER = PostgresConfig(database_url="postgresql://localhost/horses")
app = Horsies(AppConfig(broker=BROKER))
custom_app = Horsies(
    AppConfig(
        broker=BROKER,
        queue_mode=QueueMode.CUSTOM,
        custom_queues=[
            CustomQueueConfig(name="fast", priority=7),
            CustomQueueConfig(name="slow", priority=70),
        ],
    )
)


@app.task("flows.load")
def load(path: str = "in.csv") -> TaskResult[list[int], TaskError]:
    return TaskResult(ok=[len(path)])


@app.task("flows.count")
def count(rows: TaskResult[list[int], TaskError], minimum: int = 0) -> TaskResult[int, TaskError]:
    return TaskResult(ok=len(rows.unwrap()) + minimum)


@app.task("flows.double")
def double(n: int, times: int = 2) -> TaskResult[int, TaskError]:
    return TaskResult(ok=n * times)


@app.task("flows.add")
def add(left: int, right: int) -> TaskResult[int, TaskError]:
    return TaskResult(ok=left + right)


@app.task("flows.nothing")
def nothing() -> TaskResult[None, TaskError]:
    return TaskResult(ok=None)


@app.task("flows.anything")
def anything(**values: Any) -> TaskResult[Any, TaskError]:
    return TaskResult(ok=values)


@app.task("flows.report")
def report(
    total: TaskResult[int, TaskError] | None = None,
    workflow_ctx: WorkflowContext | None = None,
    workflow_meta: WorkflowMeta | None = None,
) -> TaskResult[str, TaskError]:
    return TaskResult(ok=f"{total} {workflow_ctx} {workflow_meta}")


@app.task("flows.foal")
def foal(name: str = "Fury") -> TaskResult[RaceHorse, TaskError]:
    return TaskResult(ok=RaceHorse(name=name, age=1, wins=0))


@app.task("flows.feed")
def feed(horse: TaskResult[Horse, TaskError]) -> TaskResult[None, TaskError]:
    return TaskResult(ok=None)


@custom_app.task("flows.custom", queue_name="fast")
def fast(n: int = 0) -> TaskResult[int, TaskError]:
    return TaskResult(ok=n)


class Numbers(WorkflowDefinition[int]):
    """A child workflow without parameters."""

    name = "numbers"
    definition_key = "tests.flows.numbers"
    first = TaskNode(fn=double, kwargs={"n": 1})

    class Meta:
        output = "first"


class Doubled(WorkflowDefinition[int]):
    """A child workflow with parameters."""

    name = "doubled"
    definition_key = "tests.flows.doubled"

    @classmethod
    def build_with(
        cls, app: Horsies, *, n: int, base: TaskResult[int, TaskError] | None = None
    ) -> WorkflowSpec[int]:
        node = double.node(node_id="double")(n=n if base is None else n + base.unwrap())
        return app.workflow("doubled", [node], output=node, definition_key=cls.definition_key)


def problems(error: HorsiesError) -> list[HorsiesError]:
    """The errors in an error, one or many."""
    return error.report.errors if isinstance(error, MultipleValidationErrors) else [error]


def codes(error: HorsiesError) -> list[str]:
    """The HRS codes in an error, in their order."""
    return [found.code.value if found.code else "none" for found in problems(error)]


def spec_of(*nodes: Any, **fields: Any) -> WorkflowSpec[Any]:
    """Make a spec without an app."""
    return WorkflowSpec(name="flow", tasks=nodes, **fields)
