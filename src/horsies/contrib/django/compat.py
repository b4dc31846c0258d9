"""Django's Tasks framework: `django.tasks` from 6.0 on, else the backport `django_tasks`."""

from importlib import import_module
from importlib.util import find_spec
from typing import Any

from django.core.exceptions import ImproperlyConfigured


def tasks_package() -> str | None:
    """The package that has the framework, if one is installed."""
    for name in ("django.tasks", "django_tasks"):
        if find_spec(name) is not None:
            return name
    return None


def _load(module: str) -> Any:
    package = tasks_package()
    if package is None:
        raise ImproperlyConfigured(
            "Django 5.2 has no Tasks framework of its own: install the backport with "
            "pip install django-tasks, and add 'django_tasks' to INSTALLED_APPS"
        )
    return import_module(f"{package}{module}")


IS_BACKPORT = tasks_package() == "django_tasks"

_base = _load(".base")
_exceptions = _load(".exceptions")
_signals = _load(".signals")

BaseTaskBackend: Any = _load(".backends.base").BaseTaskBackend
Task: Any = _base.Task
TaskContext: Any = _base.TaskContext
TaskError: Any = _base.TaskError
TaskResult: Any = _base.TaskResult
TaskResultStatus: Any = _base.TaskResultStatus
TaskResultDoesNotExist: Any = _exceptions.TaskResultDoesNotExist
TaskResultMismatch: Any = _exceptions.TaskResultMismatch
InvalidTask: Any = _exceptions.InvalidTaskError if IS_BACKPORT else _exceptions.InvalidTask
task_enqueued: Any = _signals.task_enqueued
task_started: Any = _signals.task_started
task_finished: Any = _signals.task_finished
task_backends: Any = _load("").task_backends
normalize_json: Any = (
    _load(".utils").normalize_json
    if IS_BACKPORT
    else import_module("django.utils.json").normalize_json
)
