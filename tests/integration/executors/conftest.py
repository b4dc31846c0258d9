"""Executors for the tests: each is closed, with whatever still runs in it, at the test's end."""

import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from horsies.executors.in_loop import InLoopExecutor
from horsies.executors.processes import ProcessExecutor
from horsies.executors.threads import ThreadExecutor
from support.executor_calls import Caller, StartProcesses
from support.executor_tasks import TestDefinitions

_BOOTSTRAP = Path(__file__).parents[2] / "support" / "executor_bootstrap.py"


@pytest.fixture
def bootstrap(tmp_path: Path) -> list[str]:
    return [sys.executable, str(_BOOTSTRAP), str(tmp_path)]


@pytest.fixture
async def start_processes(bootstrap: list[str]) -> AsyncIterator[StartProcesses]:
    """Start children with the given settings; two of them unless told otherwise."""
    executors: list[ProcessExecutor] = []

    async def start(count: int = 2, **settings: Any) -> tuple[Caller, ProcessExecutor]:
        executor = ProcessExecutor(count, bootstrap=bootstrap, **settings)
        await executor.start()
        executors.append(executor)
        return Caller(executor), executor

    yield start
    for executor in executors:
        await executor.close(kill=True)


@pytest.fixture
async def in_loop() -> AsyncIterator[Caller]:
    executor = InLoopExecutor(TestDefinitions(), 3, grace_seconds=0.2)
    await executor.start()
    yield Caller(executor)
    await executor.close(kill=True)


@pytest.fixture
async def threads() -> AsyncIterator[Caller]:
    executor = ThreadExecutor(TestDefinitions(), 2, grace_seconds=0.2)
    await executor.start()
    yield Caller(executor)
    await executor.close(kill=True)
