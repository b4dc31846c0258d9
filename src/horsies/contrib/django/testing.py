"""Helpers for the tests of a project: run tasks here and now, look at what was enqueued."""

import json
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Self

from django.db import connections

from horsies.contrib.django.conf import setting
from horsies.contrib.django.models import Task
from horsies.contrib.django.project import app, configured_queues
from horsies.contrib.django.worker_process import WorkerProcess
from horsies.database.statement import Statement
from horsies.database.user_connection import run_on
from horsies.worker import inline


def run_pending(queues: Sequence[str] | None = None, max_tasks: int | None = None) -> int:
    """Run what is due, on the current connection and so inside a `TestCase`; how many ran.

    Tasks that these tasks enqueue run, too.
    """
    names = list(queues or _queues())
    return inline.run_waiting(app, _run, names, max_tasks=max_tasks)


def run_one(task_id: str) -> bool:
    """Run this one task, whatever waits before it; False if it does not wait."""
    return inline.run_one(app, _run, task_id)


def run_tasks(task_ids: Iterable[str]) -> None:
    """Run these tasks if they are due: what EAGER does at each enqueue."""
    for task_id in task_ids:
        run_one(task_id)


def enqueued(task: Any, *, status: str | None = None) -> list[Task]:
    """The stored rows of a task, the oldest first."""
    path = task if isinstance(task, str) else task.module_path
    rows = Task.objects.using(_alias()).filter(task_name=path).order_by("sent_at", "pk")
    return list(rows if status is None else rows.filter(status=status))


def assert_enqueued(
    task: Any,
    *,
    args: Sequence[Any] | None = None,
    kwargs: dict[str, Any] | None = None,
    times: int | None = None,
) -> list[Task]:
    """Fail unless the task was enqueued, with these arguments and so many times if given."""
    rows = enqueued(task)
    found = [row for row in rows if _matches(row, args, kwargs)]
    if not found and times != 0:
        raise AssertionError(f"{_name(task)} was not enqueued like that; it was: {_calls(rows)}")
    if times is not None and len(found) != times:
        raise AssertionError(f"{_name(task)} was enqueued {len(found)} times, not {times}")
    return found


class EnqueueRecorder:
    """Collects what is enqueued inside a `with` block: `with EnqueueRecorder() as recorder`."""

    def __init__(self) -> None:
        self._before: set[Any] = set()

    def __enter__(self) -> Self:
        self._before = set(Task.objects.using(_alias()).values_list("pk", flat=True))
        return self

    def __exit__(self, *_error: object) -> None:
        """What was recorded stays readable."""

    @property
    def tasks(self) -> list[Task]:
        rows = Task.objects.using(_alias()).order_by("sent_at", "pk")
        return [row for row in rows if row.pk not in self._before]


class HorsiesWorkerMixin:
    """For a `TransactionTestCase`: a real worker process for the length of a `with` block.

    The tables are emptied afterwards: Django flushes only the models that it manages.
    """

    @contextmanager
    def horsies_worker(self, *options: str) -> Iterator[WorkerProcess]:
        with running_worker(*options) as worker:
            yield worker
        clear_tasks()


@contextmanager
def running_worker(*options: str, **environment: str) -> Iterator[WorkerProcess]:
    """A real `manage.py horsies_worker` on the test database."""
    worker = WorkerProcess(connections[_alias()].settings_dict, *options, **environment)
    try:
        yield worker.wait_ready()
    finally:
        worker.close()


def clear_tasks() -> None:
    """Delete all tasks with their attempts and logs."""
    rows = Task.objects.using(_alias()).all()
    rows._raw_delete(_alias())


def _alias() -> str:
    return str(setting("DATABASE_ALIAS"))


def _run(statement: Statement[Any]) -> list[Any]:
    return run_on(connections[_alias()], statement, None, "run")


def _queues() -> list[str]:
    stored = Task.objects.using(_alias()).pending().order_by()
    return sorted({*configured_queues(), *stored.values_list("queue_name", flat=True).distinct()})


def _matches(row: Task, args: Sequence[Any] | None, kwargs: dict[str, Any] | None) -> bool:
    has_args = args is None or json.loads(row.args or "[]") == list(args)
    return has_args and (kwargs is None or json.loads(row.kwargs or "{}") == kwargs)


def _name(task: Any) -> str:
    return task if isinstance(task, str) else str(task.module_path)


def _calls(rows: Sequence[Task]) -> str:
    return ", ".join(f"args={row.args} kwargs={row.kwargs}" for row in rows[:5]) or "never"
