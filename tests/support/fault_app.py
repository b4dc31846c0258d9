"""The app of the fault tests: each task writes into a ledger that its user code began."""

import asyncio
import os
import time

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
app = Horsies(
    AppConfig(
        broker=PostgresConfig(
            database_url=URL,
            pgbouncer_transaction_mode=os.environ.get("HORSIES_FAULT_POOLED") == "1",
        ),
        recovery=RecoveryConfig(
            check_interval_ms=1_000,
            runner_heartbeat_interval_ms=1_000,
            claimer_heartbeat_interval_ms=1_000,
            running_stale_threshold_ms=20_000,
            claimed_stale_threshold_ms=20_000,
        ),
        resilience=WorkerResilienceConfig(
            db_retry_initial_ms=100, db_retry_max_ms=500, notify_poll_interval_ms=1_000
        ),
        resend_on_transient_err=True,
    )
)
again = RetryPolicy.fixed([1] * 20, auto_retry_for=["WORKER_CRASHED"], jitter=False)


LEDGER = os.environ["HORSIES_FAULT_LEDGER"]


def begin(number: int) -> None:
    """Write into the ledger that an attempt of `number` began: a file, to know it at any kill."""
    file = os.open(LEDGER, os.O_WRONLY | os.O_APPEND)
    os.write(file, f"{number}\n".encode())
    os.close(file)


@app.task("child", retry_policy=again)
def child(number: int, seconds: float = 0.0) -> TaskResult[int, TaskError]:
    begin(number)
    time.sleep(seconds)
    return TaskResult(ok=number)


@app.task("coroutine", retry_policy=again)
async def coroutine(number: int, seconds: float = 0.0) -> TaskResult[int, TaskError]:
    begin(number)
    await asyncio.sleep(seconds)
    return TaskResult(ok=number)


@app.task("thread", execution="blocking", retry_policy=again)
def thread(number: int, seconds: float = 0.0) -> TaskResult[int, TaskError]:
    begin(number)
    time.sleep(seconds)
    return TaskResult(ok=number)


@app.task("interruptible", interruptible=True)
async def interruptible(number: int, seconds: float = 0.0) -> TaskResult[int, TaskError]:
    await asyncio.sleep(seconds)
    return TaskResult(ok=number)
