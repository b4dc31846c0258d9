"""Fixtures for pytest-django: `pytest_plugins = ["horsies.contrib.django.pytest_plugin"]`."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import pytest


@pytest.fixture
def horsies_run_pending(db: Any) -> Callable[..., int]:
    """`run_pending()`: run what is due inside the test's transaction."""
    from horsies.contrib.django.testing import run_pending

    return run_pending


@pytest.fixture
def horsies_worker(transactional_db: Any) -> Iterator[Callable[..., Any]]:
    """Start real workers: `worker = horsies_worker("--processes", "1")`; they end with the test."""
    from horsies.contrib.django.testing import clear_tasks, running_worker

    with ExitStack() as workers:
        yield lambda *options, **environment: workers.enter_context(
            running_worker(*options, **environment)
        )
    clear_tasks()
