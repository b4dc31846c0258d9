"""What the fork server of the children runs: load the app once, then fork a child per request."""

import os
import sys
from collections.abc import Callable, Sequence

from horsies.app import Horsies
from horsies.codes import ErrorCode
from horsies.errors import ConfigurationError, HorsiesError
from horsies.executors import fork_server_main
from horsies.locator import load_app
from horsies.recovery.begun_slots import BegunSlots, find_begun_slots
from horsies.tasks.definition import TaskDefinition


class AppDefinitions:
    """An app's tasks as executors see them."""

    def __init__(self, app: Horsies, begun: BegunSlots | None) -> None:
        self._app = app
        self.begun = begun

    @property
    def start_hooks(self) -> Sequence[Callable[[], None]]:
        return self._app.start_hooks

    def get(self, name: str, /) -> TaskDefinition | None:
        return self._app.definition(name)


def child_command(locator: str | None, begun_slots: BegunSlots | None) -> list[str]:
    """The command that starts the fork server."""
    worker_id = begun_slots.worker_id if begun_slots else ""
    return [sys.executable, "-m", "horsies.worker.child_main", locator or "", worker_id]


def main() -> None:
    """`python -m horsies.worker.child_main <locator> <worker id, if it has begun slots>`."""
    os.environ["HORSIES_CHILD_PROCESS"] = "1"
    locator, worker_id = sys.argv[1], sys.argv[2]

    def load() -> AppDefinitions:
        app = _load_app(locator)
        app.import_task_modules()
        begun_slots = find_begun_slots(worker_id) if worker_id else None
        if worker_id and begun_slots is None:
            # Calls that begin unmarked would be taken for calls that never began, and run twice.
            raise OSError(f"the begun slots of worker {worker_id} cannot be opened")
        return AppDefinitions(app, begun_slots)

    fork_server_main.serve(load)


def _load_app(locator: str) -> Horsies:
    try:
        return load_app(locator)
    except HorsiesError as error:
        raise ConfigurationError(
            f"a child process cannot load the app by {locator!r}: {error.message}",
            ErrorCode.WORKER_INVALID_LOCATOR,
            error.location,
            error.notes,
            error.help_text,
        ) from error


if __name__ == "__main__":
    main()
