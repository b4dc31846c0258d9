"""A project directory of its own for each test of the embedded server."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from horsies import embedded_postgres
from horsies.embedded_postgres import EmbeddedServer
from support.cluster import give_data, make_directory, remove_directory
from support.embedded import Holder, Someone, ordinary_user, require_root


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Tests that start servers of their own take seconds each."""
    for item in items:
        is_ours = Path(__file__).parent in item.path.parents
        if is_ours and {"project", "idle_server"} & set(getattr(item, "fixturenames", ())):
            item.add_marker(pytest.mark.slow)


@pytest.fixture
def project() -> Iterator[Path]:
    directory = make_directory()
    yield directory
    remove_directory(directory)


@pytest.fixture
def has_data(project: Path, request: pytest.FixtureRequest) -> None:
    """The project's server was started and stopped before, by whom the test calls `someone`."""
    someone = request.getfixturevalue("someone") if "someone" in request.fixturenames else Someone()
    give_data(project, uid=someone.uid)


@pytest.fixture(scope="session")
def idle_server() -> Iterator[EmbeddedServer]:
    """A new server with default settings for tests that only look at it."""
    directory = make_directory()
    server = embedded_postgres.acquire(directory, quiet=True)
    yield server
    server.release()
    remove_directory(directory)


@pytest.fixture
def acquire(project: Path) -> Iterator[Callable[..., EmbeddedServer]]:
    """Acquire the project's server in this process, released after the test."""
    with ExitStack() as releases:

        def acquire(**options: object) -> EmbeddedServer:
            options = {"directory": project, "idle_timeout": 5, "quiet": True} | options
            server = embedded_postgres.acquire(**options)  # type: ignore[arg-type]
            releases.callback(server.release)
            return server

        yield acquire


@pytest.fixture
def someone(request: pytest.FixtureRequest) -> Someone:
    """Who uses the server: an ordinary user, unless the test is `for_each_account`."""
    if getattr(request, "param", None) == "root":
        require_root()
        return Someone()
    return ordinary_user()


@pytest.fixture
def hold(project: Path, someone: Someone) -> Iterator[Callable[..., Holder]]:
    """Start a process that uses the project's server; ended after the test."""
    someone.own(project)
    holders: list[Holder] = []

    def hold(**options: object) -> Holder:
        holder = Holder(project, someone, **options)  # type: ignore[arg-type]
        holders.append(holder)
        return holder

    yield hold
    for holder in holders:
        holder.close()
