"""Send calls to an executor and await their outcomes."""

import asyncio
import json
from collections.abc import Awaitable, Callable
from itertools import count
from typing import Any

import psutil

from horsies.executors.base import Call, Delivered, Executor, Outcome
from horsies.executors.processes import ProcessExecutor
from support.eventually import eventually_async

StartProcesses = Callable[..., Awaitable["tuple[Caller, ProcessExecutor]"]]

_numbers = count(1)


def call(
    name: str,
    *args: Any,
    timeout_ms: int | None = None,
    soft_timeout_ms: int | None = None,
    task_id: str | None = None,
) -> Call:
    return Call(
        task_id or f"task-{next(_numbers)}",
        name,
        1,
        json.dumps(args) if args else None,
        None,
        timeout_ms,
        soft_timeout_ms,
    )


class Caller:
    """Collects outcomes by task id; every call must be answered exactly once."""

    def __init__(self, executor: Executor) -> None:
        self.executor = executor
        self.outcomes: dict[str, list[Outcome]] = {}
        self._futures: dict[str, asyncio.Future[Outcome]] = {}

    def submit(self, call: Call, **options: Any) -> "asyncio.Future[Outcome]":
        future = asyncio.get_running_loop().create_future()
        self._futures[call.task_id] = future
        self.executor.submit(call, self._done, **options)
        return future

    async def run(self, name: str, *args: Any, **options: Any) -> Outcome:
        return await self.submit(call(name, *args, **options))

    async def value(self, name: str, *args: Any, **options: Any) -> Any:
        outcome = await self.run(name, *args, **options)
        return value_of(outcome)

    def _done(self, call: Call, outcome: Outcome) -> None:
        self.outcomes.setdefault(call.task_id, []).append(outcome)
        future = self._futures[call.task_id]
        if not future.done():
            future.set_result(outcome)


def value_of(outcome: Outcome) -> Any:
    assert isinstance(outcome, Delivered), outcome
    assert outcome.is_ok, outcome
    return json.loads(outcome.result)["ok"]


def error_of(outcome: Outcome) -> str:
    assert isinstance(outcome, Delivered), outcome
    assert not outcome.is_ok, outcome
    return outcome.error_message or ""


def log_of(outcome: Outcome) -> str | None:
    assert isinstance(outcome, Delivered), outcome
    return outcome.log


def is_running(pid: int) -> bool:
    """Whether a process exists and is not just waiting to be reaped."""
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


async def until(condition: Callable[[], object], within: float = 20.0) -> None:
    """Let the loop run until something of the outside world has come true."""

    async def holds() -> bool:
        return bool(condition())

    await eventually_async(holds, within=within)
