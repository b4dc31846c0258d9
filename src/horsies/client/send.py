"""From a call's arguments to a stored row: checked, encoded, enqueued; every failure is a value."""

import asyncio
import logging
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any, Protocol, TypeAlias

from horsies.broker.enqueue import Answer
from horsies.broker.postgres import PostgresBroker
from horsies.broker.session import describe
from horsies.client import transaction
from horsies.client.handle import TaskHandle
from horsies.client.options import SendOptions
from horsies.client.plan import Plan, payload_of
from horsies.client.types import (
    TaskSendError,
    TaskSendErrorCode,
    TaskSendResult,
)
from horsies.clock import utc_now
from horsies.codec.signature import EncodedArguments, byte_count
from horsies.config import AppConfig
from horsies.database.rows import NewTask, Receipt
from horsies.database.statement import is_connection_failure
from horsies.errors import HorsiesError
from horsies.ids import new_id, new_ids
from horsies.result import Err, Ok, Result
from horsies.tasks.definition import TaskDefinition

_logger = logging.getLogger("horsies.send")
_RESEND_AFTER_S = (0.2, 0.4, 0.8)
_IDS_AT_ONCE = 1_000
Arguments: TypeAlias = tuple[Any, ...] | Mapping[str, Any]
PlanResult: TypeAlias = Result[Plan, TaskSendError]


class SendingApp(Protocol):
    """The part of an app that sending needs."""

    @property
    def config(self) -> AppConfig: ...
    def get_broker(self) -> PostgresBroker: ...
    def are_sends_suppressed(self) -> bool: ...


class _RefusedError(Exception):
    """One of many calls does not fit; nothing of them is stored."""

    def __init__(self, error: TaskSendError) -> None:
        super().__init__(error.message)
        self.error = error


