"""An app with small tasks, and a look at its tables."""

from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

import pytest

from horsies import Horsies
from horsies.result import TaskError, TaskResult
from support.apps import make_app
from support.database import Database, connect


@pytest.fixture
def db(database_url: str) -> Iterator[Database]:
    """A committing connection on the real clock."""
    database = connect(database_url)
    yield database
    database.connection.close()


@pytest.fixture
async def new_app(database_url: str) -> AsyncIterator[Callable[..., Horsies]]:
    """Make apps on the test's database; their connections are closed afterwards."""
    apps: list[Horsies] = []

    def new(**config: Any) -> Horsies:
        apps.append(make_app(database_url, **config))
        return apps[-1]

    yield new
    for app in apps:
        await app.get_broker().close_async()


@pytest.fixture
def app(new_app: Callable[..., Horsies]) -> Horsies:
    """An app with one task of each kind that needs no child process."""
    app = new_app()

    @app.task("add")
    async def add(a: int, b: int = 0) -> TaskResult[int, TaskError]:
        return TaskResult(ok=a + b)

    @app.task("echo", execution="blocking")
    def echo(text: str) -> TaskResult[str, TaskError]:
        return TaskResult(ok=text)

    return app
