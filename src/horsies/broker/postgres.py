"""PostgresBroker: the object that talks to the database for an app.

A façade; each concern has its own file.
"""

import asyncio
from collections.abc import Callable
from datetime import datetime, timedelta
from functools import cached_property
from typing import Any, Literal

from horsies.broker import health, operations, orm, status
from horsies.broker.enqueue import Answer, Enqueuer
from horsies.broker.lost import LostRuns
from horsies.broker.results import AnyResult, ResultWaiter
from horsies.broker.session import FAILURES, Operation, Session, operation_error
from horsies.broker.types import (
    BrokerErrorCode,
    BrokerOperationError,
    BrokerResult,
    DatabasePing,
    TaskInfo,
    TransparentOk,
    WorkerPong,
)
from horsies.clock import utc_now
from horsies.codec.results import UNTYPED, read_result
from horsies.config import PostgresConfig
from horsies.database.recovery import BATCH
from horsies.database.rows import NewTask, Receipt
from horsies.database.tasks import Filter
from horsies.ids import new_id
from horsies.result import Err, Ok
from horsies.tasks.options import parse_task_options

UniqueScope = Literal["unfinished", "stored"]


class PostgresBroker:
    """All operations on one database. May be used from several threads and event loops."""

    def __init__(self, config: PostgresConfig) -> None:
        self.config = config
        self.app: Any = None
        self.session = Session(config)
        self.enqueuer = Enqueuer(self.session)
        self._waiter = ResultWaiter(self.session, self._decode)
        self._lost = LostRuns(self.session)

    def _decode(self, task_name: str, text: str) -> AnyResult:
        """By the registered task's type when this process knows the task, else as plain values."""
        if self.app is not None and task_name in self.app.tasks:
            result: AnyResult = self.app.tasks[task_name].definition.decode_result(text)
            return result
        return read_result(text, UNTYPED)

    async def ensure_schema_initialized(self) -> BrokerResult[None]:
        """Create or upgrade the tables."""
        try:
            await self.session.ensure_schema_async()
        except FAILURES as error:
            return Err(operation_error(BrokerErrorCode.SCHEMA_INIT_FAILED, error))
        return Ok(None)

    def enqueue(
        self, task_name: str, queue_name: str = "default", **options: Any
    ) -> BrokerResult[str]:
        """Store one task row. Options: see `enqueue_async`."""
        row = new_row(task_name, queue_name, **options)
        if isinstance(row, BrokerOperationError):
            return Err(row)
        return _enqueued(self.enqueuer.enqueue([row])[0])

    async def enqueue_async(
        self, task_name: str, queue_name: str = "default", **options: Any
    ) -> BrokerResult[str]:
        """Store one task row: `task_id`, `enqueue_sha` and the optional fields of `new_row`."""
        row = new_row(task_name, queue_name, **options)
        if isinstance(row, BrokerOperationError):
            return Err(row)
        return _enqueued(await self.enqueuer.enqueue_async(row))

    def get_result(self, task_id: str, timeout_ms: int | None = None) -> AnyResult:
        """Wait for the end of a task and give its result."""
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
        found = self.session.perform(
            operations.task(
                task_id,
                self._decode,
                with_result=include_result,
                with_failed_reason=include_failed_reason,
                with_log=include_log,
            )
        )
        info = found.ok()
        if info is None or not include_attempts:
            return found
        attempts = self.session.perform(operations.attempts(task_id))
        return attempts.map(lambda rows: operations.with_attempts(info, rows))

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

    def get_task_status(self, task_id: str) -> BrokerResult[dict[str, Any] | None]:
        """The task as the HTTP status shows it: plain values only."""
        return self.session.perform(status.status(task_id))

    async def get_task_status_async(self, task_id: str) -> BrokerResult[dict[str, Any] | None]:
        return await self.session.perform_async(status.status(task_id))

    async def cancel_task(self, task_id: str, *, running: bool = False) -> BrokerResult[bool]:
        """Withdraw a task that has not started; with `running`, ask its worker to end it."""
        return await self.session.perform_async(operations.cancel(task_id, running=running))

    def cancel_task_sync(self, task_id: str, *, running: bool = False) -> BrokerResult[bool]:
        return self.session.perform(operations.cancel(task_id, running=running))

    def count_tasks(self, wanted: Filter) -> BrokerResult[int]:
        """How many tasks an operation on many would be about."""
        return self.session.perform(operations.count(wanted))

    def cancel_tasks(self, wanted: Filter, *, running: bool = False) -> BrokerResult[int]:
        """Withdraw all matching tasks; how many were cancelled, or asked to end."""
        return self._for_all(wanted, lambda ids: operations.cancel_many(ids, running=running))

    def requeue_tasks(self, wanted: Filter) -> BrokerResult[int]:
        """Put all matching ended tasks back in their queues; how many."""
        return self._for_all(wanted, operations.requeue_many)

    def _for_all(
        self, wanted: Filter, change: Callable[[list[str]], Operation[Receipt, int]]
    ) -> BrokerResult[int]:
        total, after = 0, ""
        while True:
            page = self.session.perform(operations.matching_ids(wanted, after=after))
            if isinstance(page, Err):
                return page
            if not page.ok_value:
                return Ok(total)
            changed = self.session.perform(change(page.ok_value))
            if isinstance(changed, Err):
                return changed
            total, after = total + changed.ok_value, page.ok_value[-1]

    async def requeue_task(
        self, task_id: str, *, include_completed: bool = False
    ) -> BrokerResult[bool]:
        """Put an ended task back in its queue as the same row."""
        return await self.session.perform_async(
            operations.requeue(task_id, include_completed=include_completed)
        )

    def requeue_task_sync(
        self, task_id: str, *, include_completed: bool = False
    ) -> BrokerResult[bool]:
        return self.session.perform(
            operations.requeue(task_id, include_completed=include_completed)
        )

    async def requeue_failed(
        self, *, task_name: str | None = None, queue_name: str | None = None
    ) -> BrokerResult[int]:
        """Put all matching FAILED tasks back in their queues; how many."""
        wanted = Filter(("FAILED",), task_name, queue_name)
        return await asyncio.to_thread(self.requeue_tasks, wanted)

    async def rerun_task(
        self, task_id: str, *, good_until: datetime | None = None
    ) -> BrokerResult[str | None]:
        """Store a new task with the input of an ended one; the new id."""
        return await self.session.perform_async(operations.rerun(task_id, new_id(), good_until))

    def rerun_task_sync(
        self, task_id: str, *, good_until: datetime | None = None
    ) -> BrokerResult[str | None]:
        return self.session.perform(operations.rerun(task_id, new_id(), good_until))

    async def get_stale_tasks(
        self, stale_threshold_minutes: float = 2
    ) -> BrokerResult[list[dict[str, Any]]]:
        """RUNNING tasks without a sign of life for that long."""
        return _transparent(
            await self.session.perform_async(operations.stale_tasks(stale_threshold_minutes))
        )

    async def get_worker_stats(self) -> BrokerResult[list[dict[str, Any]]]:
        """RUNNING tasks grouped by executor."""
        return await self.session.perform_async(operations.worker_stats())

    async def get_expired_tasks(self) -> BrokerResult[list[dict[str, Any]]]:
        """PENDING tasks past their deadline, not yet reaped."""
        return await self.session.perform_async(operations.expired_tasks())

    async def mark_stale_tasks_as_failed(
        self, stale_threshold_ms: int = 300_000
    ) -> BrokerResult[int]:
        """Give up runs without a sign of life, by hand; counts retried and failed."""
        stale_after = timedelta(milliseconds=stale_threshold_ms)
        return _transparent(await self._lost.give_up(stale_after))

    async def requeue_stale_claimed(self, stale_threshold_ms: int = 120_000) -> BrokerResult[int]:
        """Put claims without a sign of life back, by hand."""
        operation = operations.requeue_stale_claimed(stale_threshold_ms)
        return _transparent(await self._in_batches(operation))

    async def expire_pending_tasks(self) -> BrokerResult[int]:
        """End overdue PENDING tasks, by hand."""
        return await self._in_batches(operations.expire())

    async def _in_batches(self, operation: Operation[Any, int]) -> BrokerResult[int]:
        total = 0
        while True:
            changed = await self.session.perform_async(operation)
            if isinstance(changed, Err):
                return changed
            total += changed.ok_value
            if changed.ok_value < BATCH:
                return Ok(total)

    @cached_property
    def session_factory(self) -> Any:
        """SQLAlchemy's `AsyncSession`s on this database; needs the extra `sqlalchemy`."""
        return orm.make_session_factory(self.session)

    def ping(self, timeout_ms: int = 2_000) -> BrokerResult[DatabasePing]:
        return health.ping_database(self.session, timeout_ms)

    async def ping_async(self, timeout_ms: int = 2_000) -> BrokerResult[DatabasePing]:
        return await health.ping_database_async(self.session, timeout_ms)

    def ping_workers(self, timeout_ms: int = 1_000) -> BrokerResult[list[WorkerPong]]:
        return health.ping_workers(self.session, timeout_ms)

    async def ping_workers_async(self, timeout_ms: int = 1_000) -> BrokerResult[list[WorkerPong]]:
        return await health.ping_workers_async(self.session, timeout_ms)

    def close(self) -> BrokerResult[None]:
        """Close the listener and the connections.

        The broker opens new ones when it is used again.
        """
        try:
            self.session.close()
        except FAILURES as error:
            return Err(operation_error(BrokerErrorCode.CLOSE_FAILED, error))
        self._waiter = ResultWaiter(self.session, self._decode)
        return Ok(None)

    async def close_async(self) -> BrokerResult[None]:
        try:
            await self.session.close_async()
        except FAILURES as error:
            return Err(operation_error(BrokerErrorCode.CLOSE_FAILED, error))
        self._waiter = ResultWaiter(self.session, self._decode)
        return Ok(None)


