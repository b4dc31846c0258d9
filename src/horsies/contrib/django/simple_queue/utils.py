"""`create_task`, as django-simple-queue has it."""

import json
import uuid
from typing import Any

from django.db import connections

from horsies.contrib.django.conf import setting
from horsies.contrib.django.enqueue import check_size, tell_enqueued
from horsies.contrib.django.simple_queue.conf import is_task_allowed
from horsies.contrib.django.simple_queue.models import Task


class TaskNotAllowedError(Exception):
    """The callable is not in the list of those that may run."""


def create_task(task: str, args: dict[str, Any]) -> uuid.UUID:
    """Queue a callable by its path, with keyword arguments; part of the caller's transaction."""
    if not isinstance(args, dict):
        raise TypeError("args should be of type dict.")
    if not is_task_allowed(task):
        raise TaskNotAllowedError(
            f"Task '{task}' is not in the allowed list. "
            "Add it to DJANGO_SIMPLE_QUEUE_ALLOWED_TASKS in settings.py"
        )
    text = json.dumps(args)
    check_size(text)
    made: uuid.UUID = Task.objects.create(task=task, args=text).id
    is_in_transaction = connections[setting("DATABASE_ALIAS")].in_atomic_block
    tell_enqueued(str(made), task, "default", is_in_transaction)
    return made
