"""What a line of a list says of a task or a worker, in words."""

from collections import Counter
from collections.abc import Iterable
from datetime import timedelta
from itertools import groupby

from horsies.operations.queues import WorkerInfo
from horsies.operations.statements import ListedRow
from horsies.operations.words import duration
from horsies.results.task_info import TaskAttemptInfo

_NAMED = 3


def tracebacks(attempts: Iterable[TaskAttemptInfo]) -> list[tuple[str, str]]:
    """Where attempts failed, in their order; neighbours that failed alike are told once."""
    ordered = sorted(attempts, key=lambda one: one.attempt)
    told: list[tuple[str, str]] = []
    for text, alike in groupby(ordered, lambda one: one.traceback):
        numbers = [str(one.attempt) for one in alike]
        if text and len(numbers) == 1:
            told.append((f"Traceback of attempt {numbers[0]}", text.rstrip()))
        elif text:
            told.append((f"Traceback of attempts {numbers[0]} to {numbers[-1]}", text.rstrip()))
    return told


def in_words(task: ListedRow) -> str:
    """What a line of a list says of a task beyond its state."""
    if task.error_code:
        return task.error_code
    if task.status == "RUNNING" and task.progress is not None:
        return str(task.progress)
    if task.status == "RUNNING":
        return f"on {task.worker_hostname} pid {task.worker_pid}"
    if task.status == "PENDING" and task.next_retry_at is not None:
        return f"retry {task.retry_count} of {task.max_retries} {_due(task)}"
    if task.status == "PENDING":
        return _due(task)
    return f"after {task.retry_count} retries" if task.retry_count else ""


def _due(task: ListedRow) -> str:
    if task.enqueued_at is None:
        return "never due"
    if task.enqueued_at > task.read_at:
        return f"in {duration(task.enqueued_at - task.read_at)}"
    return f"due for {duration(task.read_at - task.enqueued_at)}"


def took(task: ListedRow) -> timedelta | None:
    """How long the last attempt took, or has taken up to now."""
    if task.started_at is None:
        return None
    return (task.ended_at or task.read_at) - task.started_at


def holds(worker: WorkerInfo) -> str:
    """The names of the tasks that a worker holds, the most frequent first."""
    names = Counter(task.task_name for task in worker.tasks)
    said = [f"{name} × {n}" if n > 1 else name for name, n in names.most_common(_NAMED)]
    return ", ".join([*said, *(["…"] if len(names) > _NAMED else [])])
