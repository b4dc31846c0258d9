"""`build_with` is user code: it runs once, and what it does costs its own node at most."""

import asyncio
import threading
from collections.abc import Callable
from datetime import timedelta
from typing import Any, ClassVar

import pytest

from horsies import Horsies, SleepNode, SubWorkflowNode, TaskError, TaskResult, WorkflowDefinition
from horsies.workflows import subworkflow
from support.apps import good, make_app, working

NewApp = Callable[..., Horsies]


class Raising(WorkflowDefinition[int]):
    """A child whose `build_with` raises what the test says."""

    name = "raising"
    definition_key = "tests.building.raising"
    error: ClassVar[BaseException] = RuntimeError()

    @classmethod
    def build_with(cls, app: Any) -> Any:
        raise cls.error


class Hanging(WorkflowDefinition[int]):
    """A child whose `build_with` does not end until the test does."""

    name = "hanging"
    definition_key = "tests.building.hanging"
    gate: ClassVar[threading.Event] = threading.Event()

    @classmethod
    def build_with(cls, app: Any) -> Any:
        cls.gate.wait(60)
        raise RuntimeError("too late")


class Counted(WorkflowDefinition[int]):
    """A child that counts how often it is built."""

    name = "counted"
    definition_key = "tests.building.counted"
    count: ClassVar[int] = 0

    @classmethod
    def build_with(cls, app: Any) -> Any:
        cls.count += 1
        node = app.tasks["number"].node(node_id="n")(value=7)
        return app.workflow("counted", [node], output=node, definition_key="x")


def with_tasks(app: Horsies) -> Horsies:
    @app.task("number")
    async def number(value: int) -> TaskResult[int, TaskError]:
        return TaskResult(ok=value)

    return app


@pytest.fixture
def app(new_app: NewApp) -> Horsies:
    return with_tasks(new_app())


def spec_of(app: Horsies, node: Any) -> Any:
    return app.workflow("parent", [node], output=node, definition_key="parent.1")


@pytest.mark.parametrize(
    "error",
    [SystemExit(0), KeyboardInterrupt(), RuntimeError("a\x00b"), RuntimeError("\ud800")],
    ids=["exit", "interrupt", "nul", "surrogate"],
)
async def test_build_that_raises_anything_fails_its_node_alone(
    app: Horsies, error: BaseException
) -> None:
    Raising.error = error
    broken = spec_of(app, SubWorkflowNode(workflow_def=Raising, node_id="n"))
    sound = spec_of(app, SubWorkflowNode(workflow_def=Counted, node_id="n"))

    async with working(app):
        handles = [good(await spec.start_async()) for spec in (broken, sound)]
        failed, done = [await handle.get_async(20_000) for handle in handles]

    assert failed.err_value.error_code == "WORKFLOW_ENQUEUE_FAILED"
    assert done.unwrap() == 7


async def test_build_that_hangs_stops_neither_waits_nor_other_builds(
    app: Horsies, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(subworkflow, "LIMIT_S", 1.0)
    Hanging.gate.clear()
    hanging = spec_of(app, SubWorkflowNode(workflow_def=Hanging, node_id="n"))
    asleep = spec_of(app, SleepNode(timedelta(milliseconds=10), node_id="n"))
    sound = spec_of(app, SubWorkflowNode(workflow_def=Counted, node_id="n"))

    try:
        async with working(app):
            handles = [good(await spec.start_async()) for spec in (hanging, asleep, sound)]
            hung, slept, done = [await handle.get_async(20_000) for handle in handles]
    finally:
        Hanging.gate.set()

    assert "has not ended" in hung.err_value.message
    assert slept.is_ok()
    assert done.unwrap() == 7


async def test_child_is_built_once_by_several_workers(database_url: str) -> None:
    apps = [with_tasks(make_app(database_url)) for _ in range(3)]
    Counted.count = 0
    spec = spec_of(apps[0], SubWorkflowNode(workflow_def=Counted, node_id="n"))

    async with working(apps[0]), working(apps[1]), working(apps[2]):
        handles = [good(await spec.start_async()) for _ in range(5)]
        results = await asyncio.gather(*(handle.get_async(20_000) for handle in handles))

    assert [result.unwrap() for result in results] == [7] * 5
    assert Counted.count == 5
    for app in apps:
        await app.get_broker().close_async()
