"""Starts workflows: from a spec to its rows, in one statement, also in the user's transaction."""

import asyncio
import time
from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Any, Protocol, TypeVar

from horsies.clock import utc_now
from horsies.codec.signature import byte_count
from horsies.codes import ErrorCode, WorkflowStartErrorCode
from horsies.config import AppConfig
from horsies.database.operation import FAILURES, describe
from horsies.database.statement import (
    Receipt,
    Statement,
    is_connection_failure,
    is_transient,
    run,
    run_blocking,
)
from horsies.database.user_connection import UnusableConnectionError, run_on, run_on_async
from horsies.errors import HorsiesError, WorkflowValidationError
from horsies.ids import new_id
from horsies.result import Err, Ok, Result
from horsies.workflows.errors import HandleResult, WorkflowStartError, WorkflowStartResult
from horsies.workflows.handle import HandleBroker, WorkflowHandle
from horsies.workflows.nodes import SubWorkflowNode, TaskNode
from horsies.workflows.reading import WorkflowApp
from horsies.workflows.rows import NewRows, rows_of
from horsies.workflows.spec import WorkflowSpec
from horsies.workflows.statements import start_workflows
from horsies.workflows.validate import is_text

T = TypeVar("T")

_RESEND_AFTER_S = (0.2, 0.4, 0.8)
# A statement carries about as many nodes: far below the server's limit for one value.
_NODES_PER_STATEMENT = 5_000


class StartingApp(WorkflowApp, Protocol):
    """The part of an app that a start needs."""

    @property
    def config(self) -> AppConfig: ...
    def are_sends_suppressed(self) -> bool: ...


class StartingBroker(HandleBroker, Protocol):
    """The part of a broker that a start needs."""

    @property
    def app(self) -> StartingApp | None: ...


class Start:
    """One start of one or more workflows: the same rows however often it is tried."""

    def __init__(
        self,
        specs: Sequence[WorkflowSpec[Any]],
        broker: StartingBroker,
        workflow_ids: Sequence[str | None],
        sent_at: datetime | None = None,
    ) -> None:
        self._specs = specs
        self._broker = broker
        self._ids = [given or new_id() for given in workflow_ids]
        self._sent_at = sent_at or utc_now()

    def statements(self) -> Result[list[Statement[Receipt]], WorkflowStartError]:
        """The statements to perform, all of them or none."""
        starts: list[NewRows] = []
        app = self._broker.app
        limit = None if app is None else app.config.payload_max_bytes
        if app is not None and app.are_sends_suppressed():
            message = "sends are suppressed here: during imports, or by HORSIES_SUPPRESS_SENDS=1"
            return Err(self._refusal(message, self._specs[0], self._ids[0]))
        for spec, workflow_id in zip(self._specs, self._ids, strict=True):
            try:
                _check_startable(spec, self._broker)
                rows = rows_of(spec, workflow_id, self._sent_at)
                _check_size(rows, limit)
            except HorsiesError as error:
                return Err(self._refusal(str(error), spec, workflow_id, error))
            starts.append(rows)
        return Ok([start_workflows(part) for part in _parts(starts)])

    def perform(self, statements: Sequence[Statement[Receipt]], connection: Any) -> list[Receipt]:
        """Run the statements in one transaction, the user's if there is one."""
        database = self._broker.database
        database.ensure_schema()
        if connection is not None:
            parts = (run_on(connection, one, database.schema, "start") for one in statements)
            return [receipt for part in parts for receipt in part]
        if len(statements) == 1:
            return database.run(statements[0])
        limit_s = database.config.pool_timeout
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

    async def perform_async(
        self, statements: Sequence[Statement[Receipt]], connection: Any
    ) -> list[Receipt]:
        """The awaitable twin of `perform`."""
        database = self._broker.database
        await database.ensure_schema_async()
        receipts: list[Receipt] = []
        if connection is not None:
            for statement in statements:
                receipts += await run_on_async(connection, statement, database.schema, "start")
            return receipts
        if len(statements) == 1:
            return await database.run_async(statements[0])
        async with database.pool.connection_async() as own, own.transaction():
            for statement in statements:
                receipts += await run(own, statement)
        return receipts

    def answer(self, receipts: Sequence[Receipt]) -> WorkflowStartResult[list[WorkflowHandle[Any]]]:
        """Handles, or the first workflow that could not be started."""
        for spec, receipt in zip(self._specs, receipts, strict=True):
            if receipt.outcome not in {"created", "exists"}:
                message = f"the id {receipt.task_id} belongs to a workflow of another name"
                return Err(self._refusal(message, spec, receipt.task_id))
        return Ok([WorkflowHandle(receipt.task_id, self._broker) for receipt in receipts])

    def failure(self, error: BaseException) -> WorkflowStartError:
        """What went wrong on the way to the database."""
        spec, workflow_id = self._specs[0], self._ids[0]
        if isinstance(error, UnusableConnectionError):
            return self._refusal(str(error), spec, workflow_id, error)
        code = WorkflowStartErrorCode.ENQUEUE_FAILED
        if not isinstance(error, FAILURES):
            code = WorkflowStartErrorCode.INTERNAL_FAILED
        return WorkflowStartError(
            code,
            describe(error),
            retryable=is_transient(error) or is_connection_failure(error),
            workflow_name=spec.name,
            workflow_id=workflow_id,
            exception=error,
        )

    def _refusal(
        self,
        message: str,
        spec: WorkflowSpec[Any],
        workflow_id: str,
        error: BaseException | None = None,
    ) -> WorkflowStartError:
        return WorkflowStartError(
            WorkflowStartErrorCode.VALIDATION_FAILED,
            message,
            retryable=False,
            workflow_name=spec.name,
            workflow_id=workflow_id,
            exception=error,
        )


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
    start = Start([spec], broker, [workflow_id], sent_at)
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
    start = Start([spec], broker, [workflow_id], sent_at)
    done = await perform_async(start, connection=connection, resends=resend_on_transient_err)
    return done.map(lambda handles: handles[0])


