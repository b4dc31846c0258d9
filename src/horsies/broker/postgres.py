"""PostgresBroker: the contract's methods, each handed on to the package that does the work."""

import asyncio
from datetime import datetime, timedelta
from functools import cached_property
from typing import Any, TypeVar, Unpack

from horsies.codes import BrokerErrorCode
from horsies.config import PostgresConfig
from horsies.database.database import Database
from horsies.database.operation import FAILURES, operation_error
from horsies.database.orm import make_session_factory
from horsies.observability.hooks import EventHooks
from horsies.operations import health
from horsies.operations.cancel import CancelledTasks, cancel_all, cancel_one
from horsies.operations.filters import TaskFilter
from horsies.operations.health import DatabasePing, WorkerPong
from horsies.operations.paging import exact_count_steps
from horsies.operations.requeue import requeue_all, requeue_one, rerun_one
from horsies.operations.steps import Steps, perform, perform_async
from horsies.recovery import manual
from horsies.recovery.lost_runs import end_lost_runs
from horsies.result import Err, Ok
from horsies.result.broker import (
    BrokerOperationError,
    BrokerResult,
    CancelResult,
    TransparentOk,
)
from horsies.results.reading import AnyResult, Decode, attempts_of, decode_untyped, task_info
from horsies.results.status import status
from horsies.results.task_info import TaskInfo
from horsies.results.waiting import ResultWaiter, awaited_tasks
from horsies.sending.enqueuer import Enqueuer, EnqueueResult
from horsies.sending.rows import EnqueueOptions, new_row
from horsies.workflows.errors import WorkflowStartResult
from horsies.workflows.handle import WorkflowHandle, awaited_workflows
from horsies.workflows.prepared_start import StartingApp
from horsies.workflows.spec import WorkflowSpec
from horsies.workflows.start import start_workflow, start_workflow_async

T = TypeVar("T")


