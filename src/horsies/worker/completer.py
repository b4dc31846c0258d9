"""Writes how attempts ended: self-clocking batches, repeated until the database has them.

An outcome that cannot be written yet waits here in bounded memory; the fence decides whether it
still counts.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import psycopg

from horsies.clock import monotonic
from horsies.database.rows import FailReceipt, Receipt
from horsies.database.statement import Statement, is_passing
from horsies.database.tasks import complete_tasks, fail_tasks, store_logs
from horsies.tasks.claims import Completion
from horsies.worker.link import Link
from horsies.worker.outcome import unstorable

_logger = logging.getLogger("horsies.worker")

# 500 per batch: the knee of the curve in performance.md. Bytes keep one statement far below
# protocol limits.
_MAX_ROWS = 500
_MAX_BYTES = 16_000_000
# What may wait while the database is away; a full store stops claiming.
_MAX_WAITING_ROWS = 10_000
_MAX_WAITING_BYTES = 256_000_000


@dataclass(frozen=True, slots=True)
class Recorded:
    """A completion as the database took it: 'completed', 'failed', 'retried' or 'claim_lost'."""

    completion: Completion
    outcome: str
    retry_after_s: float | None = None


class Completer:
    """The only writer of ends.

    `on_recorded` is called for every completion once its fate is committed.
    """

    def __init__(
        self, link: Link, owner_id: str, on_recorded: Callable[[Sequence[Recorded]], None]
    ) -> None:
        self._link = link
        self._owner_id = owner_id
        self._on_recorded = on_recorded
        self._waiting: deque[Completion] = deque()
        self._waiting_bytes = 0
        self._writing: Sequence[Completion] = ()
        self._writing_since = 0.0
        self._wake = asyncio.Event()
        self._idle = asyncio.Event()
        self._idle.set()

    @property
    def is_full(self) -> bool:
        waiting = len(self._waiting) + len(self._writing)
        return waiting >= _MAX_WAITING_ROWS or self._waiting_bytes >= _MAX_WAITING_BYTES

    def add(self, completion: Completion) -> None:
        self._waiting.append(completion)
        self._waiting_bytes += completion.size
        self._idle.clear()
        self._wake.set()

    def held_ids(self) -> list[str]:
        """Tasks whose outcome is not written yet."""
        return [c.task.id for c in (*self._writing, *self._waiting)]

    def overdue_ids(self, seconds: float) -> list[str]:
        """Tasks whose outcome has waited that long for its write (T5 is owed)."""
        if not self._writing or monotonic() - self._writing_since < seconds:
            return []
        return self.held_ids()

    async def run(self) -> None:
        """Write forever; cancelled when nothing is left to write."""
        while True:
            await self._wake.wait()
            self._wake.clear()
            while self._waiting:
                self._writing = batch = self._next_batch()
                self._writing_since = monotonic()
                recorded = await self._write(batch)
                self._writing = ()
                self._on_recorded(recorded)
            self._idle.set()

    async def flush(self) -> None:
        """Wait until everything added so far is written."""
        await self._idle.wait()

    def _next_batch(self) -> list[Completion]:
        batch: list[Completion] = []
        size = 0
        while self._waiting and len(batch) < _MAX_ROWS:
            if batch and size + self._waiting[0].size > _MAX_BYTES:
                break
            completion = self._waiting.popleft()
            size += completion.size
            batch.append(completion)
        self._waiting_bytes -= size
        # By id: every writer locks rows in the same order.
        batch.sort(key=lambda completion: completion.task.id)
        return batch

    async def _write(self, batch: Sequence[Completion]) -> list[Recorded]:
        try:
            return await self._link.persistently("writing results", lambda: self._write_once(batch))
        except psycopg.Error as error:
            if is_passing(error):
                raise
            if len(batch) == 1:
                return await self._write_refused(batch[0], error)
        middle = len(batch) // 2
        return await self._write(batch[:middle]) + await self._write(batch[middle:])

    async def _write_refused(self, completion: Completion, error: psycopg.Error) -> list[Recorded]:
        """PostgreSQL refuses this very outcome: its task fails with the reason.

        The others go on.
        """
        task = completion.task
        _logger.error("task %s: its outcome cannot be stored: %s", task.id, error)
        reason = str(error).partition("\n")[0].replace("\x00", "")
        instead = unstorable(task, reason)
        return await self._link.persistently("writing results", lambda: self._write_once([instead]))

    async def _write_once(self, batch: Sequence[Completion]) -> list[Recorded]:
        succeeded = [c for c in batch if c.attempt_outcome is None]
        failed = [_without_nul(c) for c in batch if c.attempt_outcome is not None]
        logged = [_without_nul(c) for c in batch if c.log]
        if not failed and not logged:
            refusals = await self._link.run(complete_tasks(self._owner_id, succeeded))
            return _completed(succeeded, refusals)
        statements: list[Statement[Any]] = [
            *([complete_tasks(self._owner_id, succeeded)] if succeeded else []),
            *([fail_tasks(self._owner_id, failed)] if failed else []),
            *([store_logs(logged)] if logged else []),
        ]
        answers = await self._link.run_together(statements)
        recorded = _completed(succeeded, answers.pop(0)) if succeeded else []
        if failed:
            recorded += _failed(failed, answers.pop(0))
        return recorded


def _completed(batch: Sequence[Completion], refusals: Sequence[Receipt]) -> list[Recorded]:
    lost = {receipt.task_id for receipt in refusals}
    return [Recorded(c, "claim_lost" if c.task.id in lost else "completed") for c in batch]


def _failed(batch: Sequence[Completion], receipts: Sequence[FailReceipt]) -> list[Recorded]:
    by_id = {receipt.task_id: receipt for receipt in receipts}
    return [Recorded(c, by_id[c.task.id].outcome, by_id[c.task.id].retry_after_s) for c in batch]


def _without_nul(completion: Completion) -> Completion:
    """PostgreSQL text cannot hold NUL; what people read shows where one stood."""
    texts = (
        completion.error_message,
        completion.failed_reason,
        completion.log,
        completion.error_code,
    )
    if not any(text and "\x00" in text for text in texts):
        return completion
    message, reason, log, code = (
        text.replace("\x00", "\N{SYMBOL FOR NULL}") if text else text for text in texts
    )
    return replace(
        completion, error_message=message, failed_reason=reason, log=log, error_code=code
    )
