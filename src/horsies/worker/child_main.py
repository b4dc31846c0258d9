"""What the fork server of the children runs: load the app once, then fork a child per request."""

import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from horsies.app import Horsies
from horsies.errors import ConfigurationError, ErrorCode, HorsiesError
from horsies.executors import zygote
from horsies.executors.journal import Journal
from horsies.locator import load_app
from horsies.tasks.definition import TaskDefinition


class AppDefinitions:
    """An app's tasks as executors see them."""

    def __init__(self, app: Horsies, journal: Journal | None) -> None:
        self._app = app
        self.journal = journal

    @property
    def start_hooks(self) -> Sequence[Callable[[], None]]:
        return self._app.start_hooks

    def get(self, name: str, /) -> TaskDefinition | None:
        return self._app.definition(name)


def main() -> None:
    """`python -m horsies.worker.child_main <locator> [<journal>]`."""
    os.environ["HORSIES_CHILD_PROCESS"] = "1"
    locator, path = sys.argv[1], sys.argv[2]

    def load() -> AppDefinitions:
        app = _load_app(locator)
        app.import_task_modules()
        return AppDefinitions(app, Journal(Path(path)) if path else None)

    zygote.serve(load)


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
