"""`x()` blocks, `x_async()` awaits; what the contract names as awaitable has a `_sync` twin."""

import inspect

import pytest

from horsies import Horsies, PostgresBroker, TaskHandle, TaskSendOptions
from horsies.operations.operations import Operations
from horsies.operations.viewing import Viewing
from horsies.scheduling.schedules import Schedules
from horsies.sending.task_function import RegisteredTask

CLASSES = [
    Horsies,
    Operations,
    PostgresBroker,
    TaskHandle,
    TaskSendOptions,
    RegisteredTask,
    Schedules,
    Viewing,
]
PAIRS = [
    pytest.param(cls, name.removesuffix(suffix), name, id=f"{cls.__name__}.{name}")
    for cls in CLASSES
    for name in vars(cls)
    for suffix in ("_async", "_sync")
    if name.endswith(suffix) and not name.startswith("_")
]


@pytest.mark.parametrize(("cls", "name", "twin"), PAIRS)
def test_twins_differ_only_in_who_waits(cls: type, name: str, twin: str) -> None:
    first, second = getattr(cls, name), getattr(cls, twin)
    is_second_awaitable = twin.endswith("_async")

    assert inspect.iscoroutinefunction(second) is is_second_awaitable
    assert inspect.iscoroutinefunction(first) is not is_second_awaitable
    assert inspect.signature(first) == inspect.signature(second)


def test_every_class_has_twins() -> None:
    assert {param.values[0] for param in PAIRS} == set(CLASSES)
