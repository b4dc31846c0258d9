"""Fixtures for every test: fresh databases on one private server per run."""

import os
import random
from collections.abc import Iterator

import pytest

from support import cluster

# Django's tests are a run of their own: see tests/django/conftest.py.
collect_ignore = ["django"]
# A developer's own settings must not decide what the tests see.
_FOREIGN_SETTINGS = ("HORSIES_DATABASE_URL", "DATABASE_URL", "HORSIES_HOME")


def pytest_configure(config: pytest.Config) -> None:
    for name in _FOREIGN_SETTINGS:
        os.environ.pop(name, None)
    if not hasattr(config, "workerinput"):
        cluster.start_run()
        os.environ.setdefault("HORSIES_FAULT_SEED", str(random.randrange(10**6)))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    if kills := cluster.kill_count():
        seed = os.environ["HORSIES_FAULT_SEED"]
        terminalreporter.write_line(f"faults: {kills} real kills, HORSIES_FAULT_SEED={seed}")


def pytest_unconfigure(config: pytest.Config) -> None:
    if not hasattr(config, "workerinput"):
        cluster.end_run()


@pytest.fixture(scope="session")
def server() -> Iterator[cluster.Server]:
    """The run's server, able to create and drop databases."""
    with cluster.run_server() as server:
        yield server


@pytest.fixture(scope="session")
def server_url(server: cluster.Server) -> str:
    """The URL of the run's maintenance database, with the right to create databases."""
    return server.url


@pytest.fixture(scope="session")
def migrated_template(server: cluster.Server) -> str:
    return cluster.migrated_template(server)


@pytest.fixture
def database_url(server: cluster.Server, migrated_template: str) -> Iterator[str]:
    """A fresh database with our schema, dropped afterwards."""
    with server.temporary_database(template=migrated_template) as url:
        yield url


@pytest.fixture
def empty_database_url(server: cluster.Server) -> Iterator[str]:
    """A fresh database without our schema, dropped afterwards."""
    with server.temporary_database() as url:
        yield url


@pytest.fixture
def durable_cluster() -> Iterator[cluster.DurableCluster]:
    """A started server of its own that keeps what it committed, for tests that kill it."""
    durable = cluster.DurableCluster(cluster.give_data(cluster.make_directory()))
    try:
        durable.start()
        yield durable
    finally:
        durable.close()
