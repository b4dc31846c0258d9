"""Task names: known, unknown, taken."""

from pathlib import Path

import pytest

from horsies.codes import ErrorCode
from horsies.errors import DuplicateTaskNameError, NotRegistered, SourceLocation
from horsies.tasks.registry import TaskRegistry

HERE = SourceLocation("stable/tasks.py", 10)


def test_registered_tasks_are_a_mapping_in_order() -> None:
    registry: TaskRegistry[str] = TaskRegistry()

    registry.register("b", "task b", HERE)
    registry.register("a", "task a", SourceLocation("stable/tasks.py", 20))

    assert "a" in registry
    assert registry["a"] == "task a"
    assert list(registry.items()) == [("b", "task b"), ("a", "task a")]
    assert len(registry) == 2


def test_an_unknown_name_is_not_registered_and_a_key_error() -> None:
    registry: TaskRegistry[str] = TaskRegistry()

    assert "x" not in registry
    assert registry.get("x") is None
    with pytest.raises(KeyError) as caught:
        registry["x"]
    assert isinstance(caught.value, NotRegistered)
    assert caught.value.code == ErrorCode.TASK_NOT_REGISTERED


def test_another_place_may_not_take_a_name() -> None:
    registry: TaskRegistry[str] = TaskRegistry()
    registry.register("a", "first", HERE)

    with pytest.raises(DuplicateTaskNameError) as caught:
        registry.register("a", "second", SourceLocation("stable/tasks.py", 11))

    assert caught.value.code == ErrorCode.TASK_DUPLICATE_NAME
    assert caught.value.task_name == "a"
    assert "stable/tasks.py:10" in caught.value.notes[0]
    assert registry["a"] == "first"


def test_importing_the_same_place_again_gives_the_first_registration(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    registry: TaskRegistry[str] = TaskRegistry()
    monkeypatch.chdir(tmp_path)
    registry.register("a", "first", SourceLocation("tasks.py", 10))

    again = registry.register("a", "second", SourceLocation(str(tmp_path / "tasks.py"), 10))

    assert again == "first"
    assert registry["a"] == "first"
