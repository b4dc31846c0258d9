"""WorkflowHandle: what a starter holds of a workflow."""

from collections.abc import Callable
from typing import Any, Generic, Protocol, TypeVar

from horsies.codes import BrokerErrorCode, HandleErrorCode
from horsies.database.database import Database
from horsies.database.operation import Operation, describe
from horsies.database.statement import Scalar, Statement
from horsies.result import (
    ContractCode,
    Err,
    Ok,
    OperationalErrorCode,
    RetrievalCode,
    TaskError,
    TaskResult,
)
from horsies.result.broker import BrokerResult
from horsies.results.reading import AnyResult
from horsies.results.waiting import Awaited, ResultWaiter
from horsies.states import WorkflowStatus, read_status
from horsies.workflows import statements
from horsies.workflows.errors import HandleOperationError, HandleResult
from horsies.workflows.nodes import Node, NodeKey
from horsies.workflows.reading import (
    WorkflowApp,
    WorkflowTaskInfo,
    node_info,
    node_result,
    workflow_result,
)
from horsies.workflows.statements import NodeRow, WorkflowRow

T = TypeVar("T")
U = TypeVar("U")
Row = TypeVar("Row")

_CHANNEL = "workflow_done"


class HandleBroker(Protocol):
    """The part of a broker that a handle needs."""

    @property
    def database(self) -> Database: ...
    @property
    def workflow_waiter(self) -> ResultWaiter[WorkflowRow]: ...
    @property
    def app(self) -> WorkflowApp | None: ...


def awaited_workflows(app: Callable[[], WorkflowApp | None]) -> Awaited[WorkflowRow]:
    """Workflows, read by the types of the app that is there when they end."""
    return Awaited(
        "workflow",
        _CHANNEL,
        statements.read_workflows,
        lambda i, row: workflow_result(i, row, app()),
    )


