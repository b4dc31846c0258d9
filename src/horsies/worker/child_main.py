"""What the fork server of the children runs: load the app once, then fork a child per request."""

import os
import sys
from collections.abc import Callable, Sequence

from horsies.app import Horsies
from horsies.codes import ErrorCode
from horsies.errors import ConfigurationError, HorsiesError
from horsies.executors import fork_server_main
from horsies.executors.middleware import Middleware
from horsies.locator import load_app
from horsies.recovery.begun_slots import BegunSlots, find_begun_slots
from horsies.tasks.definition import TaskDefinition


class AppDefinitions:
    """An app's tasks as executors see them."""

    def __init__(self, app: Horsies, begun: BegunSlots | None, worker_id: str = "") -> None:
        self._app = app
        self.begun = begun
        self.worker_id = worker_id

    @property
    def start_hooks(self) -> Sequence[Callable[[], None]]:
        return self._app.start_hooks

    @property
    def middleware(self) -> Middleware:
        return self._app.middleware

    def finish(self) -> None:
        if self._app.tracing is not None:
            self._app.tracing.flush()

    def get(self, name: str, /) -> TaskDefinition | None:
        return self._app.definition(name)


def child_command(locator: str | None, worker_id: str, *, has_begun_slots: bool) -> list[str]:
    """The command that starts the fork server."""
    marks = "marked" if has_begun_slots else "unmarked"
    return [sys.executable, "-m", "horsies.worker.child_main", locator or "", worker_id, marks]


def main() -> None:
    """`python -m horsies.worker.child_main <locator> <worker id> marked|unmarked`."""
    os.environ["HORSIES_CHILD_PROCESS"] = "1"
    locator, worker_id, marks = sys.argv[1:]

    def load() -> AppDefinitions:
        app = _load_app(locator)
        app.import_task_modules()
        begun_slots = find_begun_slots(worker_id) if marks == "marked" else None
        if marks == "marked" and begun_slots is None:
            # Calls that begin unmarked would be taken for calls that never began, and run twice.
            raise OSError(f"the begun slots of worker {worker_id} cannot be opened")
        return AppDefinitions(app, begun_slots, worker_id)

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
