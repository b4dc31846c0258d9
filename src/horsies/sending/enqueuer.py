"""Stores new rows: one, many, and the group commit of concurrent awaiting callers.

One bad row never spoils its batch: a statement refused for a reason of one row is split until the
culprit stands alone.
"""

import asyncio
import math
import weakref
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import islice
from typing import TypeAlias

import psycopg
from psycopg import Connection
from psycopg.errors import UniqueViolation
from psycopg.rows import TupleRow

from horsies.codes import TaskSendErrorCode
from horsies.database.database import Database
from horsies.database.operation import FAILURES, describe
from horsies.database.sql_files import query
from horsies.database.statement import Receipt, run_blocking
from horsies.database.verdict import is_transient
from horsies.result import Err, Ok, Result
from horsies.sending.errors import TaskSendError
from horsies.sending.rows import NewTask, payload_of
from horsies.sending.statements import (
    copied_columns,
    copy_tasks,
    direct_send,
    enqueue_tasks,
    plain_fields,
    send_task,
    send_tasks,
)

EnqueueResult: TypeAlias = Result[Receipt, TaskSendError]
_Waiting: TypeAlias = tuple[NewTask, asyncio.Future[EnqueueResult]]

# A statement carries at most this much: the knee of the curve for unnest, and far below any
# protocol limit.
_MAX_ROWS = 1_000
_MAX_BYTES = 8_000_000
# The server ends a COPY with work per row (the trigger): far longer than that ever takes.
_S_PER_COPIED_ROW = 0.001
# COPY takes four round trips, which pays for more rows than these.
_FEW_ROWS = 50
_COPY_ROWS = 250  # small enough that the server starts early, large enough to be cheap


