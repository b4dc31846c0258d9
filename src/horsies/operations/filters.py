"""Which tasks an operation on many is about."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class TaskFilter:
    """Tasks in these states, narrowed by what is given; workflow nodes never match."""

    statuses: tuple[str, ...]
    task_name: str | None = None
    queue_name: str | None = None
    tag: str | None = None
    task_names: tuple[str, ...] | None = None

    def parameters(self) -> dict[str, object]:
        return {
            "statuses": list(self.statuses),
            "task_name": self.task_name,
            "queue_name": self.queue_name,
            "tag": self.tag,
            "task_names": None if self.task_names is None else list(self.task_names),
        }
