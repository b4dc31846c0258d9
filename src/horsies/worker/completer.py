"""Writes how attempts ended: self-clocking batches, repeated until the database has them.

An outcome that cannot be written yet waits here in bounded memory; the fence decides whether it
still counts.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

import psycopg
from psycopg.errors import LockNotAvailable, UniqueViolation

from horsies.clock import monotonic
from horsies.codec.text import is_storable, storable
from horsies.database.statement import Receipt, Statement
from horsies.worker.claim_request import PermitRequest
from horsies.worker.held_task import Completion, Ending
from horsies.worker.outcome import unstorable
from horsies.worker.permits import Permits
from horsies.worker.service_connection import ServiceConnection
from horsies.worker.statements import (
    FailReceipt,
    cancel_running_tasks,
    complete_tasks,
    end_tasks,
    fail_tasks,
    grant_permit,
    interrupt_tasks,
    notify_capacity,
    renumber_attempts,
    store_logs,
    store_progress,
    stored_ends,
    unlocked_tasks,
)
from horsies.workflows.statements import advance_tasks, lock_workflows_of_tasks

_logger = logging.getLogger("horsies.worker")

# 500 per batch: larger ones gain nothing (docs/concepts/performance.md, raw claim + complete). A
# statement is copied several times on its way: the limit in bytes keeps that small.
_MAX_ROWS = 500
_MAX_BYTES = 4_000_000
# What may wait, also while the database is away; while it is full, nothing is claimed or begun.
_MAX_WAITING_ROWS = 10_000
_MAX_WAITING_BYTES = 64_000_000
# What may come out of a write: the connection itself repeats what is worth a retry.
_REFUSED = (psycopg.Error, UnicodeError)
# How often rows that another session has locked are tried again.
_LOCKED_RETRY_S = 1.0


class Recorded(NamedTuple):
    """A completion, and what the database made of it.

    `outcome`: 'completed', 'failed', 'retried', 'cancelled', 'interrupted', 'claim_lost'
    or 'refused'.
    """

    completion: Completion
    outcome: str
    retry_after_s: float | None = None


class Completer:
    """The only part of a worker that writes outcomes.

    `on_recorded` is called for every completion once its fate is committed, `on_granted` for every
    permit: each write carries one for the tasks that wait for it.
    """

    def __init__(
        self,
        connection: ServiceConnection,
        owner_id: str,
        on_recorded: Callable[[Sequence[Recorded]], None],
        permits: Permits,
        on_granted: Callable[[PermitRequest, Sequence[int | None]], None],
        *,
        has_caps: bool,
    ) -> None:
        self._connection = connection
        self._owner_id = owner_id
        self._on_recorded = on_recorded
        self._permits = permits
        self._on_granted = on_granted
        self._has_caps = has_caps
        self._waiting: deque[Completion] = deque()
        self._waiting_bytes = 0
        self._writing: Sequence[Completion] = ()
        self._locked: list[Completion] = []
        self._writing_since = 0.0
        self._wake = asyncio.Event()
        self._idle = asyncio.Event()
        self._idle.set()

    @property
    def is_full(self) -> bool:
        waiting = len(self._waiting) + len(self._writing) + len(self._locked)
        return waiting >= _MAX_WAITING_ROWS or self._waiting_bytes >= _MAX_WAITING_BYTES

    def add(self, completion: Completion) -> None:
        self._waiting.append(completion)
        completion.task.held_bytes = completion.size
        self._waiting_bytes += completion.task.held_bytes
        self._idle.clear()
        self._wake.set()

    def wake(self) -> None:
        """There may be tasks to permit."""
        self._wake.set()

    def held_ids(self) -> list[str]:
        """Tasks whose outcome is not written yet."""
        return [c.task.task_id for c in (*self._writing, *self._waiting, *self._locked)]

    def overdue_ids(self, seconds: float) -> list[str]:
        """Tasks whose outcome has waited that long for its write (T5 is owed)."""
        is_late = self._writing and monotonic() - self._writing_since >= seconds
        return self.held_ids() if is_late else [c.task.task_id for c in self._locked]

    async def run(self) -> None:
        """Write until cancelled, which happens when nothing is left to write."""
        while True:
            await self._wake.wait()
            self._wake.clear()
            self._waiting.extend(self._locked)
            self._waiting_bytes += sum(c.task.held_bytes for c in self._locked)
            self._locked.clear()
            while self._waiting:
                self._writing = batch = self._next_batch()
                self._writing_since = monotonic()
                recorded = await self._write(batch)
                self._writing = ()
                self._on_recorded(recorded)
            await self._grant_waiting()
            if not self._locked:
                self._idle.set()

    async def flush(self) -> None:
        """Wait until everything added so far is written."""
        await self._idle.wait()

    def _next_batch(self) -> list[Completion]:
        batch: list[Completion] = []
        ids: set[str] = set()
        size = 0
        while self._waiting and len(batch) < _MAX_ROWS:
            task = self._waiting[0].task
            # Receipts are by id: the ends of two claims of one task are two writes.
            if batch and (size + task.held_bytes > _MAX_BYTES or task.task_id in ids):
                break
            size += task.held_bytes
            ids.add(task.task_id)
            batch.append(self._waiting.popleft())
        self._waiting_bytes -= size
        # By id: every writer locks rows in the same order.
        batch.sort(key=lambda completion: completion.task.task_id)
        return batch

    async def _write(self, batch: Sequence[Completion]) -> list[Recorded]:
        try_count = 0

        async def write() -> list[Recorded]:
            nonlocal try_count
            try_count += 1
            recorded = await self._write_unlocked(batch)
            return recorded if try_count == 1 else await self._recognize(recorded)

        try:
            return await self._connection.persistently("writing results", write)
        except UniqueViolation as error:
            if not await self._renumber(batch):
                return await self._split(batch, error)
            return await self._write(batch)
        except _REFUSED as error:
            return await self._split(batch, error)

    async def _recognize(self, recorded: list[Recorded]) -> list[Recorded]:
        """After a try whose answer was lost: what that try has stored is not a lost claim."""
        lost = [one.completion for one in recorded if one.outcome == "claim_lost"]
        if not lost:
            return recorded
        stored = await self._connection.run(stored_ends(self._owner_id, lost))
        outcomes = {receipt.task_id: receipt.outcome for receipt in stored}
        return [
            one._replace(outcome=outcomes.get(one.completion.task.task_id, one.outcome))
            for one in recorded
        ]

    async def _write_unlocked(self, batch: Sequence[Completion]) -> list[Recorded]:
        """Write; when someone has locked rows of the batch, those wait and the others go on."""
        try:
            return await self._write_once(batch)
        except LockNotAvailable:
            ids = [c.task.task_id for c in batch]
            free = {row.value for row in await self._connection.run(unlocked_tasks(ids))}
        locked = [c for c in batch if c.task.task_id not in free]
        if not locked or len(locked) == len(batch):
            raise LockNotAvailable("rows of the batch are locked by another session")
        recorded = await self._write_once([c for c in batch if c.task.task_id in free])
        self._set_aside(locked)
        return recorded

    def _set_aside(self, locked: Sequence[Completion]) -> None:
        _logger.warning("%d tasks are locked by another session; they wait", len(locked))
        self._locked += locked
        asyncio.get_running_loop().call_later(_LOCKED_RETRY_S, self._wake.set)

    async def _renumber(self, batch: Sequence[Completion]) -> bool:
        """Give tasks that were reset by hand their next free attempt number; whether any had to."""
        rows = await self._connection.persistently(
            "numbering attempts",
            lambda: self._connection.run(renumber_attempts(self._owner_id, batch)),
        )
        numbers = {row.task_id: row.attempt for row in rows}
        is_changed = False
        for completion in batch:
            number = numbers.get(completion.task.task_id, completion.task.attempt)
            is_changed = is_changed or number != completion.task.attempt
            completion.task.attempt = number
        return is_changed

    async def _split(self, batch: Sequence[Completion], error: Exception) -> list[Recorded]:
        """Halve a batch that one of its rows spoils, until that one stands alone."""
        if len(batch) == 1:
            return await self._write_refused(batch[0], error)
        middle = len(batch) // 2
        return await self._write(batch[:middle]) + await self._write(batch[middle:])

    async def _write_refused(self, completion: Completion, error: Exception) -> list[Recorded]:
        """PostgreSQL refuses this outcome: its task fails with that reason, the others go on."""
        task = completion.task
        _logger.error("task %s: its outcome cannot be stored: %s", task.task_id, error)
        reason = storable(str(error).partition("\n")[0])
        instead = unstorable(task, reason)
        try:
            return await self._connection.persistently(
                "writing results", lambda: self._write_once([instead])
            )
        except _REFUSED as again:
            # No end of it is taken: it stays RUNNING, without heartbeats, and the reaper tells.
            _logger.error("task %s: it cannot be ended, it is left: %s", task.task_id, again)  # noqa: TRY400 - no bug of ours
            return [Recorded(completion, "refused")]

    async def _write_once(self, batch: Sequence[Completion]) -> list[Recorded]:
        of_workflows = [c.task.task_id for c in batch if c.task.is_workflow_task]
        is_plain = not self._has_caps and not of_workflows
        if is_plain and all(_is_plain(c) for c in batch):
            return await self._end(batch)
        parts: list[tuple[Ending, list[Completion]]] = [
            (ending, part)
            for ending in _STATEMENTS
            if (part := [_for_people(c) for c in batch if c.ending == ending])
        ]
        statements = [_STATEMENTS[ending](self._owner_id, part) for ending, part in parts]
        if logged := [_for_people(c) for c in batch if c.log]:
            statements.append(store_logs(logged))
        if reports := [(c.task, c.task.progress) for c in batch if c.task.progress is not None]:
            statements.append(store_progress(reports))
        if self._has_caps:
            statements.append(notify_capacity(batch))
        permit = self._permits.for_ends()
        if permit:
            statements.append(grant_permit(self._owner_id, permit))
        if of_workflows:
            answers = await self._end_in_workflows(of_workflows, statements)
        else:
            answers = await self._connection.run_together(statements)
        if permit:
            self._on_granted(permit, answers[-1][0].voided)
        recorded: list[Recorded] = []
        for (_, part), receipts in zip(parts, answers, strict=False):
            recorded += _recorded(part, receipts)
        return recorded

    async def _end_in_workflows(
        self, task_ids: Sequence[str], statements: Sequence[Statement[Any]]
    ) -> list[list[Any]]:
        """End tasks, and advance their workflows in the same transaction.

        Workflows are locked before tasks (docs/states.md). One that cannot be advanced is left to
        recovery: the tasks' ends stand.
        """
        _, *answers, advanced = await self._connection.run_together(
            [lock_workflows_of_tasks(task_ids), *statements, advance_tasks(task_ids)]
        )
        if advanced[0].value is not None:
            _logger.error("workflows left to recovery: %s", advanced[0].value)
        return answers

    async def _grant_waiting(self) -> None:
        """Grant what the writes did not: those of tasks that wait while nothing ends."""
        while not self._waiting and (permit := self._permits.for_waiting()):
            grant = partial(self._connection.run, grant_permit(self._owner_id, permit))
            granted = await self._connection.persistently("granting permits", grant)
            self._on_granted(permit, granted[0].voided)

    async def _end(self, batch: Sequence[Completion]) -> list[Recorded]:
        """Write successes and failures, the usual batch."""
        permit = self._permits.for_ends()
        completed = [c for c in batch if c.ending == "complete"]
        failed = [_for_people(c) for c in batch if c.ending == "fail"]
        statement = end_tasks(self._owner_id, completed, failed, permit)
        (ended,) = await self._connection.run(statement)
        if permit:
            self._on_granted(permit, ended.voided or ())
        return _recorded(completed + failed, ended.receipts())


_STATEMENTS: dict[Ending, Callable[[str, Sequence[Completion]], Statement[Any]]] = {
    "complete": complete_tasks,
    "fail": fail_tasks,
    "cancel": cancel_running_tasks,
    "interrupt": interrupt_tasks,
}


def _is_plain(completion: Completion) -> bool:
    """Whether the usual statement has room for all of it."""
    if completion.log or completion.task.progress is not None:
        return False
    return completion.ending in ("complete", "fail")


def _recorded(
    batch: Sequence[Completion], receipts: Sequence[Receipt] | Sequence[FailReceipt]
) -> list[Recorded]:
    """Completions with what the database said of them; of plain successes it says nothing."""
    if not receipts:
        return [Recorded(completion, "completed") for completion in batch]
    by_id = {receipt.task_id: receipt for receipt in receipts}
    recorded: list[Recorded] = []
    for completion in batch:
        receipt = by_id.get(completion.task.task_id)
        retry_after_s = receipt.retry_after_s if isinstance(receipt, FailReceipt) else None
        recorded.append(
            Recorded(completion, receipt.outcome if receipt else "completed", retry_after_s)
        )
    return recorded


def _for_people(completion: Completion) -> Completion:
    """The same with texts that their columns can hold."""
    texts = (
        completion.error_message,
        completion.failed_reason,
        completion.log,
        completion.error_code,
    )
    if all(text is None or is_storable(text) for text in texts):
        return completion
    message, reason, log, code = (text and storable(text) for text in texts)
    return completion._replace(
        error_message=message, failed_reason=reason, log=log, error_code=code
    )