class PostgresBroker:
    """All operations on one database. May be used from several threads and event loops.

    `app` is the app it belongs to, `decode` reads stored results by the types of the app's tasks,
    `hooks` are told of what its calls do to tasks; `Horsies.get_broker` sets all three.
    """

    # Whether sends with `connection=` join the caller's transaction; not where tests record them.
    stores_in_transactions = True

    def __init__(self, config: PostgresConfig, *, decode: Decode = decode_untyped) -> None:
        self.config = config
        self.app: StartingApp | None = None
        self.decode = decode
        self.hooks = EventHooks()
        self.database = Database(config)
        self.enqueuer = Enqueuer(self.database)
        self._make_waiters()

    def _make_waiters(self) -> None:
        self._waiter = ResultWaiter(self.database, awaited_tasks(self._decode))
        self.workflow_waiter = ResultWaiter(self.database, awaited_workflows(lambda: self.app))

    def _decode(self, task_name: str, text: str) -> AnyResult:
        return self.decode(task_name, text)  # looked up each time: the app may come later

    async def ensure_schema_initialized(self) -> BrokerResult[None]:
        """Create or upgrade the tables."""
        try:
            await self.database.ensure_schema_async()
        except FAILURES as error:
            return Err(operation_error(BrokerErrorCode.SCHEMA_INIT_FAILED, error))
        return Ok(None)

    def enqueue(
        self, task_name: str, queue_name: str = "default", **options: Unpack[EnqueueOptions]
    ) -> BrokerResult[str]:
        """Store one task row. Options: see `enqueue_async`."""
        row = new_row(task_name, queue_name, **options)
        if isinstance(row, BrokerOperationError):
            return Err(row)
        return _enqueued(self.enqueuer.enqueue(row))

    async def enqueue_async(
        self, task_name: str, queue_name: str = "default", **options: Unpack[EnqueueOptions]
    ) -> BrokerResult[str]:
        """Store one task row: `task_id`, `enqueue_sha` and the others of `EnqueueOptions`."""
        row = new_row(task_name, queue_name, **options)
        if isinstance(row, BrokerOperationError):
            return Err(row)
        return _enqueued(await self.enqueuer.enqueue_async(row))

    def get_result(self, task_id: str, timeout_ms: int | None = None) -> AnyResult:
        """Wait for the end of a task and return its result."""
        return self._waiter.get(task_id, timeout_ms)

    async def get_result_async(self, task_id: str, timeout_ms: int | None = None) -> AnyResult:
        return await self._waiter.get_async(task_id, timeout_ms)

    def get_task_info(
        self,
        task_id: str,
        *,
        include_result: bool = False,
        include_failed_reason: bool = False,
        include_attempts: bool = False,
        include_log: bool = False,
    ) -> BrokerResult[TaskInfo | None]:
        """One task as it stands; `Ok(None)` when there is no such row."""
        operation = task_info(
            task_id,
            self.decode,
            with_result=include_result,
            with_failed_reason=include_failed_reason,
            with_log=include_log,
        )
        found = self.database.perform(operation)
        info = found.ok()
        if info is None or not include_attempts:
            return found
        return self.database.perform(attempts_of(info))

    async def get_task_info_async(
        self,
        task_id: str,
        *,
        include_result: bool = False,
        include_failed_reason: bool = False,
        include_attempts: bool = False,
        include_log: bool = False,
    ) -> BrokerResult[TaskInfo | None]:
        return await asyncio.to_thread(
            self.get_task_info,
            task_id,
            include_result=include_result,
            include_failed_reason=include_failed_reason,
            include_attempts=include_attempts,
            include_log=include_log,
        )

    def get_task_status(self, task_id: str) -> BrokerResult[dict[str, object] | None]:
        """The task as the HTTP status shows it: plain values only."""
        return self.database.perform(status(task_id))

    async def get_task_status_async(self, task_id: str) -> BrokerResult[dict[str, object] | None]:
        return await self.database.perform_async(status(task_id))

    async def cancel_task(self, task_id: str, *, running: bool = False) -> CancelResult:
        """Withdraw a task that has not started; with `running`, ask its worker to end it."""
        told = CancelledTasks(self.hooks)
        done = await perform_async(
            self.database,
            cancel_one(task_id, told, running=running),
            BrokerErrorCode.CLEANUP_FAILED,
        )
        await told.tell_async()
        return done.ok_value if isinstance(done, Ok) else done

    def cancel_task_sync(self, task_id: str, *, running: bool = False) -> CancelResult:
        told = CancelledTasks(self.hooks)
        done = self._repair(cancel_one(task_id, told, running=running))
        told.tell()
        return done.ok_value if isinstance(done, Ok) else done

    def count_tasks(self, wanted: TaskFilter) -> BrokerResult[int]:
        """Count the tasks that match a filter."""
        return self._repair(exact_count_steps(wanted))

    def cancel_tasks(self, wanted: TaskFilter, *, running: bool = False) -> BrokerResult[int]:
        """Withdraw all matching tasks; return how many were cancelled or asked to end."""
        told = CancelledTasks(self.hooks)
        done = self._repair(cancel_all(wanted, told, running=running))
        told.tell()
        return done

    def requeue_tasks(self, wanted: TaskFilter) -> BrokerResult[int]:
        """Put all matching ended tasks back in their queues; return how many."""
        return self._repair(requeue_all(wanted))

    def _repair(self, steps: Steps[T]) -> BrokerResult[T]:
        return perform(self.database, steps, BrokerErrorCode.CLEANUP_FAILED)

    async def requeue_task(
        self, task_id: str, *, include_completed: bool = False
    ) -> BrokerResult[bool]:
        """Put an ended task back in its queue as the same row."""
        return await self.database.perform_async(
            requeue_one(task_id, include_completed=include_completed)
        )

    def requeue_task_sync(
        self, task_id: str, *, include_completed: bool = False
    ) -> BrokerResult[bool]:
        return self.database.perform(requeue_one(task_id, include_completed=include_completed))

    async def requeue_failed(
        self, *, task_name: str | None = None, queue_name: str | None = None
    ) -> BrokerResult[int]:
        """Put all matching FAILED tasks back in their queues; return how many."""
        wanted = TaskFilter(("FAILED",), task_name, queue_name)
        return await asyncio.to_thread(self.requeue_tasks, wanted)

    async def rerun_task(
        self, task_id: str, *, good_until: datetime | None = None
    ) -> BrokerResult[str | None]:
        """Store a new task with the input of an ended one; return its id."""
        return await self.database.perform_async(rerun_one(task_id, good_until))

    def rerun_task_sync(
        self, task_id: str, *, good_until: datetime | None = None
    ) -> BrokerResult[str | None]:
        return self.database.perform(rerun_one(task_id, good_until))

    def start_workflow(
        self, spec: WorkflowSpec[T], workflow_id: str | None = None, *, connection: Any = None
    ) -> WorkflowStartResult[WorkflowHandle[T]]:
        """Store a workflow and start its roots."""
        resends = spec.resend_on_transient_err
        return start_workflow(
            spec, self, workflow_id, connection=connection, resend_on_transient_err=resends
        )

    async def start_workflow_async(
        self, spec: WorkflowSpec[T], workflow_id: str | None = None, *, connection: Any = None
    ) -> WorkflowStartResult[WorkflowHandle[T]]:
        resends = spec.resend_on_transient_err
        return await start_workflow_async(
            spec, self, workflow_id, connection=connection, resend_on_transient_err=resends
        )

    async def get_stale_tasks(
        self, stale_threshold_minutes: float = 2
    ) -> BrokerResult[list[dict[str, object]]]:
        """RUNNING tasks without a sign of life for that long."""
        silent_for = timedelta(minutes=stale_threshold_minutes)
        return _transparent(await self.database.perform_async(manual.list_lost_runs(silent_for)))

    async def get_worker_stats(self) -> BrokerResult[list[dict[str, object]]]:
        """RUNNING tasks grouped by executor."""
        return await self.database.perform_async(manual.list_worker_stats())

    async def get_expired_tasks(self) -> BrokerResult[list[dict[str, object]]]:
        """PENDING tasks past their deadline, not yet reaped."""
        return await self.database.perform_async(manual.list_expired_tasks())

    async def mark_stale_tasks_as_failed(
        self, stale_threshold_ms: int = 300_000
    ) -> BrokerResult[int]:
        """End runs without a sign of life, by hand; return how many were retried or failed."""
        silent_for = timedelta(milliseconds=stale_threshold_ms)
        return _transparent(await end_lost_runs(self.database, silent_for, self.hooks))

    async def requeue_stale_claimed(self, stale_threshold_ms: int = 120_000) -> BrokerResult[int]:
        """Put claims without a sign of life back, by hand; return how many."""
        stale_after = timedelta(milliseconds=stale_threshold_ms)
        return _transparent(await manual.requeue_stale(self.database, stale_after))

    async def expire_pending_tasks(self) -> BrokerResult[int]:
        """End overdue PENDING tasks, by hand; return how many."""
        return await manual.expire_overdue(self.database, self.hooks)

    @cached_property
    def session_factory(self) -> Any:
        """SQLAlchemy's `AsyncSession`s on this database; needs the extra `sqlalchemy`."""
        return make_session_factory(self.database)

    def ping(self, timeout_ms: int = 2_000) -> BrokerResult[DatabasePing]:
        return health.ping_database(self.database, timeout_ms)

    async def ping_async(self, timeout_ms: int = 2_000) -> BrokerResult[DatabasePing]:
        return await health.ping_database_async(self.database, timeout_ms)

    def ping_workers(self, timeout_ms: int = 1_000) -> BrokerResult[list[WorkerPong]]:
        return health.ping_workers(self.database, timeout_ms)

    async def ping_workers_async(self, timeout_ms: int = 1_000) -> BrokerResult[list[WorkerPong]]:
        return await health.ping_workers_async(self.database, timeout_ms)

    def close(self) -> BrokerResult[None]:
        """Close the listener and the connections.

        The broker opens new ones when it is used again.
        """
        try:
            self.database.close()
        except FAILURES as error:
            return Err(operation_error(BrokerErrorCode.CLOSE_FAILED, error))
        self._make_waiters()
        return Ok(None)

    async def close_async(self) -> BrokerResult[None]:
        try:
            await self.database.close_async()
        except FAILURES as error:
            return Err(operation_error(BrokerErrorCode.CLOSE_FAILED, error))
        self._make_waiters()
        return Ok(None)


def _enqueued(stored: EnqueueResult) -> BrokerResult[str]:
    if isinstance(stored, Err):
        error = stored.err_value
        code = BrokerErrorCode[error.code.name]
        return Err(BrokerOperationError(code, error.message, error.retryable, error.exception))
    return Ok(stored.ok_value.task_id)


def _transparent(result: BrokerResult[Any]) -> BrokerResult[Any]:
    return TransparentOk(result.ok_value) if isinstance(result, Ok) else result
