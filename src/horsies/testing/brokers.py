"""Apps without a database: sends are recorded, and in inline mode their tasks run at once."""

import asyncio
import random
import threading
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from horsies.app import Horsies
from horsies.broker.postgres import PostgresBroker
from horsies.codec.results import AnyResult
from horsies.config import PostgresConfig
from horsies.database.statement import Receipt
from horsies.executors import attempt
from horsies.executors.host import Host
from horsies.observability.trace_context import traceparent_of
from horsies.result import Ok, RetrievalCode, TaskError, TaskResult
from horsies.sending.enqueuer import Enqueuer, EnqueueResult
from horsies.sending.rows import NewTask
from horsies.testing.sends import Sends
from horsies.worker.child_main import AppDefinitions
from horsies.worker.held_task import HeldTask
from horsies.worker.outcome import judge

_NOWHERE = PostgresConfig(database_url="postgresql://tests-without-a-database.invalid/none")


@contextmanager
def inline(app: Horsies) -> Generator[Sends, None, None]:
    """Run each task at its send, in this process, with its retries and without their waits.

    Results and errors are what a worker would store; `handle.get()` gives them at once.
    """
    with _using(app, runs=True) as sends:
        yield sends


@contextmanager
def recorded(app: Horsies) -> Generator[Sends, None, None]:
    """Record sends; nothing is stored and nothing runs."""
    with _using(app, runs=False) as sends:
        yield sends


@contextmanager
def _using(app: Horsies, *, runs: bool) -> Generator[Sends, None, None]:
    sends = Sends(app)
    before = app._broker
    app._broker = _Nowhere(app, sends, runs=runs)
    try:
        yield sends
    finally:
        app._broker = before


class _Nowhere(PostgresBroker):
    """A broker that keeps results in memory."""

    stores_in_transactions = False

    def __init__(self, app: Horsies, sends: Sends, *, runs: bool) -> None:
        super().__init__(_NOWHERE)
        self.results: dict[str, str] = {}
        self.names: dict[str, str] = {}
        self.enqueuer = _Recorder(app, self, sends, runs=runs)

    def get_result(self, task_id: str, timeout_ms: int | None = None) -> AnyResult:
        if task_id in self.results:
            return self.decode(self.names[task_id], self.results[task_id])
        return TaskResult(
            err=TaskError(
                error_code=RetrievalCode.RESULT_NOT_READY,
                message="in this test tasks are recorded and do not run",
                data={"task_id": task_id},
            )
        )

    async def get_result_async(self, task_id: str, timeout_ms: int | None = None) -> AnyResult:
        return self.get_result(task_id, timeout_ms)


class _Recorder(Enqueuer):
    """Takes rows as the enqueuer does."""

    def __init__(self, app: Horsies, broker: _Nowhere, sends: Sends, *, runs: bool) -> None:
        super().__init__(broker.database)
        self._app = app
        self._broker = broker
        self._sends = sends
        self._runs = runs

    def enqueue(self, row: NewTask) -> EnqueueResult:
        self._sends.add(row)
        if self._runs:
            definition = self._app.definition(row.task_name)
            if definition is not None and definition.is_coroutine:
                _in_thread(self._run_async(row))
            else:
                self._run(row)
        return Ok(Receipt(row.id, "created"))

    async def enqueue_async(self, row: NewTask) -> EnqueueResult:
        definition = self._app.definition(row.task_name)
        if not self._runs or definition is None or not definition.is_coroutine:
            return self.enqueue(row)
        self._sends.add(row)
        await self._run_async(row)
        return Ok(Receipt(row.id, "created"))

    def enqueue_all(self, rows: Sequence[NewTask]) -> list[Receipt]:
        return [self.enqueue(row).unwrap() for row in rows]

    def copy(self, rows: Iterator[NewTask]) -> list[str]:
        return [self.enqueue(row).unwrap().task_id for row in rows]

    def _run(self, row: NewTask) -> None:
        definition = self._app.definition(row.task_name)
        for number in range(1, row.max_retries + 2):
            held = _held(row, number)
            try:
                ended: Any = attempt.run_alone(definition, held, self._host())
            except KeyboardInterrupt as error:  # `crash`, as an executor takes it
                ended = attempt.crashed_by(error)
            if not self._keep(row, judge(held, ended, random=random.Random(0))):  # noqa: S311
                return

    async def _run_async(self, row: NewTask) -> None:
        definition = self._app.definition(row.task_name)
        for number in range(1, row.max_retries + 2):
            held = _held(row, number)
            try:
                ended: Any = await attempt.run_alone_async(definition, held, self._host())
            except KeyboardInterrupt as error:
                ended = attempt.crashed_by(error)
            if not self._keep(row, judge(held, ended, random=random.Random(0))):  # noqa: S311
                return

    def _host(self) -> Host:
        return Host(AppDefinitions(self._app, None, "inline"))

    def _keep(self, row: NewTask, completion: Any) -> bool:
        """Keep what would be stored; whether the policy asks for another attempt."""
        self._broker.results[row.id] = completion.result
        self._broker.names[row.id] = row.task_name
        return completion.retry_delay_s is not None


def _held(row: NewTask, number: int) -> HeldTask:
    held = HeldTask(
        row.id, row.queue_name, row.priority, 1, row.task_name, row.args, row.kwargs, number,
        "", "", row.task_options, False, None,
    )  # fmt: skip
    held.traceparent = traceparent_of(row.task_options)
    return held


def _in_thread(coroutine: Any) -> None:
    """Run a coroutine to its end although this thread may run an event loop."""
    failed: list[BaseException] = []

    def run() -> None:
        try:
            asyncio.run(coroutine)
        except BaseException as error:  # noqa: BLE001  # handed on to the caller
            failed.append(error)

    thread = threading.Thread(target=run, name="horsies-inline")
    thread.start()
    thread.join()
    if failed:
        raise failed[0]
