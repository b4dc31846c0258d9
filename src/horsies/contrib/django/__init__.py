"""Horsies in a Django project: add `horsies.contrib.django` to INSTALLED_APPS and run `migrate`.

Names are imported when they are first used: Django imports this package before its models exist.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from horsies.contrib.django.backend import HorsiesBackend
    from horsies.contrib.django.enqueue import TaskArgsTooLarge, enqueue_on_commit
    from horsies.contrib.django.project import app
    from horsies.contrib.django.tasks import HorsiesTask, task

__all__ = [
    "HorsiesBackend",
    "HorsiesTask",
    "TaskArgsTooLarge",
    "app",
    "enqueue_on_commit",
    "task",
]

_HOMES = {
    "HorsiesBackend": "backend",
    "HorsiesTask": "tasks",
    "TaskArgsTooLarge": "enqueue",
    "app": "project",
    "enqueue_on_commit": "enqueue",
    "task": "tasks",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
