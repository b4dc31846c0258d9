"""Worker processes that end with their test, an app to send with, and a look at the tables."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from support.database import Database, connect
from support.workers import LEDGER, WorkerProcess, load_app_module


@pytest.fixture
def db(database_url: str) -> Iterator[Database]:
    database = connect(database_url)
    database.execute(LEDGER)
    yield database
    database.connection.close()


@pytest.fixture
def start_worker(database_url: str, db: Database) -> Iterator[Callable[..., WorkerProcess]]:
    workers: list[WorkerProcess] = []

    def start(*options: str, **settings: Any) -> WorkerProcess:
        workers.append(WorkerProcess(database_url, *options, **settings))
        return workers[-1]

    yield start
    for worker in workers:
        worker.close()


@pytest.fixture
def load(database_url: str) -> Iterator[Callable[..., Any]]:
    """The workers' app in this process; keyword arguments are its settings."""
    modules: list[Any] = []

    def load_module(**settings: Any) -> Any:
        modules.append(load_app_module(database_url, settings))
        return modules[-1]

    yield load_module
    for module in modules:
        module.app.get_broker().close()


@pytest.fixture
def gate(tmp_path: Path) -> Path:
    """A file that held tasks wait for."""
    return tmp_path / "gate"
