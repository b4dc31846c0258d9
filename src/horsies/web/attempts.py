"""The attempts of a task as its page shows them: how each ended, where, and what it wrote."""

from dataclasses import dataclass
from datetime import timedelta

from horsies.operations.detail import TaskDetail
from horsies.operations.reading import TaskLog
from horsies.results.task_info import TaskAttemptInfo


@dataclass(frozen=True, slots=True)
class Attempt:
    """One attempt; only the last one's error is stored in full, with its traceback."""

    info: TaskAttemptInfo
    log: TaskLog | None
    traceback: str | None

    @property
    def took(self) -> timedelta:
        return self.info.finished_at - self.info.started_at

    @property
    def place(self) -> str:
        name = self.info.worker_process_name
        return (
            f"{self.info.worker_hostname} pid {self.info.worker_pid}{f', {name}' if name else ''}"
        )


def attempts_of(task: TaskDetail) -> list[Attempt]:
    """The latest first."""
    infos = sorted(task.info.attempts or (), key=lambda one: one.attempt, reverse=True)
    logs = {log.attempt: log for log in task.logs}
    last = infos[0].attempt if infos else None
    return [
        Attempt(info, logs.get(info.attempt), traceback_of(task) if info.attempt == last else None)
        for info in infos
    ]


def traceback_of(task: TaskDetail) -> str | None:
    """The traceback in the task's result, if it ended with an exception."""
    result = task.info.result
    if result is None or result.is_ok():
        return None
    exception = result.err_value.exception
    text = exception.get("traceback") if isinstance(exception, dict) else None
    return str(text).rstrip() if text else None
