"""Enqueue on the user's own connection: the task is stored, or not, with the user's transaction."""

from collections.abc import Sequence
from typing import Any, TypeAlias

from horsies.codes import TaskSendErrorCode
from horsies.database.database import Database
from horsies.database.operation import FAILURES
from horsies.database.savepoint import run_in_savepoint, run_in_savepoint_async
from horsies.database.statement import Receipt
from horsies.database.user_connection import UnusableConnectionError
from horsies.result import Err, Result
from horsies.sending.enqueuer import batches, not_stored_together
from horsies.sending.errors import TaskSendError
from horsies.sending.rows import NewTask
from horsies.sending.statements import enqueue_tasks

EnqueueAnswers: TypeAlias = Result[list[Receipt], TaskSendError]


def enqueue(database: Database, connection: Any, rows: Sequence[NewTask]) -> EnqueueAnswers:
    """Write rows on a blocking connection, inside whatever transaction it is in."""
    try:
        database.ensure_schema()
    except FAILURES as error:
        return Err(_failure(error, rows))
    statements = [enqueue_tasks(batch) for batch in batches(rows)]
    done = run_in_savepoint(connection, statements, database.schema, "send")
    return done.map_err(lambda error: _failure(error, rows))


async def enqueue_async(
    database: Database, connection: Any, rows: Sequence[NewTask]
) -> EnqueueAnswers:
    """Write rows on an awaitable connection, inside whatever transaction it is in."""
    try:
        await database.ensure_schema_async()
    except FAILURES as error:
        return Err(_failure(error, rows))
    statements = [enqueue_tasks(batch) for batch in batches(rows)]
    done = await run_in_savepoint_async(connection, statements, database.schema, "send")
    return done.map_err(lambda error: _failure(error, rows))


def _failure(error: BaseException, rows: Sequence[NewTask]) -> TaskSendError:
    if isinstance(error, UnusableConnectionError):
        return TaskSendError(TaskSendErrorCode.VALIDATION_FAILED, str(error), retryable=False)
    return not_stored_together(error, rows)
