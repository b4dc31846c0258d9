"""Waiting for results: notifications wake, polling is the truth.

Many awaiting callers share one read.
"""

import asyncio
import logging
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
from horsies.locks import ForkSafeLock
from horsies.result import OperationalErrorCode, OutcomeCode, RetrievalCode, TaskError, TaskResult
from horsies.results.reading import AnyResult, Decode
from horsies.results.statements import StoredResult, Unfinished, read_results, why_unfinished
from horsies.states import TASK_TERMINAL_STATES, TaskStatus

Row = TypeVar("Row", bound=tuple[Any, ...])

_logger = logging.getLogger("horsies.results")
_POLL_S = 1.0
_EXPLAIN_S = 0.2  # a wait ends within its limit, or hardly later
_TELL_AFTER_S = 3.0  # long enough for a worker that is starting
_TERMINAL = {status.value for status in TASK_TERMINAL_STATES}
_READ_LIMIT = 1_000


@dataclass(frozen=True, slots=True)
class Awaited(Generic[Row]):
    """What is waited for. The first column of a row is its id; `judge` gives None to wait on."""

    kind: str
    channel: str
    read: Callable[[Sequence[str]], Statement[Row]]
    judge: Callable[[str, Row | None], AnyResult | None]
    explain: Callable[[str], Statement[Unfinished]] | None = None


def awaited_tasks(decode: Decode) -> Awaited[StoredResult]:
    """Tasks, read by the types that `decode` knows."""
    return Awaited(
        "task",
        DONE_CHANNEL,
        read_results,
        lambda i, row: _judge(i, row, decode),
        why_unfinished,
    )


