"""A user's app with one table and tasks."""

from typing import Any

from django.apps import AppConfig
from django.conf import settings

given: list[Any] = []  # what the hook of the settings got


class ShopConfig(AppConfig):
    name = "support.django_project.shop"
    label = "shop"

    def ready(self) -> None:
        if getattr(settings, "NOTE_SIGNALS", False):
            from horsies.contrib.django import compat
            from horsies.contrib.django.simple_queue import signals

            compat.task_started.connect(note_started)
            compat.task_finished.connect(note_finished)
            signals.on_failure.connect(note_failure)


def note_started(task_result: Any, **_others: Any) -> None:
    from support.django_project.shop.tasks import note

    note(f"started {task_result.id}")


def note_finished(task_result: Any, **_others: Any) -> None:
    from support.django_project.shop.tasks import note

    note(f"finished {task_result.id} {task_result.status}")


def note_failure(task: Any, error: Any, **_others: Any) -> None:
    from support.django_project.shop.tasks import note

    note(f"failed {task.id} {error!r}")


def take_app(app: Any) -> None:
    given.append(app)
