"""Waiting for results: notifications wake, polling is the truth.

Many awaiting callers share one read.
"""

import asyncio
import math
import threading
import weakref
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from horsies.clock import monotonic
from horsies.database.database import Database
from horsies.database.notifications import DONE_CHANNEL
from horsies.database.operation import FAILURES
from horsies.database.statement import Statement
from horsies.result import OperationalErrorCode, OutcomeCode, RetrievalCode, TaskError, TaskResult
from horsies.results.reading import AnyResult, Decode
from horsies.results.statements import StoredResult, read_results
from horsies.states import TASK_TERMINAL_STATES, TaskStatus

Row = TypeVar("Row", bound=tuple[Any, ...])

_POLL_S = 1.0
_TERMINAL = {status.value for status in TASK_TERMINAL_STATES}
_READ_LIMIT = 1_000


@dataclass(frozen=True, slots=True)
class Awaited(Generic[Row]):
    """What is waited for. The first column of a row is its id; `judge` gives None to wait on."""

    kind: str
    channel: str
    read: Callable[[Sequence[str]], Statement[Row]]
    judge: Callable[[str, Row | None], AnyResult | None]


def awaited_tasks(decode: Decode) -> Awaited[StoredResult]:
    """Tasks, read by the types that `decode` knows."""
    return Awaited("task", DONE_CHANNEL, read_results, lambda i, row: _judge(i, row, decode))


class ResultWaiter(Generic[Row]):
    """Serves every `get` of a process over one listener connection."""

    def __init__(self, database: Database, awaited: Awaited[Row]) -> None:
        self._database = database
        self._awaited = awaited
        self._wakes: dict[str, set[Callable[[], None]]] = {}
        self._lock = threading.Lock()
        self._readers: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, _Reader[Row]] = (
            weakref.WeakKeyDictionary()
        )

    def get(self, awaited_id: str, timeout_ms: int | None) -> AnyResult:
        """Wait in this thread."""
        deadline = None if timeout_ms is None else monotonic() + timeout_ms / 1000
        woken = threading.Event()
        statement = self._awaited.read([awaited_id])
        self._register(awaited_id, woken.set, may_wait=timeout_ms != 0)
        try:
            while True:
                woken.clear()
                try:
                    self._database.ensure_schema()
                    rows = self._database.run(statement, within=_look_s(deadline))
                except FAILURES as error:
                    return self._broker_error(awaited_id, error)
                result = self._awaited.judge(awaited_id, rows[0] if rows else None)
                if result is not None:
                    return result
                remaining = _remaining(deadline)
                if remaining <= 0:
                    return self._wait_timeout(awaited_id, timeout_ms)
                woken.wait(min(_POLL_S, remaining))
        finally:
            self._unregister(awaited_id, woken.set)

    async def get_async(self, awaited_id: str, timeout_ms: int | None) -> AnyResult:
        """Wait without blocking the event loop."""
        loop = asyncio.get_running_loop()
        deadline = None if timeout_ms is None else monotonic() + timeout_ms / 1000
        woken = asyncio.Event()

        def wake() -> None:
            if not loop.is_closed():
                loop.call_soon_threadsafe(woken.set)

        self._register(awaited_id, wake, may_wait=timeout_ms != 0)
        try:
            while True:
                woken.clear()
                try:
                    await self._database.ensure_schema_async()
                    async with asyncio.timeout(_look_s(deadline)):
                        row = await self._reader(loop).read(awaited_id)
                except FAILURES as error:
                    return self._broker_error(awaited_id, error)
                result = self._awaited.judge(awaited_id, row)
                if result is not None:
                    return result
                remaining = _remaining(deadline)
                if remaining <= 0:
                    return self._wait_timeout(awaited_id, timeout_ms)
                try:
                    async with asyncio.timeout(min(_POLL_S, remaining)):
                        await woken.wait()
                except TimeoutError:
                    pass
        finally:
            self._unregister(awaited_id, wake)

    def _reader(self, loop: asyncio.AbstractEventLoop) -> "_Reader[Row]":
        reader = self._readers.get(loop)
        if reader is None:
            reader = self._readers[loop] = _Reader(self._database, self._awaited)
        return reader

    def _register(self, awaited_id: str, wake: Callable[[], None], *, may_wait: bool) -> None:
        with self._lock:
            self._wakes.setdefault(awaited_id, set()).add(wake)
        if may_wait:
            # Each time: our process may be a fork of the one that listens.
            try:
                listener = self._database.listener()
            except FAILURES:
                return  # the read that follows tells the caller what is wrong
            if listener is not None:
                listener.subscribe(self._awaited.channel, self._wake)

    def _unregister(self, awaited_id: str, wake: Callable[[], None]) -> None:
        with self._lock:
            wakes = self._wakes.get(awaited_id)
            if wakes is not None:
                wakes.discard(wake)
                if not wakes:
                    del self._wakes[awaited_id]

    def _wake(self, payload: str) -> None:
        """Wake who waits for one of these: ids separated by commas, or none for all."""
        with self._lock:
            ids = payload.split(",") if payload else list(self._wakes)
            wakes = [wake for awaited_id in ids for wake in self._wakes.get(awaited_id, ())]
        for wake in wakes:
            wake()

    def _wait_timeout(self, awaited_id: str, timeout_ms: int | None) -> AnyResult:
        kind = self._awaited.kind
        text = (
            f"The {kind} had not finished after {timeout_ms} ms; "
            "it goes on, a later get() may find it"
        )
        data: dict[str, object] = {f"{kind}_id": awaited_id, "timeout_ms": timeout_ms}
        return error_result(RetrievalCode.WAIT_TIMEOUT, text, data)

    def _broker_error(self, awaited_id: str, error: BaseException) -> AnyResult:
        text = f"The database could not be asked: {str(error) or 'no answer in time'}"
        return TaskResult(
            err=TaskError(
                error_code=OperationalErrorCode.BROKER_ERROR,
                message=text,
                data={f"{self._awaited.kind}_id": awaited_id},
                exception=error,
            )
        )


