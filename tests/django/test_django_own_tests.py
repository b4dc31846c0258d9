"""E-10 and E-11: Django's own tests of its Tasks framework, run against our backend."""

import importlib
import sys
import threading
import unittest
from pathlib import Path
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from django.db import connections
from django.test import TransactionTestCase, override_settings

import django
from horsies.contrib.django import HorsiesBackend
from horsies.contrib.django.models import Task
from horsies.contrib.django.results import result_of
from horsies.contrib.django.testing import clear_tasks, run_one
from support.django_sources import tasks_tests

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(django.VERSION < (6, 0), reason="the tests came with Django 6.0"),
    pytest.mark.timeout(600),  # Django's source distribution is fetched first
]
# Refreshing inside a coroutine, and changes to a store in memory: see docs/how-to/django.md.
NOT_OURS = {
    "TaskTestCase.test_refresh_result",
    "DummyBackendTestCase.test_refresh_result",
    "DummyBackendTestCase.test_refresh_result_async",
}
NOT_OF_AN_IMMEDIATE_BACKEND_OURS = {
    "test_using_correct_backend",
    "test_throws_keyboard_interrupt",
    "test_cannot_get_result",
    "test_cannot_refresh_result",
    "test_cannot_pass_run_after",
}


class InspectedBackend(HorsiesBackend):
    """What the tests of the dummy backend ask of it besides."""

    @property
    def results(self) -> list[Any]:
        # From another thread: two of the tests ask from a coroutine.
        found: list[Any] = []

        def ask() -> None:
            found.extend(result_of(row, []) for row in Task.objects.order_by("pk"))
            connections.close_all()

        thread = threading.Thread(target=ask)
        thread.start()
        thread.join()
        return found

    def clear(self) -> None:
        clear_tasks()


class ImmediateLikeBackend(HorsiesBackend):
    """Runs each task at once."""

    def enqueue(self, task: Any, args: Any, kwargs: Any) -> Any:
        result = super().enqueue(task, args, kwargs)
        if task.run_after is None:
            run_one(result.id)
        return self.get_result(result.id)

    async def aenqueue(self, task: Any, args: Any, kwargs: Any) -> Any:
        return await sync_to_async(self.enqueue, thread_sensitive=True)(task, args, kwargs)


@pytest.fixture(scope="module")
def sources(tmp_path_factory: pytest.TempPathFactory) -> Any:
    directory = tasks_tests(tmp_path_factory.mktemp("django"))
    sys.path.insert(0, str(directory))
    yield directory
    sys.path.remove(str(directory))


def adapted(module_name: str, class_name: str, backend: type[Any], left_out: set[str]) -> Any:
    """A test case of Django's with our backend in place of the one it names."""
    module = importlib.import_module(f"tasks.{module_name}")
    original = getattr(module, class_name)
    # The name of the backend under test is ours here, and no other name.
    replaced = "ImmediateBackend" if backend is ImmediateLikeBackend else "DummyBackend"
    if hasattr(module, replaced):
        setattr(module, replaced, backend)
    path = f"{backend.__module__}.{backend.__qualname__}"
    sys.modules.setdefault(backend.__module__, sys.modules[__name__])
    queues = {"QUEUES": ["default", "queue_1"]} if class_name == "TaskTestCase" else {"QUEUES": []}
    entries = {"default": {"BACKEND": path, **queues, "OPTIONS": {}}}
    if class_name == "TaskTestCase":
        entries["immediate"] = {
            "BACKEND": "django.tasks.backends.immediate.ImmediateBackend",
            "QUEUES": [],
        }
        entries["missing"] = {"BACKEND": "does.not.exist"}
    members = {
        name: value
        for cls in reversed(original.__mro__[:-1])
        if cls.__module__ == original.__module__
        for name, value in vars(cls).items()
        if name.startswith("test_") or name == "setUp"
    }
    members = {
        name: value
        for name, value in members.items()
        if name not in left_out and f"{class_name}.{name}" not in left_out
    }
    made = type(class_name, (TransactionTestCase,), {**members, "databases": {"default"}})
    return override_settings(TASKS=entries)(made)


def outcome(*cases: Any) -> unittest.TestResult:
    suite = unittest.TestSuite()
    for case in cases:
        suite.addTests(unittest.defaultTestLoader.loadTestsFromTestCase(case))
    result = unittest.TestResult()
    suite.run(result)
    clear_tasks()
    return result


def problems(result: unittest.TestResult) -> list[str]:
    return [f"{case}\n{text}" for case, text in (*result.errors, *result.failures)]


@pytest.mark.acceptance("E-10")
def test_e10_the_tests_of_tasks_and_of_the_dummy_backend(sources: Path, committed: None) -> None:
    result = outcome(
        adapted("test_tasks", "TaskTestCase", InspectedBackend, NOT_OURS),
        adapted("test_dummy_backend", "DummyBackendTestCase", InspectedBackend, NOT_OURS),
        adapted(
            "test_dummy_backend", "DummyBackendTransactionTestCase", InspectedBackend, NOT_OURS
        ),
    )

    assert problems(result) == []
    assert result.testsRun == (53 if django.VERSION >= (6, 1) else 48)


@pytest.mark.acceptance("E-11")
def test_e11_the_tests_of_the_immediate_backend(sources: Path, committed: None) -> None:
    names = NOT_OF_AN_IMMEDIATE_BACKEND_OURS
    result = outcome(
        adapted("test_immediate_backend", "ImmediateBackendTestCase", ImmediateLikeBackend, names),
        adapted(
            "test_immediate_backend",
            "ImmediateBackendTransactionTestCase",
            ImmediateLikeBackend,
            names,
        ),
    )

    assert problems(result) == []
    assert result.testsRun == 15
