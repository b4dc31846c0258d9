"""Steer stored tasks on Django's own connection, by the engine's operations."""

from collections.abc import Sequence
from typing import Any, TypeVar

from django.db import connections

from horsies.contrib.django.conf import setting
from horsies.database.operation import Operation
from horsies.database.user_connection import run_on
from horsies.operations.cancel import cancel_these
from horsies.operations.requeue import requeue_these, rerun_one

T = TypeVar("T")


def perform(operation: Operation[Any, T], alias: str | None = None) -> T:
    """Run an operation of the engine inside the connection's transaction."""
    connection = connections[alias or setting("DATABASE_ALIAS")]
    return operation.read(run_on(connection, operation.statement, None, "perform"))


def requeue(task_ids: Sequence[str]) -> int:
    """Put ended tasks back in their queues, also completed ones; how many went."""
    return perform(requeue_these(task_ids, include_completed=True))


def cancel(task_ids: Sequence[str]) -> int:
    """Cancel what waits, ask for the end of what runs; how many that was."""
    return perform(cancel_these(task_ids, running=True))


def rerun(task_ids: Sequence[str]) -> list[str]:
    """New tasks with the input of ended ones; their ids."""
    made = [perform(rerun_one(task_id, None)) for task_id in task_ids]
    return [task_id for task_id in made if task_id is not None]
