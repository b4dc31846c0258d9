"""The registry of task functions by name: the only way from a row to code."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Generic, TypeVar

from horsies.errors import DuplicateTaskNameError, NotRegistered, SourceLocation

F = TypeVar("F")


class TaskRegistry(Mapping[str, F], Generic[F]):
    """A read-only mapping of names to task functions; `register` adds to it."""

    def __init__(self) -> None:
        self._tasks: dict[str, tuple[F, SourceLocation | None]] = {}

    def register(self, name: str, task: F, location: SourceLocation | None) -> F:
        """Add a task; importing the same place again returns the first registration."""
        known = self._tasks.get(name)
        if known is None:
            self._tasks[name] = (task, location)
            return task
        first, first_location = known
        if _is_same_place(first_location, location):
            return first
        place = "an unknown place" if first_location is None else first_location.format_short()
        raise DuplicateTaskNameError(name, location, [f"first defined at {place}"])

    def __getitem__(self, name: str) -> F:
        found = self._tasks.get(name)
        if found is None:
            raise NotRegistered(name)
        return found[0]

    def find(self, name: str) -> F | None:
        """The task of this name, if there is one."""
        found = self._tasks.get(name)
        return None if found is None else found[0]

    def __contains__(self, name: object) -> bool:
        return name in self._tasks

    def __iter__(self) -> Iterator[str]:
        return iter(self._tasks)

    def __len__(self) -> int:
        return len(self._tasks)


def _is_same_place(first: SourceLocation | None, second: SourceLocation | None) -> bool:
    if first is None or second is None or first.line != second.line:
        return False
    return first.file == second.file or Path(first.file).resolve() == Path(second.file).resolve()
