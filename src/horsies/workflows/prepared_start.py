"""A prepared start: the rows of workflows, checked, and what the database's answer means.

The same rows however often it is tried.
"""

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from datetime import datetime
from typing import Any, Protocol

from horsies.clock import utc_now
from horsies.codec.signature import byte_count
from horsies.codes import WorkflowStartErrorCode
from horsies.config import AppConfig
from horsies.database.database import Database
from horsies.database.operation import FAILURES, describe
from horsies.database.statement import Receipt, Statement
from horsies.database.user_connection import UnusableConnectionError
from horsies.database.verdict import is_connection_failure, is_transient
from horsies.errors import HorsiesError, WorkflowValidationError
from horsies.ids import new_id
from horsies.observability.traces import Tracing
from horsies.result import Err, Ok, Result
from horsies.workflows.errors import WorkflowStartError, WorkflowStartResult
from horsies.workflows.handle import HandleBroker, WorkflowHandle
from horsies.workflows.reading import WorkflowApp
from horsies.workflows.rows import NewRows, carrying, rows_of
from horsies.workflows.spec import WorkflowSpec
from horsies.workflows.start_checks import start_problems
from horsies.workflows.statements import start_workflows
from horsies.workflows.validate import raise_problems

# A statement carries about as many nodes: far below the server's limit for one value.
_NODES_PER_STATEMENT = 5_000


class StartingApp(WorkflowApp, Protocol):
    """The part of an app that a start needs."""

    @property
    def config(self) -> AppConfig: ...
    @property
    def tracing(self) -> Tracing | None: ...
    def are_sends_suppressed(self) -> bool: ...


class StartingBroker(HandleBroker, Protocol):
    """The part of a broker that a start needs."""

    @property
    def app(self) -> StartingApp | None: ...


class PreparedStart:
    """One start of one or more workflows; `Err` from `statements` means none was tried."""

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

    @property
    def database(self) -> Database:
        return self._broker.database

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
                raise_problems(list(start_problems(spec, app)))
                rows = rows_of(spec, workflow_id, self._sent_at)
                if app is not None and app.tracing is not None:
                    rows = carrying(rows, app.tracing.carried)
                _check_size(rows, limit)
            except HorsiesError as error:
                return Err(self._refusal(str(error), spec, workflow_id, error))
            starts.append(rows)
        return Ok([start_workflows(part) for part in _parts(starts)])

    def traced(self) -> AbstractContextManager[object]:
        """A span around the start, if the app is traced: all of its tasks continue it."""
        # A start never raises, whatever it was given for a broker.
        tracing: Tracing | None = getattr(getattr(self._broker, "app", None), "tracing", None)
        if tracing is None:
            return nullcontext()
        return tracing.sending(f"start workflow {self._specs[0].name}")

    def answer(self, receipts: Sequence[Receipt]) -> WorkflowStartResult[list[WorkflowHandle[Any]]]:
        """Handles, or the first workflow that could not be started."""
        for spec, receipt in zip(self._specs, receipts, strict=True):
            if receipt.outcome not in {"created", "exists"}:
                message = f"the id {receipt.task_id} belongs to a workflow of another name"
                return Err(self._refusal(message, spec, receipt.task_id))
        return Ok([WorkflowHandle(receipt.task_id, self._broker) for receipt in receipts])

    def failure(self, error: BaseException, *, is_users: bool) -> WorkflowStartError:
        """What went wrong on the way to the database; `is_users`: on a connection of the user's."""
        spec, workflow_id = self._specs[0], self._ids[0]
        if isinstance(error, UnusableConnectionError):
            return self._refusal(str(error), spec, workflow_id, error)
        code = WorkflowStartErrorCode.ENQUEUE_FAILED
        if not isinstance(error, FAILURES) and not is_users:
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