class Enqueuer:
    """Writes task rows into one database."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._groups: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, _Group] = (
            weakref.WeakKeyDictionary()
        )

    def enqueue(self, row: NewTask) -> EnqueueResult:
        """Write one row from a blocking caller."""
        try:
            self._database.ensure_schema()
            if _is_plain(row):
                with suppress(UniqueViolation):  # the id is taken; by what, the general way tells
                    self._database.call(direct_send(), plain_fields(row))
                    return Ok(Receipt(row.id, "created"))
            ((receipt,),) = self._database.run(send_tasks([row]))
            return read_receipt(row, receipt)
        except FAILURES as error:
            return Err(not_stored(error, row))

    async def enqueue_async(self, row: NewTask) -> EnqueueResult:
        """Write one row together with those of concurrent callers of this event loop.

        Not one with a unique key: it may have to wait for another transaction, and only it should.
        """
        if row.unique_key is not None:
            return (await self.write_async([row]))[0]
        loop = asyncio.get_running_loop()
        group = self._groups.get(loop)
        if group is None:
            group = self._groups[loop] = _Group(self)
        return await group.add(row)

    async def write_async(self, batch: Sequence[NewTask]) -> list[EnqueueResult]:
        """Write rows in one statement, or each half by itself when one of them is refused."""
        try:
            await self._database.ensure_schema_async()
            receipts = await self._insert_async(batch)
        except FAILURES as error:
            if len(batch) == 1 or not _is_about_a_row(error):
                return [Err(not_stored(error, row)) for row in batch]
        else:
            return [read_receipt(row, got) for row, got in zip(batch, receipts, strict=True)]
        middle = len(batch) // 2
        return await self.write_async(batch[:middle]) + await self.write_async(batch[middle:])

    async def _insert_async(self, batch: Sequence[NewTask]) -> list[Receipt]:
        if len(batch) == 1 and _is_plain(batch[0]):
            with suppress(UniqueViolation):
                await self._database.run_async(send_task(batch[0]))
                return [Receipt(batch[0].id, "created")]
        (receipts,) = await self._database.run_async(send_tasks(batch))
        return receipts

    def copy(self, rows: Iterator[NewTask]) -> list[str]:
        """Write plain rows (fresh ids, no unique key, due at once), all or none.

        Returns their ids. Few are written by one statement, many by COPY: taken from the iterator
        while the server stores the earlier ones.
        """
        # A first call that is refused, or none at all, never reaches the database.
        first = list(islice(rows, _COPY_ROWS))
        if not first:
            return []
        self._database.ensure_schema()
        if len(first) == 1:
            # A fresh id that is taken was stored by a first try whose answer was lost.
            with suppress(UniqueViolation):
                self._database.call(direct_send(), plain_fields(first[0]))
            return [first[0].id]
        if len(first) <= _FEW_ROWS and sum(map(_size, first)) < _MAX_BYTES:
            (receipts,) = self._database.run(send_tasks(first))
            return [receipt.task_id for receipt in receipts]
        with self._database.pool.connection() as connection:
            return self._copy_rows(connection, first, rows)

    def _copy_rows(
        self, connection: Connection[TupleRow], part: list[NewTask], rows: Iterator[NewTask]
    ) -> list[str]:
        limit_s = self._database.statement_limit_s
        copied: list[str] = []
        with (
            self._database.watchdog.limit(connection, limit_s) as renew,
            connection.cursor() as cursor,
        ):
            cursor.execute(query("database", "begin_without_limit").encode())
            with cursor.copy(copy_tasks().encode()) as copy:
                while part:
                    copy.write(_copy_lines(part))
                    copied += [row.id for row in part]
                    renew(math.inf)  # the caller's own iterator may take its time
                    part = list(islice(rows, _COPY_ROWS))
                    renew(limit_s + _S_PER_COPIED_ROW * len(copied))
            connection.commit()  # a connection that does not come so far is not kept by its pool
        return copied

    def enqueue_all(self, rows: Sequence[NewTask]) -> list[Receipt]:
        """Write rows in one transaction, all or none."""
        self._database.ensure_schema()
        receipts: list[Receipt] = []
        limit_s = self._database.statement_limit_s
        with (
            self._database.pool.connection() as connection,
            self._database.watchdog.limit(connection, limit_s) as renew,
            connection.transaction(),
        ):
            for batch in batches(rows):
                receipts += run_blocking(connection, enqueue_tasks(batch))
                renew(limit_s)
        return receipts


class _Group:
    """Self-clocking group commit: callers that arrive during a statement share the next one."""

    def __init__(self, enqueuer: Enqueuer) -> None:
        self._enqueuer = enqueuer
        self._waiting: list[_Waiting] = []
        self._writing: list[_Waiting] = []
        self._writer: asyncio.Task[None] | None = None

    async def add(self, row: NewTask) -> EnqueueResult:
        future: asyncio.Future[EnqueueResult] = asyncio.get_running_loop().create_future()
        self._waiting.append((row, future))
        self._ensure_writer()
        return await future

    def _ensure_writer(self) -> None:
        if self._writer is None:
            # Owned by this object: it ends by itself as soon as nobody waits.
            self._writer = asyncio.create_task(self._write(), name="horsies-enqueue")
            self._writer.add_done_callback(self._on_ended)

    def _on_ended(self, _writer: asyncio.Task[None]) -> None:
        self._writer = None  # it knows its loop, which could not be forgotten
        # Left over when someone cancels all tasks of the loop but those that wait here; what was
        # written all the same is found by its id.
        self._waiting = [one for one in self._writing + self._waiting if not one[1].done()]
        self._writing = []
        if self._waiting:
            self._ensure_writer()

    async def _write(self) -> None:
        while self._waiting:
            self._writing, self._waiting = self._waiting, []
            futures = iter([future for _, future in self._writing])
            for batch in batches([row for row, _ in self._writing]):
                await self._write_batch(batch, [next(futures) for _ in batch])

    async def _write_batch(
        self, batch: Sequence[NewTask], futures: Sequence[asyncio.Future[EnqueueResult]]
    ) -> None:
        try:
            answers = await self._enqueuer.write_async(batch)
        except Exception as error:  # noqa: BLE001 - a bug: whoever waits must learn of it
            for future in futures:
                if not future.done():
                    future.set_exception(error)
            return
        for future, answer in zip(futures, answers, strict=True):
            if not future.done():
                future.set_result(answer)


def batches(rows: Sequence[NewTask]) -> Iterable[Sequence[NewTask]]:
    """Cut rows into batches bounded by rows and by bytes."""
    start = size = 0
    for position, row in enumerate(rows):
        row_size = _size(row)
        if position > start and (position - start >= _MAX_ROWS or size + row_size > _MAX_BYTES):
            yield rows[start:position]
            start, size = position, 0
        size += row_size
    if start < len(rows):
        yield rows[start:]


def _size(row: NewTask) -> int:
    """About how many bytes a statement needs for it."""
    return len(row.args or "") + len(row.kwargs or "") + 400


def read_receipt(row: NewTask, receipt: Receipt) -> EnqueueResult:
    """Whether the row is stored, by this call or an earlier one; else what stands in its way."""
    match receipt.outcome:
        case "created" | "exists" | "held":
            return Ok(receipt)
        case "mismatch" | "key_mismatch":
            what = "id" if receipt.outcome == "mismatch" else "unique key"
            return Err(
                TaskSendError(
                    TaskSendErrorCode.PAYLOAD_MISMATCH,
                    f"task {receipt.task_id} already holds this {what} with another payload",
                    retryable=False,
                    task_id=receipt.task_id,
                    payload=payload_of(row),
                )
            )
        case _:
            return Err(not_stored(TimeoutError("the unique key kept changing hands"), row))


def not_stored(error: BaseException, row: NewTask | None = None) -> TaskSendError:
    """A failure on the way to the database, with what is needed to send the row again."""
    return TaskSendError(
        TaskSendErrorCode.ENQUEUE_FAILED,
        describe(error),
        retryable=is_transient(error),
        task_id=row.id if row else None,
        payload=payload_of(row) if row else None,
        exception=error,
    )


def not_stored_together(error: BaseException, rows: Sequence[NewTask]) -> TaskSendError:
    """The same for rows of one transaction."""
    each = tuple(not_stored(error, row) for row in rows)
    return replace(not_stored(error, rows[0] if len(rows) == 1 else None), each=each)


# Fields that differ from row to row of a bulk send; the texts of the others are remembered.
_DIFFERENT = {NewTask._fields.index(name) for name in ("id", "args", "kwargs", "enqueue_sha")}


def _copy_lines(rows: Sequence[NewTask]) -> str:
    """Rows as COPY takes them."""
    positions = [NewTask._fields.index(name) for name in copied_columns()]
    remembered: dict[object, str] = {}
    lines: list[str] = []
    for row in rows:
        fields: list[str] = []
        for position in positions:
            value: object = row[position]
            if position in _DIFFERENT:
                fields.append(_copy_text(value))
                continue
            if value not in remembered:
                remembered[value] = _copy_text(value)
            fields.append(remembered[value])
        lines.append("\t".join(fields))
    return "\n".join(lines) + "\n"


def _copy_text(field: object) -> str:
    if field is None:
        return "\\N"
    text = str(field).replace("\\", "\\\\")
    return text.replace("\n", "\\n").replace("\t", "\\t").replace("\r", "\\r")


def _is_about_a_row(error: BaseException) -> bool:
    """Other errors, such as a missing right, would meet every row alike."""
    if isinstance(error, psycopg.Error):
        is_about_the_statement = (error.sqlstate or "").startswith("42")
        return not is_about_the_statement and not is_transient(error)
    return isinstance(error, UnicodeError)


def _is_plain(row: NewTask) -> bool:
    return row.unique_key is None and row.tags is None
