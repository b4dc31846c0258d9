"""The attempts of a task as its page shows them: how each ended, where, and what it wrote."""

from dataclasses import dataclass
from datetime import timedelta

from horsies.operations.detail import TaskDetail
from horsies.operations.reading import TaskLog
from horsies.results.task_info import TaskAttemptInfo


@dataclass(frozen=True, slots=True)
class Attempt:
    """One attempt and what it wrote."""

    info: TaskAttemptInfo
    log: TaskLog | None

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
    return [Attempt(info, logs.get(info.attempt)) for info in infos]