def new_row(  # noqa: PLR0913 - the contract's signature
    task_name: str,
    queue_name: str,
    *,
    task_id: str,
    enqueue_sha: str,
    args_json: str | None = None,
    kwargs_json: str | None = None,
    priority: int = 100,
    sent_at: datetime | None = None,
    enqueued_at: datetime | None = None,
    enqueue_delay_seconds: float | None = None,
    good_until: datetime | None = None,
    task_options: str | None = None,
    unique_key: str | None = None,
    unique_scope: UniqueScope = "unfinished",
    tags: str | None = None,
) -> NewTask | BrokerOperationError:
    """The row of a task to enqueue, or why there can be none."""
    problem = None
    if enqueued_at is not None and enqueue_delay_seconds is not None:
        problem = "give enqueued_at or enqueue_delay_seconds, not both"
    elif (
        sent_at is not None
        and enqueued_at is None
        and enqueue_delay_seconds is None
        and sent_at > utc_now() + timedelta(seconds=5)
    ):
        problem = "sent_at lies in the future; use enqueue_delay_seconds for a delay"
    if problem is not None:
        return BrokerOperationError(BrokerErrorCode.ENQUEUE_FAILED, problem, retryable=False)
    policy = parse_task_options(task_options).retry_policy
    return NewTask(
        task_id, task_name, queue_name, priority, args_json, kwargs_json, sent_at, enqueued_at,
        enqueue_delay_seconds, good_until, policy.max_retries if policy else 0, task_options,
        enqueue_sha, unique_key, unique_scope == "stored", tags,
    )  # fmt: skip


def _enqueued(answer: Answer) -> BrokerResult[str]:
    if not isinstance(answer, Receipt):
        return Err(operation_error(BrokerErrorCode.ENQUEUE_FAILED, answer))
    if answer.outcome in ("mismatch", "key_mismatch"):
        what = "id" if answer.outcome == "mismatch" else "unique key"
        message = f"task {answer.task_id} already holds this {what} with another payload"
        return Err(BrokerOperationError(BrokerErrorCode.PAYLOAD_MISMATCH, message, retryable=False))
    if answer.outcome == "freed":
        held = TimeoutError("the unique key kept changing hands")
        return Err(operation_error(BrokerErrorCode.ENQUEUE_FAILED, held))
    return Ok(answer.task_id)


def _transparent(result: BrokerResult[Any]) -> BrokerResult[Any]:
    return TransparentOk(result.ok_value) if isinstance(result, Ok) else result