class Sender:
    """Sends tasks for an app."""

    def __init__(self, app: SendingApp) -> None:
        self._app = app
        self._warned: set[str] = set()

    @property
    def is_suppressed(self) -> bool:
        return self._app.are_sends_suppressed()

    def send(
        self, plan: PlanResult, args: tuple[Any, ...], kwargs: Any
    ) -> TaskSendResult[TaskHandle[Any]]:
        row = self._prepare(plan, args, kwargs)
        if isinstance(row, Err):
            return row
        connection = plan.unwrap().options.connection
        if connection is not None:
            return self._send_in_transaction(row.ok_value, connection)
        return self.enqueue(row.ok_value)

    async def send_async(
        self, plan: PlanResult, args: tuple[Any, ...], kwargs: Any
    ) -> TaskSendResult[TaskHandle[Any]]:
        row = self._prepare(plan, args, kwargs)
        if isinstance(row, Err):
            return row
        connection = plan.unwrap().options.connection
        if connection is not None:
            return await self._send_in_transaction_async(row.ok_value, connection)
        return await self.enqueue_async(row.ok_value)

    def enqueue(self, row: NewTask) -> TaskSendResult[TaskHandle[Any]]:
        """Store a prepared task, again after a passing failure if the app wants that."""
        pauses = _RESEND_AFTER_S if self._app.config.resend_on_transient_err else ()
        for pause_s in (*pauses, None):
            result = self._enqueue_once(row)
            if pause_s is None or not _is_transient(result):
                return result
            time.sleep(pause_s)
        raise AssertionError("unreachable: the last pause is None")

    def _enqueue_once(self, row: NewTask) -> TaskSendResult[TaskHandle[Any]]:
        try:
            enqueuer = self._app.get_broker().enqueuer
        except HorsiesError as error:
            return _enqueue_failed(row, error)
        return self._answer(row, enqueuer.enqueue([row])[0])

    async def enqueue_async(self, row: NewTask) -> TaskSendResult[TaskHandle[Any]]:
        pauses = _RESEND_AFTER_S if self._app.config.resend_on_transient_err else ()
        for pause_s in (*pauses, None):
            try:
                enqueuer = self._app.get_broker().enqueuer
            except HorsiesError as error:
                return _enqueue_failed(row, error)
            result = self._answer(row, await enqueuer.enqueue_async(row))
            if pause_s is None or not _is_transient(result):
                return result
            await asyncio.sleep(pause_s)
        raise AssertionError("unreachable: the last pause is None")

    def send_many(
        self, plan: PlanResult, calls: Iterable[Arguments]
    ) -> TaskSendResult[list[TaskHandle[Any]]]:
        """Store many tasks in one transaction: all of them or, with the first problem, none."""
        if (refusal := self._refusal(plan)) is not None:
            return refusal
        made = plan.unwrap()
        try:
            if made.is_plain and made.options.connection is None:
                copied = self._app.get_broker().enqueuer.copy(self._rows(made, calls))
                return Ok([self._handle(task_id) for task_id in copied])
            rows = list(self._rows(made, calls))
            receipts = self._store_many(made, rows)
        except _RefusedError as refused:
            return Err(refused.error)
        except transaction.WrongConnectionError as error:
            return _refused(str(error))
        except Exception as error:  # noqa: BLE001 - the user's own driver raises what it likes
            return _many_failed(error)
        return self._many_answers(rows, receipts)

    async def send_many_async(
        self, plan: PlanResult, calls: Iterable[Arguments]
    ) -> TaskSendResult[list[TaskHandle[Any]]]:
        if isinstance(plan, Err) or plan.ok_value.options.connection is None:
            return await asyncio.to_thread(self.send_many, plan, list(calls))
        if (refusal := self._refusal(plan)) is not None:
            return refusal
        connection = plan.ok_value.options.connection
        try:
            rows = list(self._rows(plan.ok_value, calls))
            session = self._app.get_broker().session
            await session.ensure_schema_async()
            receipts = await transaction.enqueue_async(connection, session.schema, rows)
        except _RefusedError as refused:
            return Err(refused.error)
        except transaction.WrongConnectionError as error:
            return _refused(str(error))
        except Exception as error:  # noqa: BLE001 - the user's own driver raises what it likes
            return _many_failed(error)
        return self._many_answers(rows, receipts)

    def _rows(self, plan: Plan, calls: Iterable[Any]) -> Iterator[NewTask]:
        """Rows as they are needed: the server stores the first while the next are encoded."""
        sent_at = utc_now()
        ids: Iterator[str] = iter(())
        for position, call in enumerate(calls):
            if position % _IDS_AT_ONCE == 0:
                ids = iter(new_ids(_IDS_AT_ONCE))
            if isinstance(call, (tuple, list)):
                one = self._encode(plan, tuple(call), {})
            elif isinstance(call, Mapping):
                one = self._encode(plan, (), dict(call))
            else:
                kind = type(call).__name__
                one = _refused(f"give a tuple or mapping of arguments, not {kind}")
            if position and plan.options.unique_key is not None:
                one = _refused("a unique key names one task; give each task its own by send()")
            if isinstance(one, Err):
                error = one.err_value
                raise _RefusedError(replace(error, message=f"call {position}: {error.message}"))
            yield plan.row(next(ids), one.ok_value, sent_at)

    def _many_answers(
        self, rows: list[NewTask], receipts: list[Receipt]
    ) -> TaskSendResult[list[TaskHandle[Any]]]:
        handles: list[TaskHandle[Any]] = []
        for row, receipt in zip(rows, receipts, strict=True):
            answer = self._answer(row, receipt)
            if isinstance(answer, Err):
                return answer
            handles.append(answer.ok_value)
        return Ok(handles)

    def _store_many(self, plan: Plan, rows: list[NewTask]) -> list[Receipt]:
        broker = self._app.get_broker()
        if plan.options.connection is None:
            return broker.enqueuer.enqueue_all(rows)
        broker.session.ensure_schema()
        return transaction.enqueue(plan.options.connection, broker.session.schema, rows)

    def _send_in_transaction(
        self, row: NewTask, connection: Any
    ) -> TaskSendResult[TaskHandle[Any]]:
        try:
            session = self._app.get_broker().session
            session.ensure_schema()
            receipt = transaction.enqueue(connection, session.schema, [row])[0]
        except transaction.WrongConnectionError as error:
            return _refused(str(error))
        except Exception as error:  # noqa: BLE001 - the user's own driver raises what it likes
            return _enqueue_failed(row, error)
        return self._answer(row, receipt)

    async def _send_in_transaction_async(
        self, row: NewTask, connection: Any
    ) -> TaskSendResult[TaskHandle[Any]]:
        try:
            session = self._app.get_broker().session
            await session.ensure_schema_async()
            receipts = await transaction.enqueue_async(connection, session.schema, [row])
        except transaction.WrongConnectionError as error:
            return _refused(str(error))
        except Exception as error:  # noqa: BLE001 - the user's own driver raises what it likes
            return _enqueue_failed(row, error)
        return self._answer(row, receipts[0])

    def plan(self, definition: TaskDefinition, options: SendOptions) -> PlanResult:
        """What all sends of this task with these options share."""
        try:
            return Ok(Plan(definition, options))
        except HorsiesError as error:
            return _refused(describe(error), error)
        except ValueError as error:
            return _refused(str(error))

    def _prepare(
        self, plan: PlanResult, args: tuple[Any, ...], kwargs: Any
    ) -> Result[NewTask, TaskSendError]:
        """Check and encode; nothing is written."""
        if (refusal := self._refusal(plan)) is not None:
            return refusal
        made = plan.unwrap()
        encoded = self._encode(made, args, kwargs)
        if isinstance(encoded, Err):
            return encoded
        return Ok(made.row(new_id(), encoded.ok_value, utc_now()))

    def _refusal(self, plan: PlanResult) -> Err[TaskSendError] | None:
        if self._app.are_sends_suppressed():
            message = "sends are suppressed here: during imports, or by HORSIES_SUPPRESS_SENDS=1"
            return Err(TaskSendError(TaskSendErrorCode.SEND_SUPPRESSED, message, retryable=False))
        return plan if isinstance(plan, Err) else None

    def _encode(
        self, plan: Plan, args: tuple[Any, ...], kwargs: Any
    ) -> Result[EncodedArguments, TaskSendError]:
        encoded = plan.definition.encode_arguments(args, kwargs)
        if isinstance(encoded, Err):
            return _refused(str(encoded.err_value), encoded.err_value)
        args_json, kwargs_json = encoded.ok_value
        size = byte_count(args_json or "") + byte_count(kwargs_json or "")
        if size > plan.unremarkable_bytes:
            return self._check_size(plan.definition.name, size) or encoded
        return encoded

    def _check_size(self, task_name: str, size: int) -> Err[TaskSendError] | None:
        config = self._app.config
        if config.payload_max_bytes is not None and size > config.payload_max_bytes:
            limit = config.payload_max_bytes
            message = f"arguments of {task_name!r} take {size} bytes; payload_max_bytes={limit}"
            return Err(TaskSendError(TaskSendErrorCode.PAYLOAD_TOO_LARGE, message, retryable=False))
        warn_at = config.payload_warn_bytes
        if warn_at is not None and size > warn_at and task_name not in self._warned:
            self._warned.add(task_name)
            _logger.warning("arguments of task %s exceed payload_warn_bytes=%d", task_name, warn_at)
        return None

    def _answer(self, row: NewTask, answer: Answer) -> TaskSendResult[TaskHandle[Any]]:
        if not isinstance(answer, Receipt):
            return _enqueue_failed(row, answer)
        if answer.outcome in ("mismatch", "key_mismatch"):
            what = "id" if answer.outcome == "mismatch" else "unique key"
            return Err(
                TaskSendError(
                    TaskSendErrorCode.PAYLOAD_MISMATCH,
                    f"task {answer.task_id} already holds this {what} with another payload",
                    retryable=False,
                    task_id=answer.task_id,
                    payload=payload_of(row),
                )
            )
        if answer.outcome == "freed":
            return _enqueue_failed(row, TimeoutError("the unique key kept changing hands"))
        return Ok(self._handle(answer.task_id, created=answer.outcome == "created"))

    def _handle(self, task_id: str, *, created: bool = True) -> TaskHandle[Any]:
        return TaskHandle(task_id, self._app, broker_mode=True, created=created)


def _is_transient(result: TaskSendResult[Any]) -> bool:
    return isinstance(result, Err) and result.err_value.retryable


def _many_failed(error: Exception) -> Err[TaskSendError]:
    code, message = TaskSendErrorCode.ENQUEUE_FAILED, describe(error)
    return Err(TaskSendError(code, message, is_connection_failure(error), exception=error))


def _refused(message: str, error: BaseException | None = None) -> Err[TaskSendError]:
    code = TaskSendErrorCode.VALIDATION_FAILED
    return Err(TaskSendError(code, message, retryable=False, exception=error))


def _enqueue_failed(row: NewTask, error: BaseException) -> Err[TaskSendError]:
    return Err(
        TaskSendError(
            TaskSendErrorCode.ENQUEUE_FAILED,
            describe(error),
            is_connection_failure(error),
            row.id,
            payload_of(row),
            error,
        )
    )
