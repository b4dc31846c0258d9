"""Fixtures for the Django tests, which are a pytest run of their own: see `make test-django`.

Django's settings, signals and time zone are global; beside the other tests they would disturb
them, and be disturbed.
"""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import pytest
from django.db import connections

from horsies.observability.hooks import EventHooks
from support import cluster
from support.django_project import settings as project_settings

pytest_plugins = ["horsies.contrib.django.pytest_plugin"]


def pytest_configure(config: pytest.Config) -> None:
    if not hasattr(config, "workerinput"):
        cluster.start_run()


def pytest_unconfigure(config: pytest.Config) -> None:
    if not hasattr(config, "workerinput"):
        cluster.end_run()


@pytest.fixture(scope="session")
def server() -> Iterator[cluster.Server]:
    """The run's server, able to create and drop databases."""
    with cluster.run_server() as server:
        yield server


@pytest.fixture(scope="session")
def django_db_modify_db_settings(
    server: cluster.Server, django_db_modify_db_settings_parallel_suffix: None
) -> None:
    """Lead Django to the run's server; as its superuser, who may create the test database."""
    found = project_settings.database(server.url)
    suffix = connections["default"].settings_dict["TEST"].get("NAME")
    connections["default"].settings_dict.update(found)
    connections["default"].settings_dict["TEST"]["NAME"] = suffix or f"test_{found['NAME']}"


@pytest.fixture
def committed(transactional_db: None) -> Iterator[None]:
    """A database whose changes other processes see; our own tables are emptied afterwards."""
    yield
    from horsies.contrib.django.models import WorkerState
    from horsies.contrib.django.testing import clear_tasks

    clear_tasks()
    WorkerState.objects.all()._raw_delete("default")
    with connections["default"].cursor() as cursor:
        cursor.execute("delete from horsies_audit")


@pytest.fixture
def start_worker(committed: None) -> Iterator[Callable[..., Any]]:
    """Start `manage.py horsies_worker` processes; they end with the test."""
    from horsies.contrib.django.testing import running_worker

    with ExitStack() as workers:

        def start(*options: str, **environment: str) -> Any:
            return workers.enter_context(running_worker(*options, **environment))

        yield start


@pytest.fixture
def told_of() -> Iterator[Callable[..., list[Any]]]:
    """Collect what hooks of these events are told, for the length of the test."""
    from horsies.contrib.django.project import app

    before, told = app.on, list[Any]()
    app.on = EventHooks()

    def listen(*events: Any) -> list[Any]:
        for event in events:
            app.on(event)(told.append)
        return told

    yield listen
    app.on = before


@pytest.fixture(scope="session")
def django_db_keepdb() -> bool:
    """The test database goes with the run's server."""
    return True
