"""Steer stored tasks by `app.operations`, each call in one transaction with its audit."""

from collections.abc import Callable, Sequence
from functools import partial

from django.db import transaction

from horsies.contrib.django.conf import setting
from horsies.contrib.django.project import app
from horsies.operations.control import UNSAID, Note
from horsies.operations.listing import TaskCount
from horsies.result import Ok
from horsies.result.broker import BrokerResult

_BATCH = 10_000  # so many ids fit into one call of the operations


def requeue(task_ids: Sequence[str], *, note: Note = UNSAID) -> int:
    """Put ended tasks back in their queues, also completed ones; how many went."""
    return _change(partial(app.operations.requeue, include_completed=True, note=note), task_ids)


def cancel(task_ids: Sequence[str], *, note: Note = UNSAID) -> int:
    """Cancel what waits, ask for the end of what runs; how many that was."""
    return _change(partial(app.operations.cancel, running=True, note=note), task_ids)


def rerun(task_ids: Sequence[str], *, note: Note = UNSAID) -> list[str]:
    """New tasks with the input of ended ones; their ids."""
    with transaction.atomic(using=setting("DATABASE_ALIAS")):
        made = [app.operations.rerun(task_id, note=note) for task_id in task_ids]
    return [one.ok_value for one in made if isinstance(one, Ok)]


def _change(
    change: Callable[[Sequence[str]], BrokerResult[TaskCount]], task_ids: Sequence[str]
) -> int:
    with transaction.atomic(using=setting("DATABASE_ALIAS")):
        return sum(
            change(task_ids[start : start + _BATCH]).unwrap().number
            for start in range(0, len(task_ids), _BATCH)
        )