class _Reader(Generic[Row]):
    """Self-clocking reads of one event loop: one statement in flight for all who wait."""

    def __init__(self, database: Database, awaited: Awaited[Row]) -> None:
        self._database = database
        self._awaited = awaited
        self._waiting: dict[str, list[asyncio.Future[Row | None]]] = {}
        self._task: asyncio.Task[None] | None = None

    async def read(self, awaited_id: str) -> Row | None:
        future: asyncio.Future[Row | None] = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(awaited_id, []).append(future)
        if self._task is None or self._task.done():
            # Owned by this object: it ends by itself as soon as nobody waits.
            self._task = asyncio.create_task(self._serve(), name="horsies-read-results")
        return await future

    async def _serve(self) -> None:
        while self._waiting:
            ids = list(self._waiting)[:_READ_LIMIT]
            batch = {awaited_id: self._waiting.pop(awaited_id) for awaited_id in ids}
            failure: BaseException | None = None
            found: dict[str, Row] = {}
            try:
                rows = await self._database.run_async(self._awaited.read(ids))
                found = {row[0]: row for row in rows}
            except Exception as error:  # noqa: BLE001 - also a bug: whoever waits must learn of it
                failure = error
            for awaited_id, futures in batch.items():
                for future in futures:
                    if future.done():
                        continue
                    if failure is not None:
                        future.set_exception(failure)
                    else:
                        future.set_result(found.get(awaited_id))


def _judge(task_id: str, row: StoredResult | None, decode: Decode) -> AnyResult | None:
    if row is None:
        text = f"There is no task {task_id}; was it pruned, or sent to another database?"
        return error_result(RetrievalCode.TASK_NOT_FOUND, text, {"task_id": task_id})
    if row.status not in _TERMINAL:
        return None
    if row.status == TaskStatus.CANCELLED.value:
        text = "The task was cancelled"
        return error_result(OutcomeCode.TASK_CANCELLED, text, {"task_id": task_id})
    if row.result is None:
        text = f"The task ended as {row.status} but its result column is empty"
        return error_result(RetrievalCode.RESULT_NOT_AVAILABLE, text, {"task_id": task_id})
    return decode(row.task_name, row.result)


def error_result(
    code: RetrievalCode | OutcomeCode, message: str, data: dict[str, object]
) -> AnyResult:
    """A result that says why there is none."""
    return TaskResult(err=TaskError(error_code=code, message=message, data=data))


def _remaining(deadline: float | None) -> float:
    return _POLL_S if deadline is None else deadline - monotonic()


def _look_s(deadline: float | None) -> float:
    """How long to wait for an unresponsive database; a wait of no time still looks once."""
    return math.inf if deadline is None else max(_POLL_S, deadline - monotonic())
