"""Starts workflows: from a spec to its rows, in one transaction, also in the user's own."""

import asyncio
import time
from collections.abc import Sequence
from datetime import datetime
from typing import Any, TypeVar

from horsies.database.database import Database
from horsies.database.statement import Receipt, Statement, run, run_blocking
from horsies.database.user_connection import run_on, run_on_async
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
    for pause_s in _pauses(resends=resends and connection is None):
        try:
            return start.answer(_run(start.database, statements.ok_value, connection))
        except Exception as error:  # noqa: BLE001 - the user's driver, and bugs: all are values here
            failure = start.failure(error, is_users=connection is not None)
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
    for pause_s in _pauses(resends=resends and connection is None):
        try:
            return start.answer(await _run_async(start.database, statements.ok_value, connection))
        except Exception as error:  # noqa: BLE001 - the user's driver, and bugs: all are values here
            failure = start.failure(error, is_users=connection is not None)
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


def _run(
    database: Database, statements: Sequence[Statement[Receipt]], connection: Any
) -> list[Receipt]:
    """Run the statements in one transaction, the user's if there is one."""
    database.ensure_schema()
    if connection is not None:
        parts = (run_on(connection, one, database.schema, "start") for one in statements)
        return [receipt for part in parts for receipt in part]
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


async def _run_async(
    database: Database, statements: Sequence[Statement[Receipt]], connection: Any
) -> list[Receipt]:
    """The awaitable twin of `_run`."""
    await database.ensure_schema_async()
    receipts: list[Receipt] = []
    if connection is not None:
        for statement in statements:
            receipts += await run_on_async(connection, statement, database.schema, "start")
        return receipts
    if len(statements) == 1:
        return await database.run_async(statements[0])
    limit_s = database.statement_limit_s
    async with database.pool.connection_async() as own:
        with limited(own, limit_s) as renew:
            async with own.transaction():
                for statement in statements:
                    receipts += await run(own, statement)
                    renew(limit_s)
    return receipts
