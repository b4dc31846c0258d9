"""Store rows on Django's own connection, so that they live and die with its transaction."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from django.db import connections, transaction

from horsies.codec.signature import byte_count
from horsies.contrib.django.conf import setting
from horsies.database.statement import Receipt
from horsies.database.user_connection import run_on
from horsies.observability.events import EnqueuedEvent
from horsies.result import Err
from horsies.sending.enqueuer import batches
from horsies.sending.rows import NewTask
from horsies.sending.statements import enqueue_tasks


class TaskArgsTooLarge(ValueError):  # noqa: N818 - says what is wrong, as Django's own names do
    """The arguments take more than `HORSIES["MAX_ARGS_SIZE"]` bytes."""


class NotEnqueued(RuntimeError):  # noqa: N818
    """The row could not be stored; the message says why."""


def check_size(*texts: str | None) -> None:
    """Refuse arguments whose JSON is larger than the limit."""
    size = sum(byte_count(text or "") for text in texts)
    limit = setting("MAX_ARGS_SIZE")
    if size > limit:
        raise TaskArgsTooLarge(f"the arguments take {size} bytes; MAX_ARGS_SIZE is {limit}")


def store(rows: Sequence[NewTask], *, how: str, alias: str) -> list[str]:
    """Insert rows now, at the end of the transaction, or on a connection of the engine's own.

    Return the ids that the rows have; that of a unique key's holder where there is one.
    """
    if how == "on_commit":
        transaction.on_commit(partial(_store, rows, alias), using=alias)
        return [row.id for row in rows]
    return _store_apart(rows) if how == "autocommit" else _store(rows, alias)


def _store(rows: Sequence[NewTask], alias: str) -> list[str]:
    receipts: list[Receipt] = []
    for batch in batches(rows):
        receipts += run_on(connections[alias], enqueue_tasks(batch), None, "enqueue")
    _check(receipts)
    _tell(rows, receipts, is_in_transaction=connections[alias].in_atomic_block)
    if setting("EAGER"):
        from horsies.contrib.django.testing import run_tasks

        run_tasks([receipt.task_id for receipt in receipts])
    return [receipt.task_id for receipt in receipts]


def _store_apart(rows: Sequence[NewTask]) -> list[str]:
    from horsies.contrib.django.project import app

    enqueuer = app.get_broker().enqueuer
    receipts: list[Receipt] = []
    for row in rows:
        stored = enqueuer.enqueue(row)
        if isinstance(stored, Err):
            raise NotEnqueued(stored.err_value.message) from stored.err_value.exception
        _check([stored.ok_value])
        _tell([row], [stored.ok_value], is_in_transaction=False)
        receipts.append(stored.ok_value)
    return [receipt.task_id for receipt in receipts]


def _check(receipts: Sequence[Receipt]) -> None:
    refused = [one for one in receipts if one.outcome not in ("created", "exists", "held")]
    if refused:
        task_id, outcome = refused[0]
        raise NotEnqueued(f"task {task_id} was not stored: {outcome}")


def _tell(rows: Sequence[NewTask], receipts: Sequence[Receipt], *, is_in_transaction: bool) -> None:
    """Tell the hooks of "enqueued", as native sends do, of tasks that are new."""
    created = {receipt.task_id for receipt in receipts if receipt.outcome == "created"}
    for row in rows:
        if row.id in created:
            tell_enqueued(row.id, row.task_name, row.queue_name, is_in_transaction)


def tell_enqueued(task_id: str, task_name: str, queue: str, is_in_transaction: bool) -> None:
    from horsies.contrib.django.project import app

    app.on.tell("enqueued", EnqueuedEvent(task_id, task_name, queue, is_in_transaction))


def enqueue_on_commit(
    task: Any, *args: Any, using: str | None = None, **kwargs: Any
) -> Callable[[], object]:
    """Enqueue a Django task when the current transaction commits, or at once outside of one.

    >>> enqueue_on_commit(send_receipt, order.pk)  # doctest: +SKIP
    """
    call = partial(task.enqueue, *args, **kwargs)
    transaction.on_commit(call, using=using or setting("DATABASE_ALIAS"))
    return call
