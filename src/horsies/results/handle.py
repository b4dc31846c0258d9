"""TaskHandle: what a sender holds of a task."""

from datetime import datetime
from typing import Any, Generic, Protocol, TypeVar

from horsies.codes import BrokerErrorCode
from horsies.result import (
    Err,
    OperationalErrorCode,
    RetrievalCode,
    TaskError,
    TaskResult,
)
from horsies.result.broker import BrokerOperationError, BrokerResult, CancelResult
from horsies.result.raising import task_failed
from horsies.results.reading import AnyResult
from horsies.results.task_info import TaskInfo

T = TypeVar("T")
# A later look may find the result after all.
_NOT_FINAL = (RetrievalCode.WAIT_TIMEOUT, OperationalErrorCode.BROKER_ERROR)


class HandleBroker(Protocol):
    """The part of a broker that a handle needs."""

    def get_result(self, task_id: str, timeout_ms: int | None = None) -> AnyResult: ...
    async def get_result_async(self, task_id: str, timeout_ms: int | None = None) -> AnyResult: ...
    def get_task_info(
        self,
        task_id: str,
        *,
        include_result: bool = False,
        include_failed_reason: bool = False,
        include_attempts: bool = False,
        include_log: bool = False,
    ) -> BrokerResult[TaskInfo | None]: ...
    async def get_task_info_async(
        self,
        task_id: str,
        *,
        include_result: bool = False,
        include_failed_reason: bool = False,
        include_attempts: bool = False,
        include_log: bool = False,
    ) -> BrokerResult[TaskInfo | None]: ...
    def cancel_task_sync(self, task_id: str, *, running: bool = False) -> CancelResult: ...
    async def cancel_task(self, task_id: str, *, running: bool = False) -> CancelResult: ...
    def requeue_task_sync(
        self, task_id: str, *, include_completed: bool = False
    ) -> BrokerResult[bool]: ...
    async def requeue_task(
        self, task_id: str, *, include_completed: bool = False
    ) -> BrokerResult[bool]: ...
    def rerun_task_sync(
        self, task_id: str, *, good_until: datetime | None = None
    ) -> BrokerResult[str | None]: ...
    async def rerun_task(
        self, task_id: str, *, good_until: datetime | None = None
    ) -> BrokerResult[str | None]: ...


class BrokerOwner(Protocol):
    """The part of an app that a handle needs."""

    def get_broker(self) -> HandleBroker: ...


