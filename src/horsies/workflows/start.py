"""Starts workflows: from a spec to its rows, in one transaction, also in the user's own."""

import asyncio
import time
from collections.abc import Sequence
from datetime import datetime
from typing import Any, TypeVar

from horsies.database.database import Database
from horsies.database.savepoint import run_in_savepoint, run_in_savepoint_async
from horsies.database.statement import Receipt, Statement, run, run_blocking
from horsies.database.watchdog import limited
from horsies.result import Err, Ok
from horsies.workflows.errors import WorkflowStartResult
from horsies.workflows.handle import WorkflowHandle
from horsies.workflows.prepared_start import PreparedStart, StartingBroker
from horsies.workflows.spec import WorkflowSpec

T = TypeVar("T")

_RESEND_AFTER_S = (0.2, 0.4, 0.8)


def start_workflow(
    spec: WorkflowSpec[T],
    broker: StartingBroker,
    workflow_id: str | None = None,
    sent_at: datetime | None = None,
    *,
    resend_on_transient_err: bool = False,
    connection: Any = None,
) -> WorkflowStartResult[WorkflowHandle[T]]:
    """Start a workflow on a broker, as `spec.start()` does on the spec's own.

    With `connection`, it is stored with the user's transaction, or not at all.
    """
    start = PreparedStart([spec], broker, [workflow_id], sent_at)
    done = perform(start, connection=connection, resends=resend_on_transient_err)
    return done.map(lambda handles: handles[0])


async def start_workflow_async(
    spec: WorkflowSpec[T],
    broker: StartingBroker,
    workflow_id: str | None = None,
    sent_at: datetime | None = None,
    *,
    resend_on_transient_err: bool = False,
    connection: Any = None,
) -> WorkflowStartResult[WorkflowHandle[T]]:
    """The awaitable twin of `start_workflow`."""
    start = PreparedStart([spec], broker, [workflow_id], sent_at)
    done = await perform_async(start, connection=connection, resends=resend_on_transient_err)
    return done.map(lambda handles: handles[0])


def start_many(
    specs: Sequence[WorkflowSpec[T]], broker: StartingBroker, *, connection: Any = None
) -> WorkflowStartResult[list[WorkflowHandle[T]]]:
    """Start workflows in one transaction, all or none."""
    if not specs:
        return Ok([])
    return perform(PreparedStart(specs, broker, [None] * len(specs)), connection=connection)


async def start_many_async(
    specs: Sequence[WorkflowSpec[T]], broker: StartingBroker, *, connection: Any = None
) -> WorkflowStartResult[list[WorkflowHandle[T]]]:
    """The awaitable twin of `start_many`."""
    if not specs:
        return Ok([])
    return await perform_async(
        PreparedStart(specs, broker, [None] * len(specs)), connection=connection
    )


def perform(
    start: PreparedStart, *, connection: Any = None, resends: bool = False
) -> WorkflowStartResult[list[WorkflowHandle[Any]]]:
    """Perform a start from a blocking caller; every failure is a value."""
    with start.traced():
        return _perform(start, connection=connection, resends=resends)


def _perform(
    start: PreparedStart, *, connection: Any, resends: bool
) -> WorkflowStartResult[list[WorkflowHandle[Any]]]:
    statements = _prepare(start)
    if isinstance(statements, Err):
        return statements
    if connection is not None:
        return _start_on(start, statements.ok_value, connection)
    for pause_s in _pauses(resends=resends):
        try:
            return start.answer(_run(start.database, statements.ok_value))
        except Exception as error:  # noqa: BLE001 - bugs as well: all are values here
            failure = start.failure(error, is_users=False)
            if pause_s is None or not failure.retryable:
                return Err(failure)
        time.sleep(pause_s)
    raise AssertionError("unreachable: the last pause is None")


async def perform_async(
    start: PreparedStart, *, connection: Any = None, resends: bool = False
) -> WorkflowStartResult[list[WorkflowHandle[Any]]]:
    """The awaitable twin of `perform`."""
    with start.traced():
        return await _perform_async(start, connection=connection, resends=resends)


async def _perform_async(
    start: PreparedStart, *, connection: Any, resends: bool
) -> WorkflowStartResult[list[WorkflowHandle[Any]]]:
    statements = _prepare(start)
    if isinstance(statements, Err):
        return statements
    if connection is not None:
        return await _start_on_async(start, statements.ok_value, connection)
    for pause_s in _pauses(resends=resends):
        try:
            return start.answer(await _run_async(start.database, statements.ok_value))
        except Exception as error:  # noqa: BLE001 - bugs as well: all are values here
            failure = start.failure(error, is_users=False)
            if pause_s is None or not failure.retryable:
                return Err(failure)
        await asyncio.sleep(pause_s)
    raise AssertionError("unreachable: the last pause is None")


def _prepare(start: PreparedStart) -> WorkflowStartResult[list[Statement[Receipt]]]:
    try:
        return start.statements()
    except Exception as error:  # noqa: BLE001 - bugs, also of objects of the user's: values as well
        return Err(start.failure(error, is_users=False))


def _pauses(*, resends: bool) -> tuple[float | None, ...]:
    return (*_RESEND_AFTER_S, None) if resends else (None,)


def _start_on(
    start: PreparedStart, statements: Sequence[Statement[Receipt]], connection: Any
) -> WorkflowStartResult[list[WorkflowHandle[Any]]]:
    """Run the statements in the user's transaction."""
    try:
        start.database.ensure_schema()
    except Exception as error:  # noqa: BLE001 - a start never raises of itself
        return Err(start.failure(error, is_users=True))
    done = run_in_savepoint(connection, statements, start.database.schema, "start")
    return done.map_err(lambda error: start.failure(error, is_users=True)).and_then(start.answer)


async def _start_on_async(
    start: PreparedStart, statements: Sequence[Statement[Receipt]], connection: Any
) -> WorkflowStartResult[list[WorkflowHandle[Any]]]:
    """The awaitable twin of `_start_on`."""
    try:
        await start.database.ensure_schema_async()
    except Exception as error:  # noqa: BLE001 - a start never raises of itself
        return Err(start.failure(error, is_users=True))
    done = await run_in_savepoint_async(connection, statements, start.database.schema, "start")
    return done.map_err(lambda error: start.failure(error, is_users=True)).and_then(start.answer)


def _run(database: Database, statements: Sequence[Statement[Receipt]]) -> list[Receipt]:
    """Run the statements in one transaction."""
    database.ensure_schema()
    if len(statements) == 1:
        return database.run(statements[0])
    limit_s = database.statement_limit_s
    receipts: list[Receipt] = []
    with (
        database.pool.connection() as own,
        database.watchdog.limit(own, limit_s) as renew,
        own.transaction(),
    ):
        for statement in statements:
            receipts += run_blocking(own, statement)
            renew(limit_s)
    return receipts


async def _run_async(database: Database, statements: Sequence[Statement[Receipt]]) -> list[Receipt]:
    """The awaitable twin of `_run`."""
    await database.ensure_schema_async()
    if len(statements) == 1:
        return await database.run_async(statements[0])
    receipts: list[Receipt] = []
    limit_s = database.statement_limit_s
    async with database.pool.connection_async() as own:
        with limited(own, limit_s) as renew:
            async with own.transaction():
                for statement in statements:
                    receipts += await run(own, statement)
                    renew(limit_s)
    return receipts