def start_many(
    specs: Sequence[WorkflowSpec[T]], broker: StartingBroker, *, connection: Any = None
) -> WorkflowStartResult[list[WorkflowHandle[T]]]:
    """Start workflows in one transaction, all or none."""
    if not specs:
        return Ok([])
    return perform(Start(specs, broker, [None] * len(specs)), connection=connection)


async def start_many_async(
    specs: Sequence[WorkflowSpec[T]], broker: StartingBroker, *, connection: Any = None
) -> WorkflowStartResult[list[WorkflowHandle[T]]]:
    """The awaitable twin of `start_many`."""
    if not specs:
        return Ok([])
    return await perform_async(Start(specs, broker, [None] * len(specs)), connection=connection)


async def pause_workflow(broker: HandleBroker, workflow_id: str) -> HandleResult[bool]:
    """Pause a workflow by its id; `pause_workflow_sync` is the blocking form."""
    return await WorkflowHandle[Any](workflow_id, broker).pause_async()


def pause_workflow_sync(broker: HandleBroker, workflow_id: str) -> HandleResult[bool]:
    return WorkflowHandle[Any](workflow_id, broker).pause()


async def resume_workflow(broker: HandleBroker, workflow_id: str) -> HandleResult[bool]:
    """Resume a workflow by its id; `resume_workflow_sync` is the blocking form."""
    return await WorkflowHandle[Any](workflow_id, broker).resume_async()


def resume_workflow_sync(broker: HandleBroker, workflow_id: str) -> HandleResult[bool]:
    return WorkflowHandle[Any](workflow_id, broker).resume()


def perform(
    start: Start, *, connection: Any = None, resends: bool = False
) -> WorkflowStartResult[list[WorkflowHandle[Any]]]:
    """Perform a start from a blocking caller; every failure is a value."""
    statements = start.statements()
    if isinstance(statements, Err):
        return statements
    for pause_s in _pauses(resends=resends and connection is None):
        try:
            return start.answer(start.perform(statements.ok_value, connection))
        except Exception as error:  # noqa: BLE001 - the user's driver, and bugs: all are values here
            failure = start.failure(error)
            if pause_s is None or not failure.retryable:
                return Err(failure)
        time.sleep(pause_s)
    raise AssertionError("unreachable: the last pause is None")


async def perform_async(
    start: Start, *, connection: Any = None, resends: bool = False
) -> WorkflowStartResult[list[WorkflowHandle[Any]]]:
    """The awaitable twin of `perform`."""
    statements = start.statements()
    if isinstance(statements, Err):
        return statements
    for pause_s in _pauses(resends=resends and connection is None):
        try:
            return start.answer(await start.perform_async(statements.ok_value, connection))
        except Exception as error:  # noqa: BLE001 - the user's driver, and bugs: all are values here
            failure = start.failure(error)
            if pause_s is None or not failure.retryable:
                return Err(failure)
        await asyncio.sleep(pause_s)
    raise AssertionError("unreachable: the last pause is None")


def _pauses(*, resends: bool) -> tuple[float | None, ...]:
    return (*_RESEND_AFTER_S, None) if resends else (None,)


def _parts(starts: Sequence[NewRows]) -> Iterator[list[NewRows]]:
    part: list[NewRows] = []
    count = 0
    for rows in starts:
        if part and count + len(rows.nodes) > _NODES_PER_STATEMENT:
            yield part
            part, count = [], 0
        part.append(rows)
        count += len(rows.nodes)
    if part:
        yield part


def _check_startable(spec: WorkflowSpec[Any], broker: StartingBroker) -> None:
    """What only an app can resolve; a spec made by `app.workflow` has it all."""
    if not is_text(spec.definition_key):
        raise WorkflowValidationError(
            f"workflow {spec.name!r} has no definition_key",
            ErrorCode.WORKFLOW_NO_DEFINITION_KEY,
            help_text="build it with app.workflow(..., definition_key=...)",
        )
    for node in spec.tasks:
        if isinstance(node, TaskNode) and (node.queue is None or node.priority is None):
            what, code = "priority", ErrorCode.WORKFLOW_UNRESOLVED_PRIORITY
            if node.queue is None:
                what, code = "queue", ErrorCode.WORKFLOW_UNRESOLVED_QUEUE
            raise WorkflowValidationError(
                f"node {node.node_id!r} of workflow {spec.name!r} has no {what}",
                code,
                help_text="build the workflow with app.workflow(...), which resolves it",
            )
        if isinstance(node, SubWorkflowNode) and broker.app is None:
            raise WorkflowValidationError(
                f"workflow {spec.name!r} has sub-workflows, but its broker belongs to no app",
                ErrorCode.WORKFLOW_SUBWORKFLOW_APP_MISSING,
                help_text="use the broker of an app: app.get_broker()",
            )


def _check_size(rows: NewRows, limit: int | None) -> None:
    if limit is None:
        return
    for node in rows.nodes:
        size = byte_count(node.task_kwargs)
        if size > limit:
            raise WorkflowValidationError(
                f"arguments of node {node.node_id!r} take {size} bytes; payload_max_bytes={limit}",
                help_text="store large values elsewhere and pass a reference",
            )
