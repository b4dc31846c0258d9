"""Enqueue on the user's own connection: the task is stored, or not, with the user's transaction."""

from collections.abc import Sequence
from typing import Any, TypeAlias

from horsies.codes import TaskSendErrorCode
from horsies.database.database import Database
from horsies.database.statement import Receipt
from horsies.database.user_connection import UnusableConnectionError, run_on, run_on_async
from horsies.result import Err, Ok, Result
from horsies.sending.enqueuer import batches, not_stored
from horsies.sending.errors import TaskSendError
from horsies.sending.rows import NewTask
from horsies.sending.statements import enqueue_tasks

EnqueueAnswers: TypeAlias = Result[list[Receipt], TaskSendError]


def enqueue(database: Database, connection: Any, rows: Sequence[NewTask]) -> EnqueueAnswers:
    """Write rows on a blocking connection, inside whatever transaction it is in."""
    receipts: list[Receipt] = []
    try:
        database.ensure_schema()
        for batch in batches(rows):
            receipts += run_on(connection, enqueue_tasks(batch), database.schema, "send")
    except Exception as error:  # noqa: BLE001 - the user's own driver raises what it likes
        return Err(_failure(error, rows))
    return Ok(receipts)


async def enqueue_async(
    database: Database, connection: Any, rows: Sequence[NewTask]
) -> EnqueueAnswers:
    """Write rows on an awaitable connection, inside whatever transaction it is in."""
    receipts: list[Receipt] = []
    try:
        await database.ensure_schema_async()
        for batch in batches(rows):
            statement = enqueue_tasks(batch)
            receipts += await run_on_async(connection, statement, database.schema, "send")
    except Exception as error:  # noqa: BLE001 - the user's own driver raises what it likes
        return Err(_failure(error, rows))
    return Ok(receipts)


def _failure(error: Exception, rows: Sequence[NewTask]) -> TaskSendError:
    if isinstance(error, UnusableConnectionError):
        return TaskSendError(TaskSendErrorCode.VALIDATION_FAILED, str(error), retryable=False)
    return not_stored(error, rows[0] if len(rows) == 1 else None)