class TaskHandle(Generic[T]):
    """One stored task: wait for it, look at it, withdraw it."""

    __slots__ = ("__weakref__", "_app", "_broker_mode", "_result", "created", "task_id")

    def __init__(
        self,
        task_id: str,
        app: BrokerOwner | None = None,
        broker_mode: bool = False,
        *,
        created: bool = True,
    ) -> None:
        self.task_id = task_id
        self.created = created
        self._app = app
        self._broker_mode = broker_mode
        self._result: TaskResult[T, TaskError] | None = None

    def __repr__(self) -> str:
        return f"TaskHandle({self.task_id!r})"

    def get(self, timeout_ms: int | None = None) -> TaskResult[T, TaskError]:
        """Wait for the end and give the result; `None` waits without limit, `0` looks once.

        Called on a thread that runs an event loop it blocks that loop: use `get_async` there.
        """
        if self._result is not None:
            return self._result
        if self._app is None:
            return _no_broker_result(self.task_id)
        return self._keep(self._app.get_broker().get_result(self.task_id, timeout_ms))

    async def get_async(self, timeout_ms: int | None = None) -> TaskResult[T, TaskError]:
        """The awaitable twin of `get`."""
        if self._result is not None:
            return self._result
        if self._app is None:
            return _no_broker_result(self.task_id)
        return self._keep(await self._app.get_broker().get_result_async(self.task_id, timeout_ms))

    def result(self, timeout_ms: int | None = None) -> T:
        """Wait for the end and give the value; raise `TaskFailed` with the error otherwise."""
        return _value(self.get(timeout_ms))

    async def result_async(self, timeout_ms: int | None = None) -> T:
        """The awaitable twin of `result`."""
        return _value(await self.get_async(timeout_ms))

    def info(
        self,
        *,
        include_result: bool = False,
        include_failed_reason: bool = False,
        include_attempts: bool = False,
        include_log: bool = False,
    ) -> BrokerResult[TaskInfo | None]:
        """The task as it stands; the costlier parts only when asked for."""
        broker = self._broker()
        if isinstance(broker, Err):
            return broker
        return broker.get_task_info(
            self.task_id,
            include_result=include_result,
            include_failed_reason=include_failed_reason,
            include_attempts=include_attempts,
            include_log=include_log,
        )

    async def info_async(
        self,
        *,
        include_result: bool = False,
        include_failed_reason: bool = False,
        include_attempts: bool = False,
        include_log: bool = False,
    ) -> BrokerResult[TaskInfo | None]:
        broker = self._broker()
        if isinstance(broker, Err):
            return broker
        return await broker.get_task_info_async(
            self.task_id,
            include_result=include_result,
            include_failed_reason=include_failed_reason,
            include_attempts=include_attempts,
            include_log=include_log,
        )

    def cancel(self, *, running: bool = False) -> CancelResult:
        """Withdraw the task if it has not started; with `running=True` also end it while it runs.

        `Ok(False)`: it had ended, or runs and `running` was not asked for; `found` tells which. A
        running task ends CANCELLED as soon as its worker has stopped it; `get()` tells.
        """
        broker = self._broker()
        if isinstance(broker, Err):
            return broker
        return broker.cancel_task_sync(self.task_id, running=running)

    async def cancel_async(self, *, running: bool = False) -> CancelResult:
        broker = self._broker()
        if isinstance(broker, Err):
            return broker
        return await broker.cancel_task(self.task_id, running=running)

    def requeue(self, *, include_completed: bool = False) -> BrokerResult[bool]:
        """Put the ended task back in its queue; the cached result is dropped."""
        broker = self._broker()
        if isinstance(broker, Err):
            return broker
        self._result = None
        return broker.requeue_task_sync(self.task_id, include_completed=include_completed)

    async def requeue_async(self, *, include_completed: bool = False) -> BrokerResult[bool]:
        broker = self._broker()
        if isinstance(broker, Err):
            return broker
        self._result = None
        return await broker.requeue_task(self.task_id, include_completed=include_completed)

    def rerun(self, *, good_until: datetime | None = None) -> BrokerResult["TaskHandle[T] | None"]:
        """Send the same input again as a new task."""
        broker = self._broker()
        if isinstance(broker, Err):
            return broker
        return broker.rerun_task_sync(self.task_id, good_until=good_until).map(self._other)

    async def rerun_async(
        self, *, good_until: datetime | None = None
    ) -> BrokerResult["TaskHandle[T] | None"]:
        broker = self._broker()
        if isinstance(broker, Err):
            return broker
        return (await broker.rerun_task(self.task_id, good_until=good_until)).map(self._other)

    def _other(self, task_id: str | None) -> "TaskHandle[T] | None":
        return None if task_id is None else TaskHandle(task_id, self._app, self._broker_mode)

    def _keep(self, result: TaskResult[Any, TaskError]) -> TaskResult[T, TaskError]:
        if not (result.is_err() and result.err_value.error_code in _NOT_FINAL):
            self._result = result
        return result

    def _broker(self) -> HandleBroker | Err[BrokerOperationError]:
        if self._app is None:
            message = "this call requires a broker-backed handle, as send() returns it"
            return Err(BrokerOperationError(BrokerErrorCode.NO_BROKER, message, retryable=False))
        return self._app.get_broker()


def _value(result: TaskResult[T, TaskError]) -> T:
    if result.is_err():
        raise task_failed(result.err_value)
    return result.ok_value


def _no_broker_result(task_id: str) -> TaskResult[Any, TaskError]:
    return TaskResult(
        err=TaskError(
            error_code=RetrievalCode.RESULT_NOT_AVAILABLE,
            message="this handle has neither a broker nor a result",
            data={"task_id": task_id},
        )
    )
