"""Enqueueing: one row, many rows, and the group commit of concurrent awaiting callers.

One bad row never spoils its batch: a statement refused for a reason of one row is split until the
culprit stands alone.
"""

import asyncio
import math
import weakref
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from itertools import islice
from typing import Any, TypeAlias

import psycopg
from psycopg import Connection
from psycopg.errors import UniqueViolation

from horsies.broker.session import FAILURES, Session
from horsies.database.rows import NewTask, Receipt
from horsies.database.sql_files import query
from horsies.database.statement import is_passing, run_blocking
from horsies.database.tasks import enqueue_tasks, insert_task

Answer: TypeAlias = Receipt | BaseException

# A statement carries at most this much: the knee of the curve for unnest, and far below any
# protocol limit.
_MAX_ROWS = 1_000
_MAX_BYTES = 8_000_000
# The server ends a COPY with work per row (the trigger): far longer than that ever takes.
_S_PER_COPIED_ROW = 0.001
_COPY_ROWS = 250  # small enough that the server starts early, large enough to be cheap
# A unique key whose holder ends just while it is looked up: sending again finds it free, or held
# anew.
_MAX_TRIES = 10


class Enqueuer:
    """Writes task rows for a broker."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._groups: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, _Group] = (
            weakref.WeakKeyDictionary()
        )

    def enqueue(self, rows: Sequence[NewTask]) -> list[Answer]:
        """Write rows from a blocking caller; one answer per row, in order."""
        answers: list[Answer] = []
        for batch in batches(rows):
            answers += self._write(batch)
        return answers

    def _write(self, batch: Sequence[NewTask]) -> list[Answer]:
        try:
            self._session.ensure_schema()
            return self._insert(batch)
        except FAILURES as error:
            if len(batch) == 1 or not _is_about_a_row(error):
                return [error] * len(batch)
        middle = len(batch) // 2
        return self._write(batch[:middle]) + self._write(batch[middle:])

    def _insert(self, batch: Sequence[NewTask]) -> list[Answer]:
        if _is_one_plain_row(batch):
            with suppress(UniqueViolation):  # the id is taken; by what, the general way tells
                self._session.run(insert_task(batch[0]))
                return [Receipt(batch[0].id, "created")]
        receipts = self._session.run(enqueue_tasks(batch))
        for _ in range(_MAX_TRIES):
            if not has_freed_key(receipts):
                break
            receipts = self._session.run(enqueue_tasks(batch))
        return [*receipts]

    async def _insert_async(self, batch: Sequence[NewTask]) -> list[Answer]:
        if _is_one_plain_row(batch):
            with suppress(UniqueViolation):
                await self._session.run_async(insert_task(batch[0]))
                return [Receipt(batch[0].id, "created")]
        receipts = await self._session.run_async(enqueue_tasks(batch))
        for _ in range(_MAX_TRIES):
            if not has_freed_key(receipts):
                break
            receipts = await self._session.run_async(enqueue_tasks(batch))
        return [*receipts]

    async def enqueue_async(self, row: NewTask) -> Answer:
        """Write one row together with those of concurrent callers of this event loop."""
        loop = asyncio.get_running_loop()
        group = self._groups.get(loop)
        if group is None:
            group = self._groups[loop] = _Group(self)
        return await group.add(row)

    async def write_async(self, batch: Sequence[NewTask]) -> list[Answer]:
        try:
            await self._session.ensure_schema_async()
            return await self._insert_async(batch)
        except FAILURES as error:
            if len(batch) == 1 or not _is_about_a_row(error):
                return [error] * len(batch)
        middle = len(batch) // 2
        return await self.write_async(batch[:middle]) + await self.write_async(batch[middle:])

    def copy(self, rows: Iterator[NewTask]) -> list[str]:
        """Write plain rows (fresh ids, no unique key, due at once) by COPY, all or none.

        Returns their ids. They are taken from the iterator while the server stores the earlier
        ones, and not kept.
        """
        # A first call that is refused, or none at all, never reaches the database.
        first = list(islice(rows, _COPY_ROWS))
        if not first:
            return []
        self._session.ensure_schema()
        with self._session.pool.connection() as connection:
            return self._copy_rows(connection, first, rows)

    def _copy_rows(
        self, connection: Connection[Any], part: list[NewTask], rows: Iterator[NewTask]
    ) -> list[str]:
        statement = query("tasks", "copy_tasks").encode()
        limit_s = self._session.config.pool_timeout
        copied: list[str] = []
        with (
            self._session.watchdog.limit(connection, limit_s) as renew,
            connection.cursor() as cursor,
            cursor.copy(statement) as copy,
        ):
            while part:
                copy.write(_copy_lines(part))
                copied += [row.id for row in part]
                renew(math.inf)  # the caller's own iterator may take its time
                part = list(islice(rows, _COPY_ROWS))
                renew(limit_s + _S_PER_COPIED_ROW * len(copied))
        return copied

    def enqueue_all(self, rows: Sequence[NewTask]) -> list[Receipt]:
        """Write rows in one transaction, all or none."""
        self._session.ensure_schema()
        receipts: list[Receipt] = []
        limit_s = self._session.config.pool_timeout
        with (
            self._session.pool.connection() as connection,
            self._session.watchdog.limit(connection, limit_s) as renew,
            connection.transaction(),
        ):
            for batch in batches(rows):
                receipts += run_blocking(connection, enqueue_tasks(batch))
                renew(limit_s)
        return receipts


class _Group:
    """Self-clocking group commit: one statement in flight.

    Whoever arrives meanwhile shares the next.
    """

    def __init__(self, enqueuer: Enqueuer) -> None:
        self._enqueuer = enqueuer
        self._waiting: list[tuple[NewTask, asyncio.Future[Answer]]] = []
        self._writer: asyncio.Task[None] | None = None

    async def add(self, row: NewTask) -> Answer:
        future: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
        self._waiting.append((row, future))
        if self._writer is None or self._writer.done():
            # Owned by this object: it ends by itself as soon as nobody waits.
            self._writer = asyncio.create_task(self._write(), name="horsies-enqueue")
        return await future

    async def _write(self) -> None:
        while self._waiting:
            waiting, self._waiting = self._waiting, []
            futures = iter([future for _, future in waiting])
            for batch in batches([row for row, _ in waiting]):
                await self._write_batch(batch, [next(futures) for _ in batch])

    async def _write_batch(
        self, batch: Sequence[NewTask], futures: Sequence[asyncio.Future[Answer]]
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
        row_size = len(row.args or "") + len(row.kwargs or "") + 400
        if position > start and (position - start >= _MAX_ROWS or size + row_size > _MAX_BYTES):
            yield rows[start:position]
            start, size = position, 0
        size += row_size
    if start < len(rows):
        yield rows[start:]


def has_freed_key(receipts: Sequence[Receipt]) -> bool:
    """Whether a unique key was free again when its holder was looked up: worth another try."""
    return any(receipt.outcome == "freed" for receipt in receipts)


def _copy_lines(rows: Sequence[NewTask]) -> str:
    lines: list[str] = []
    shared: tuple[object, ...] | None = None
    task = rest = ""
    for row in rows:
        same = (row.task_name, row.queue_name, row.priority, row.sent_at, row.good_until,
                row.max_retries, row.task_options)  # fmt: skip
        if same != shared:  # a bulk send differs in little but its ids and arguments
            shared = same
            task = "\t".join(map(_copy_text, same[:3]))
            rest = "\t".join(map(_copy_text, same[3:]))
        args, kwargs = _copy_text(row.args), _copy_text(row.kwargs)
        lines.append(f"{row.id}\t{task}\t{args}\t{kwargs}\t{rest}\t{row.enqueue_sha}\n")
    return "".join(lines)


def _copy_text(field: object) -> str:
    if field is None:
        return "\\N"
    text = str(field).replace("\\", "\\\\")
    return text.replace("\n", "\\n").replace("\t", "\\t").replace("\r", "\\r")


def _is_about_a_row(error: BaseException) -> bool:
    """Other errors, such as a missing right, would meet every row alike."""
    if isinstance(error, psycopg.Error):
        is_about_the_statement = (error.sqlstate or "").startswith("42")
        return not is_about_the_statement and not is_passing(error)
    return isinstance(error, UnicodeError)


def _is_one_plain_row(batch: Sequence[NewTask]) -> bool:
    return len(batch) == 1 and batch[0].unique_key is None and batch[0].tags is None
