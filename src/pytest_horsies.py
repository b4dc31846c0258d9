"""The pytest plugin: fixtures that cost nothing until a test asks for one.

Beside the package, whose import would cost every test run in the same environment.
"""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from horsies.app import Horsies
    from horsies.testing.databases import Databases
    from horsies.testing.sends import Sends
    from horsies.testing.worker import ManualWorker


@pytest.fixture(scope="session")
def horsies_databases(tmp_path_factory: pytest.TempPathFactory) -> "Iterator[Databases]":
    """A server and its template database, for the whole run."""
    from horsies.testing.databases import Databases, server_for_tests

    directory: Path = tmp_path_factory.mktemp("horsies")
    with server_for_tests(directory) as url:
        databases = Databases(url)
        yield databases
        databases.close()


@pytest.fixture
def horsies_database_url(horsies_databases: "Databases") -> Iterator[str]:
    """The URL of a fresh database with our tables."""
    with horsies_databases.clone() as url:
        yield url


@pytest.fixture
def horsies_worker(horsies_database_url: str) -> "Iterator[Callable[[Horsies], ManualWorker]]":
    """`worker = horsies_worker(app)`: a fresh database, and a worker that runs by hand."""
    from horsies.testing.worker import manual

    with ExitStack() as stack:
        yield lambda app: stack.enter_context(manual(app, horsies_database_url))


@pytest.fixture
def horsies_inline() -> "Iterator[Callable[[Horsies], Sends]]":
    """`sends = horsies_inline(app)`: tasks run at their send; no database."""
    from horsies.testing.brokers import inline

    with ExitStack() as stack:
        yield lambda app: stack.enter_context(inline(app))


@pytest.fixture
def horsies_sends() -> "Iterator[Callable[[Horsies], Sends]]":
    """`sends = horsies_sends(app)`: sends are recorded and nothing runs; no database."""
    from horsies.testing.brokers import recorded

    with ExitStack() as stack:
        yield lambda app: stack.enter_context(recorded(app))
