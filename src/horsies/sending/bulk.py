"""Many sends of one task at once: all of them are stored or, with the first problem, none."""

import asyncio
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, Generic, ParamSpec, TypeAlias

from horsies.clock import utc_now
from horsies.database.operation import FAILURES
from horsies.database.statement import Receipt
from horsies.ids import new_ids
from horsies.result import Err, Ok, Result
from horsies.sending import transaction
from horsies.sending.enqueuer import not_stored_together, read_receipt
from horsies.sending.errors import TaskSendError, TaskSendResult
from horsies.sending.prepared import (
    AnyHandle,
    PreparedSend,
    SendingApp,
    handle_of,
    refused,
    suppression,
    told,
)
from horsies.sending.resend import rows_to_resend
from horsies.sending.rows import NewTask
from horsies.sending.telling import tell_enqueued, tell_enqueued_async

P = ParamSpec("P")


class BoundCall(Generic[P]):
    """The arguments of one call, as `task.bind(...)` gives them."""

    __slots__ = ("args", "kwargs")

    def __init__(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        self.args = args
        self.kwargs = kwargs


Arguments: TypeAlias = tuple[Any, ...] | Mapping[str, Any]
Handles: TypeAlias = list[AnyHandle]

_FIRST_IDS, _MOST_IDS = 16, 1_024  # made at once: a call for one task must not make a thousand


class _RefusedError(Exception):
    """One of many calls does not fit; nothing of them is stored."""

    def __init__(self, error: TaskSendError) -> None:
        super().__init__(error.message)
        self.error = error


@dataclass(slots=True)
class _Taken:
    """The rows made so far; before all are, none can be stored."""

    rows: list[NewTask] = field(default_factory=list)
    is_complete: bool = False

    def failure(self, error: BaseException) -> TaskSendError:
        return not_stored_together(error, self.rows if self.is_complete else [])


def send_many(prepared: PreparedSend, calls: Iterable[object]) -> TaskSendResult[Handles]:
    """Store all calls in one transaction."""
    with prepared.traced():
        result = told(prepared.task_name, _send_many(prepared, calls))
    is_in_transaction = prepared.is_in_transaction
    tell_enqueued(prepared.app.on, prepared, result, is_in_transaction=is_in_transaction)
    return result


def _send_many(prepared: PreparedSend, calls: Iterable[object]) -> TaskSendResult[Handles]:
    if (refusal := prepared.refusal()) is not None:
        return refusal
    taken = _Taken()
    try:
        broker = prepared.app.get_broker()
        if prepared.is_plain:
            copied = broker.enqueuer.copy(_rows(prepared, calls, taken))
            return Ok([handle_of(prepared.app, Receipt(i, "created")) for i in copied])
        rows = list(_rows(prepared, calls, taken))
        connection = prepared.options.connection
        if connection is None:
            return _handles(prepared.app, rows, broker.enqueuer.enqueue_all(rows))
    except _RefusedError as refused_call:
        return Err(refused_call.error)
    except FAILURES as error:
        return Err(taken.failure(error))
    stored = transaction.enqueue(broker.database, connection, rows)
    return stored.and_then(lambda receipts: _handles(prepared.app, rows, receipts))


async def send_many_async(
    prepared: PreparedSend, calls: Iterable[object]
) -> TaskSendResult[Handles]:
    """The awaitable twin of `send_many`."""
    if prepared.options.connection is None:
        return await asyncio.to_thread(send_many, prepared, list(calls))
    with prepared.traced():
        result = told(prepared.task_name, await _send_many_async(prepared, calls))
    await tell_enqueued_async(prepared.app.on, prepared, result, is_in_transaction=True)
    return result


async def _send_many_async(
    prepared: PreparedSend, calls: Iterable[object]
) -> TaskSendResult[Handles]:
    connection = prepared.options.connection
    if (refusal := prepared.refusal()) is not None:
        return refusal
    taken = _Taken()
    try:
        rows = list(_rows(prepared, calls, taken))
        database = prepared.app.get_broker().database
    except _RefusedError as refused_call:
        return Err(refused_call.error)
    except FAILURES as error:
        return Err(taken.failure(error))
    stored = await transaction.enqueue_async(database, connection, rows)
    return stored.and_then(lambda receipts: _handles(prepared.app, rows, receipts))


def resend_many(app: SendingApp, task_name: str, error: TaskSendError) -> TaskSendResult[Handles]:
    """Store what a failed `send_many` would have stored, under the same ids: all or none."""
    rows = suppression(app) or rows_to_resend(task_name, error)
    if isinstance(rows, Err):
        return rows
    try:
        return _handles(app, rows.ok_value, app.get_broker().enqueuer.enqueue_all(rows.ok_value))
    except FAILURES as failure:
        return Err(not_stored_together(failure, rows.ok_value))


def _rows(prepared: PreparedSend, calls: Iterable[object], taken: _Taken) -> Iterator[NewTask]:
    """Rows as they are needed: the server stores the first while the next are encoded."""
    sent_at = utc_now()
    ids = _ids()
    for position, call in enumerate(calls):
        row: Result[NewTask, TaskSendError]
        if position and prepared.options.unique_key is not None:
            row = refused("a unique key names one task; give each task its own by send()")
        elif isinstance(call, BoundCall):
            row = _row(prepared, next(ids), call.args, call.kwargs, sent_at)
        elif isinstance(call, (tuple, list)):
            row = _row(prepared, next(ids), tuple(call), {}, sent_at)
        elif isinstance(call, Mapping):
            row = _row(prepared, next(ids), (), dict(call), sent_at)
        else:
            row = refused(f"give a tuple or mapping of arguments, not {type(call).__name__}")
        if isinstance(row, Err):
            error = row.err_value
            raise _RefusedError(replace(error, message=f"call {position}: {error.message}"))
        taken.rows.append(row.ok_value)
        yield row.ok_value
    taken.is_complete = True


def _row(
    prepared: PreparedSend,
    task_id: str,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    sent_at: datetime,
) -> Result[NewTask, TaskSendError]:
    own = prepared.for_call(args, kwargs)
    if own is not prepared and (problem := own.refusal()) is not None:
        return problem
    return own.row(task_id, args, kwargs, sent_at)


def _ids() -> Iterator[str]:
    count = _FIRST_IDS
    while True:
        yield from new_ids(count)
        count = min(2 * count, _MOST_IDS)


def _handles(
    app: SendingApp, rows: list[NewTask], receipts: list[Receipt]
) -> TaskSendResult[Handles]:
    handles: Handles = []
    for row, receipt in zip(rows, receipts, strict=True):
        stored = read_receipt(row, receipt)
        if isinstance(stored, Err):
            return stored
        handles.append(handle_of(app, stored.ok_value))
    return Ok(handles)