class ResultWaiter(Generic[Row]):
    """Serves every `get` of a process over one listener connection."""

    def __init__(self, database: Database, awaited: Awaited[Row]) -> None:
        self._database = database
        self._awaited = awaited
        self._wakes: dict[str, set[Callable[[], None]]] = {}
        self._lock = ForkSafeLock()
        self._has_warned_of_loop = False
        self._readers: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, _Reader[Row]] = (
            weakref.WeakKeyDictionary()
        )

    def get(self, awaited_id: str, timeout_ms: int | None) -> AnyResult:
        """Wait in this thread."""
        patience = _Patience(timeout_ms)
        woken = threading.Event()
        statement = self._awaited.read([awaited_id])
        self._register(awaited_id, woken.set, may_wait=timeout_ms != 0)
        try:
            while True:
                woken.clear()
                try:
                    self._database.ensure_schema()
                    rows = self._database.run(statement, within=patience.look_s)
                except FAILURES as error:
                    return self._broker_error(awaited_id, error)
                result = self._awaited.judge(awaited_id, rows[0] if rows else None)
                if result is not None:
                    return result
                if timeout_ms != 0:
                    self._warn_of_blocked_loop()
                if patience.remaining <= 0:
                    reason = self._explain(awaited_id) if timeout_ms else None
                    return self._wait_timeout(awaited_id, timeout_ms, reason)
                if patience.is_time_to_tell():
                    self._tell_unserved(awaited_id, self._explain(awaited_id))
                woken.wait(min(_POLL_S, patience.remaining))
        finally:
            self._unregister(awaited_id, woken.set)

    async def get_async(self, awaited_id: str, timeout_ms: int | None) -> AnyResult:
        """Wait without blocking the event loop."""
        loop = asyncio.get_running_loop()
        patience = _Patience(timeout_ms)
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
                    async with asyncio.timeout(patience.look_s):
                        row = await self._reader(loop).read(awaited_id)
                except FAILURES as error:
                    return self._broker_error(awaited_id, error)
                result = self._awaited.judge(awaited_id, row)
                if result is not None:
                    return result
                if patience.remaining <= 0:
                    reason = await self._explain_async(awaited_id) if timeout_ms else None
                    return self._wait_timeout(awaited_id, timeout_ms, reason)
                if patience.is_time_to_tell():
                    self._tell_unserved(awaited_id, await self._explain_async(awaited_id))
                try:
                    async with asyncio.timeout(min(_POLL_S, patience.remaining)):
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

    def _explain(self, awaited_id: str) -> Unfinished | None:
        """How the task stands; nothing when the database cannot be asked, which is no failure."""
        if self._awaited.explain is None:
            return None
        try:
            rows = self._database.run(self._awaited.explain(awaited_id), within=_EXPLAIN_S)
        except FAILURES:
            return None
        return rows[0] if rows else None

    async def _explain_async(self, awaited_id: str) -> Unfinished | None:
        if self._awaited.explain is None:
            return None
        try:
            async with asyncio.timeout(_EXPLAIN_S):
                rows = await self._database.run_async(self._awaited.explain(awaited_id))
        except FAILURES:
            return None
        return rows[0] if rows else None

    def _tell_unserved(self, awaited_id: str, found: Unfinished | None) -> None:
        """Say it while somebody waits: without a worker the wait may have no end."""
        if found is not None and not (found.is_served or found.is_early):
            _logger.warning("waiting for task %s: %s", awaited_id, found)

    def _warn_of_blocked_loop(self) -> None:
        if self._has_warned_of_loop or not _is_in_loop():
            return
        self._has_warned_of_loop = True
        _logger.warning(
            "a blocking get() waits on a thread that runs an event loop, which stands still "
            "meanwhile: use `await handle.get_async()` there"
        )

    def _wait_timeout(
        self, awaited_id: str, timeout_ms: int | None, reason: Unfinished | None
    ) -> AnyResult:
        kind = self._awaited.kind
        text = f"The {kind} had not finished after {timeout_ms} ms"
        text = (
            f"{text}; it goes on, a later get() may find it"
            if reason is None
            else (f"{text}: {reason}. A later get() may find its result")
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
        self._reading: dict[str, list[asyncio.Future[Row | None]]] = {}
        self._task: asyncio.Task[None] | None = None

    async def read(self, awaited_id: str) -> Row | None:
        future: asyncio.Future[Row | None] = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(awaited_id, []).append(future)
        self._ensure_task()
        return await future

    def _ensure_task(self) -> None:
        if self._task is None:
            # Owned by this object: it ends by itself as soon as nobody waits.
            self._task = asyncio.create_task(self._serve(), name="horsies-read-results")
            self._task.add_done_callback(self._on_ended)

    def _on_ended(self, _task: asyncio.Task[None]) -> None:
        self._task = None  # it knows its loop, which could not be forgotten
        # Left over when someone cancels all tasks of the loop but those that wait here.
        asked = [*self._reading.items(), *self._waiting.items()]
        self._reading, self._waiting = {}, {}
        for awaited_id, futures in asked:
            if left := [future for future in futures if not future.done()]:
                self._waiting.setdefault(awaited_id, []).extend(left)
        if self._waiting:
            self._ensure_task()

    async def _serve(self) -> None:
        while self._waiting:
            ids = list(self._waiting)[:_READ_LIMIT]
            self._reading = {awaited_id: self._waiting.pop(awaited_id) for awaited_id in ids}
            await self._read(self._reading)

    async def _read(self, batch: dict[str, list[asyncio.Future[Row | None]]]) -> None:
        failure: BaseException | None = None
        found: dict[str, Row] = {}
        try:
            rows = await self._database.run_async(self._awaited.read(list(batch)))
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


class _Patience:
    """How long a caller is ready to wait, and when it should hear that nothing happens."""

    def __init__(self, timeout_ms: int | None) -> None:
        now = monotonic()
        self._deadline = None if timeout_ms is None else now + timeout_ms / 1000
        self._tell_at: float | None = now + _TELL_AFTER_S

    @property
    def remaining(self) -> float:
        return _POLL_S if self._deadline is None else self._deadline - monotonic()

    @property
    def look_s(self) -> float:
        """How long to wait for an unresponsive database; a wait of no time still looks once."""
        return math.inf if self._deadline is None else max(_POLL_S, self.remaining)

    def is_time_to_tell(self) -> bool:
        """Whether a few seconds have passed; true once."""
        if self._tell_at is None or monotonic() < self._tell_at:
            return False
        self._tell_at = None
        return True


def _is_in_loop() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True
