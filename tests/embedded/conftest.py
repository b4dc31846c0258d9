"""A project directory of its own for each test of the embedded server."""

import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from horsies import embedded_postgres
from horsies.embedded_postgres import EmbeddedServer
from support.cluster import make_directory, remove_directory
from support.embedded import Holder, Someone, ordinary_user


@pytest.fixture
def project() -> Iterator[Path]:
    directory = make_directory()
    yield directory
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


@pytest.fixture(params=["root", "ordinary user"])
def someone(request: pytest.FixtureRequest) -> Someone:
    if request.param == "root":
        if os.geteuid() != 0:
            pytest.skip("needs root")
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