class WorkflowHandle(Generic[T]):
    """One stored workflow: wait for it, look at it, steer it. Each method has an `_async` twin."""

    __slots__ = ("_broker", "workflow_id")

    def __init__(self, workflow_id: str, broker: HandleBroker) -> None:
        self.workflow_id = workflow_id
        self._broker = broker

    def __repr__(self) -> str:
        return f"WorkflowHandle({self.workflow_id!r})"

    def get(self, timeout_ms: int | None = None) -> TaskResult[T, TaskError]:
        """Wait for the end and give the result; `None` waits without limit, `0` looks once.

        A paused workflow answers at once with `WORKFLOW_PAUSED`.
        """
        return self._broker.workflow_waiter.get(self.workflow_id, timeout_ms)

    async def get_async(self, timeout_ms: int | None = None) -> TaskResult[T, TaskError]:
        return await self._broker.workflow_waiter.get_async(self.workflow_id, timeout_ms)

    def status(self) -> HandleResult[WorkflowStatus]:
        return self._perform(self._read_status())

    async def status_async(self) -> HandleResult[WorkflowStatus]:
        return await self._perform_async(self._read_status())

    def tasks(self) -> HandleResult[list[WorkflowTaskInfo]]:
        """All nodes by index, with their states, results and times."""
        return self._perform(self._read_nodes(self._infos))

    async def tasks_async(self) -> HandleResult[list[WorkflowTaskInfo]]:
        return await self._perform_async(self._read_nodes(self._infos))

    def results(self) -> HandleResult[dict[str, AnyResult]]:
        """The results of finished nodes, by node id."""
        return self._perform(self._read_nodes(self._results))

    async def results_async(self) -> HandleResult[dict[str, AnyResult]]:
        return await self._perform_async(self._read_nodes(self._results))

    def result_for(self, node: Node[U] | NodeKey[U]) -> TaskResult[U, TaskError]:
        """The result of one node as it stands now; never waits."""
        if node.node_id is None:
            return _no_node_id()
        return self._one(node.node_id, self._perform(self._read_node(node.node_id)))

    async def result_for_async(self, node: Node[U] | NodeKey[U]) -> TaskResult[U, TaskError]:
        if node.node_id is None:
            return _no_node_id()
        return self._one(node.node_id, await self._perform_async(self._read_node(node.node_id)))

    def pause(self) -> HandleResult[bool]:
        """Let running tasks finish and start nothing more; `Ok(False)` if it was not running."""
        return self._perform(self._changed(statements.pause_workflow(self.workflow_id)))

    async def pause_async(self) -> HandleResult[bool]:
        return await self._perform_async(self._changed(statements.pause_workflow(self.workflow_id)))

    def resume(self) -> HandleResult[bool]:
        """Go on where `pause()` or a failure stopped; `Ok(False)` if it was not paused."""
        return self._perform(self._changed(statements.resume_workflow(self.workflow_id)))

    async def resume_async(self) -> HandleResult[bool]:
        return await self._perform_async(
            self._changed(statements.resume_workflow(self.workflow_id))
        )

    def cancel(self) -> HandleResult[None]:
        """Start nothing more, for good; running tasks finish. An ended workflow stays as it is."""
        operation = self._changed(statements.cancel_workflow(self.workflow_id))
        return self._perform(operation).map(_nothing)

    async def cancel_async(self) -> HandleResult[None]:
        operation = self._changed(statements.cancel_workflow(self.workflow_id))
        return (await self._perform_async(operation)).map(_nothing)

    def retry(self, from_node: Node[Any] | NodeKey[Any] | None = None) -> HandleResult[bool]:
        """Run FAILED nodes again, and what was skipped behind them; keep COMPLETED results.

        With `from_node`, run that node and all behind it again, whatever they were. `Ok(False)`:
        the workflow has not failed, has no such node, or a task of a cancelled child still runs.
        """
        return self._perform(self._retried(from_node))

    async def retry_async(
        self, from_node: Node[Any] | NodeKey[Any] | None = None
    ) -> HandleResult[bool]:
        return await self._perform_async(self._retried(from_node))

    def _read_status(self) -> Operation[WorkflowRow, WorkflowStatus | None]:
        return self._operation(
            statements.read_workflows([self.workflow_id]),
            lambda rows: read_status(WorkflowStatus, rows[0].status) if rows else None,
        )

    def _read_nodes(self, read: Callable[[list[NodeRow]], U]) -> Operation[NodeRow, U | None]:
        # A workflow without nodes does not exist.
        return self._operation(
            statements.read_nodes(self.workflow_id), lambda rows: read(rows) if rows else None
        )

    def _read_node(self, node_id: str) -> Operation[NodeRow, list[NodeRow] | None]:
        return self._operation(statements.read_node(self.workflow_id, node_id), list)

    def _changed(self, statement: Statement[Scalar]) -> Operation[Scalar, bool | None]:
        return self._operation(statement, lambda rows: rows[0].value)

    def _retried(
        self, from_node: Node[Any] | NodeKey[Any] | None
    ) -> Operation[Scalar, bool | None]:
        node_id = None if from_node is None else str(from_node.node_id)
        return self._operation(
            statements.retry_workflow(self.workflow_id, node_id),
            lambda rows: None if rows[0].value is None else rows[0].value == "retried",
        )

    def _operation(
        self, statement: Statement[Row], read: Callable[[list[Row]], U]
    ) -> Operation[Row, U]:
        return Operation(statement, read, BrokerErrorCode.MONITORING_QUERY_FAILED)

    def _infos(self, rows: list[NodeRow]) -> list[WorkflowTaskInfo]:
        return [node_info(row, self._broker.app) for row in rows]

    def _results(self, rows: list[NodeRow]) -> dict[str, AnyResult]:
        found = {
            row.node_id or str(row.task_index): node_result(row, self._broker.app) for row in rows
        }
        return {node_id: result for node_id, result in found.items() if result is not None}

    def _one(self, node_id: str, found: HandleResult[list[NodeRow]]) -> AnyResult:
        if isinstance(found, Err):
            return _handle_error(found.err_value)
        result = node_result(found.ok_value[0], self._broker.app) if found.ok_value else None
        return result or TaskResult(
            err=TaskError(
                error_code=RetrievalCode.RESULT_NOT_READY,
                message=f"node {node_id!r} has stored no result",
                data={"workflow_id": self.workflow_id, "node_id": node_id},
            )
        )

    def _perform(self, operation: Operation[Row, U | None]) -> HandleResult[U]:
        try:
            return self._answer(self._broker.database.perform(operation))
        except Exception as error:  # noqa: BLE001 - bugs, also of objects of the user's: values here
            return self._unexpected(error)

    async def _perform_async(self, operation: Operation[Row, U | None]) -> HandleResult[U]:
        try:
            return self._answer(await self._broker.database.perform_async(operation))
        except Exception as error:  # noqa: BLE001 - bugs, also of objects of the user's: values here
            return self._unexpected(error)

    def _unexpected(self, error: Exception) -> HandleResult[Any]:
        return Err(
            HandleOperationError(
                HandleErrorCode.INTERNAL_FAILED,
                describe(error),
                retryable=False,
                workflow_id=self.workflow_id,
                exception=error,
            )
        )

    def _answer(self, done: BrokerResult[U | None]) -> HandleResult[U]:
        if isinstance(done, Err):
            error = done.err_value
            return Err(
                HandleOperationError(
                    HandleErrorCode.DB_OPERATION_FAILED,
                    error.message,
                    error.retryable,
                    self.workflow_id,
                    error.exception,
                )
            )
        if done.ok_value is None:
            return Err(
                HandleOperationError(
                    HandleErrorCode.WORKFLOW_NOT_FOUND,
                    f"there is no workflow {self.workflow_id}",
                    retryable=False,
                    workflow_id=self.workflow_id,
                )
            )
        return Ok(done.ok_value)


def _nothing(_changed: bool) -> None:
    """Cancelling an ended workflow is no failure."""


def _no_node_id() -> AnyResult:
    return TaskResult(
        err=TaskError(
            error_code=ContractCode.WORKFLOW_CTX_MISSING_ID,
            message="the node has no node_id: give it one, or build its workflow first",
        )
    )


def _handle_error(error: HandleOperationError) -> AnyResult:
    code = OperationalErrorCode.BROKER_ERROR
    return TaskResult(err=TaskError(error_code=code, message=error.message))
