"""Which tasks an operation on many is about."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class TaskFilter:
    """Tasks in these states, narrowed by what is given; workflow nodes never match."""

    statuses: tuple[str, ...]
    task_name: str | None = None
    queue_name: str | None = None
    tag: str | None = None

    def parameters(self) -> dict[str, object]:
        return {
            "statuses": list(self.statuses),
            "task_name": self.task_name,
            "queue_name": self.queue_name,
            "tag": self.tag,
        }
