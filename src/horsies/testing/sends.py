"""What was sent in a test, and assertions that say what was sent instead."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from horsies.app import Horsies
from horsies.result import Err
from horsies.sending.rows import NewTask


@dataclass(frozen=True, slots=True)
class Sent:
    """One send: the task, its arguments by name, and where and when it was to run."""

    task_name: str
    arguments: Mapping[str, Any]
    task_id: str
    queue_name: str
    priority: int
    delay_s: float | None
    unique_key: str | None

    def __str__(self) -> str:
        shown = ", ".join(f"{name}={value!r}" for name, value in self.arguments.items())
        return f"{self.task_name}({shown})"


@dataclass(slots=True)
class Sends:
    """The sends of an app, in their order."""

    app: Horsies
    all: list[Sent] = field(default_factory=list[Sent])

    def __iter__(self) -> Iterator[Sent]:
        return iter(self.all)

    def __len__(self) -> int:
        return len(self.all)

    def clear(self) -> None:
        self.all.clear()

    def of(self, task: Any, **arguments: Any) -> list[Sent]:
        """The sends of a task whose arguments include these."""
        name = getattr(task, "task_name", task)
        return [
            sent
            for sent in self.all
            if sent.task_name == name and _includes(sent.arguments, arguments)
        ]

    def assert_sent(self, task: Any, *, times: int | None = None, **arguments: Any) -> Sent:
        """Fail unless the task was sent with these arguments; give the first such send."""
        found = self.of(task, **arguments)
        if not found or times not in (None, len(found)):
            wanted = Sent(getattr(task, "task_name", task), arguments, "", "", 0, None, None)
            counted = "" if times is None else f" {times} times, but {len(found)} times"
            raise AssertionError(f"{wanted} was not sent{counted}; {self._told()}")
        return found[0]

    def assert_not_sent(self, task: Any, **arguments: Any) -> None:
        """Fail if the task was sent with these arguments."""
        if found := self.of(task, **arguments):
            raise AssertionError(f"{found[0]} was sent; {self._told()}")

    def assert_nothing_sent(self) -> None:
        if self.all:
            raise AssertionError(self._told())

    def _told(self) -> str:
        if not self.all:
            return "nothing was sent"
        return "sent was:\n" + "\n".join(f"  {sent}" for sent in self.all)

    def add(self, row: NewTask) -> None:
        """Remember a row on its way to the database."""
        self.all.append(
            Sent(
                row.task_name,
                _arguments(self.app, row),
                row.id,
                row.queue_name,
                row.priority,
                row.delay_s,
                row.unique_key,
            )
        )


def _arguments(app: Horsies, row: NewTask) -> dict[str, Any]:
    definition = app.definition(row.task_name)
    if definition is None:
        return {"args": row.args, "kwargs": row.kwargs}
    decoded = definition.decode_arguments(row.args, row.kwargs)
    if isinstance(decoded, Err):
        return {"args": row.args, "kwargs": row.kwargs}
    args, kwargs = decoded.ok_value
    bound = definition.signature.signature.bind(*args, **kwargs)
    bound.apply_defaults()
    return dict(bound.arguments)


def _includes(found: Mapping[str, Any], wanted: Mapping[str, Any]) -> bool:
    return all(name in found and found[name] == value for name, value in wanted.items())
