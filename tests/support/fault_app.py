"""The app of the fault tests: each task writes into a ledger that its user code began."""

import asyncio
import json
import os
import sys
import time
from pathlib import Path
from typing import Any

import horsies
from horsies import (
    AppConfig,
    Horsies,
    PostgresConfig,
    RecoveryConfig,
    RetryPolicy,
    TaskError,
    TaskResult,
    WorkerResilienceConfig,
)

URL = os.environ["HORSIES_FAULT_DATABASE_URL"]
LEDGER = os.environ["HORSIES_FAULT_LEDGER"]
# What a test changes: fields of the app's configuration, by part.
SETTINGS: dict[str, Any] = json.loads(os.environ.get("HORSIES_FAULT_SETTINGS", "{}"))
_recovery = {
    "check_interval_ms": 1_000,
    "runner_heartbeat_interval_ms": 1_000,
    "claimer_heartbeat_interval_ms": 1_000,
    "running_stale_threshold_ms": 20_000,
    "claimed_stale_threshold_ms": 20_000,
}
app = Horsies(
    AppConfig(
        broker=PostgresConfig(database_url=URL, **SETTINGS.get("broker", {})),
        recovery=RecoveryConfig(**(_recovery | SETTINGS.get("recovery", {}))),
        resilience=WorkerResilienceConfig(
            **{
                "db_retry_initial_ms": 100,
                "db_retry_max_ms": 500,
                "notify_poll_interval_ms": 1_000,
                **json.loads(os.environ.get("HORSIES_FAULT_RESILIENCE", "{}")),
            }
        ),
        resend_on_transient_err=True,
        **SETTINGS.get("app", {}),
    )
)
again = RetryPolicy.fixed([1] * 20, auto_retry_for=["WORKER_CRASHED", "FLAKY"], jitter=False)


def begin(number: int) -> None:
    """Write into the ledger that an attempt of `number` began: a file, to know it at any kill."""
    file = os.open(LEDGER, os.O_WRONLY | os.O_APPEND)
    os.write(file, f"{number}\n".encode())
    os.close(file)


def is_held(seconds: float) -> bool:
    """Without a length, a task lasts until the test opens the gate."""
    return seconds < 0 and not Path(f"{LEDGER}.open").exists()


def wait(seconds: float) -> None:
    time.sleep(max(0.0, seconds))
    while is_held(seconds):
        time.sleep(0.02)


async def wait_async(seconds: float) -> None:
    await asyncio.sleep(max(0.0, seconds))
    while is_held(seconds):
        await asyncio.sleep(0.02)


@app.task("child", retry_policy=again)
def child(number: int, seconds: float = 0.0) -> TaskResult[int, TaskError]:
    begin(number)
    wait(seconds)
    return TaskResult(ok=number)


@app.task("slow_child", retry_policy=again)
def slow_child(number: int, seconds: float = 0.0) -> TaskResult[int, TaskError]:
    return child.definition.function(number, seconds)  # the same under a name of its own


@app.task("coroutine", retry_policy=again)
async def coroutine(number: int, seconds: float = 0.0) -> TaskResult[int, TaskError]:
    begin(number)
    await wait_async(seconds)
    return TaskResult(ok=number)


@app.task("thread", execution="blocking", retry_policy=again)
def thread(number: int, seconds: float = 0.0) -> TaskResult[int, TaskError]:
    begin(number)
    wait(seconds)
    return TaskResult(ok=number)


@app.task("flaky", retry_policy=again)
async def flaky(number: int, seconds: float = 0.0) -> TaskResult[int, TaskError]:
    """Fails when it begins for the first time."""
    begin(number)
    await wait_async(seconds)
    if Path(LEDGER).read_text().split().count(str(number)) == 1:
        return TaskResult(err=TaskError(error_code="FLAKY", message="the first time fails"))
    return TaskResult(ok=number)


@app.task("blocker")
async def blocker(number: int, seconds: float = 0.0) -> TaskResult[int, TaskError]:
    """Blocks the worker's event loop, as a careless coroutine does."""
    begin(number)
    wait(seconds)
    return TaskResult(ok=number)


@app.task("interruptible", interruptible=True, retry_policy=again)
async def interruptible(number: int, seconds: float = 0.0) -> TaskResult[int, TaskError]:
    """Not in the ledger: an interrupted run is not an attempt."""
    await wait_async(seconds)
    return TaskResult(ok=number)


# The tests of the previous release load this file, too: it has no workflows.
if hasattr(horsies, "WorkflowDefinition"):

    class Pair(horsies.WorkflowDefinition[int]):
        """A child workflow of two tasks, 11 and 12."""

        name = "pair"
        definition_key = f"faults.pair.{LEDGER}"  # the file is loaded once per scene
        first = horsies.TaskNode(fn=coroutine, kwargs={"number": 11})
        second = horsies.TaskNode(fn=coroutine, kwargs={"number": 12}, waits_for=[first])

        class Meta:
            output = "second"


if __name__ == "__main__":  # a sender of its own: kind, number, seconds, options
    kind, number_text, seconds_text, options = sys.argv[1:]
    task = app.tasks[kind].with_options(**json.loads(options))
    task.send(int(number_text), float(seconds_text)).unwrap()
