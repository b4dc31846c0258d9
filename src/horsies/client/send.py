"""From a call's arguments to a stored row: checked, encoded, enqueued; every failure is a value."""

import asyncio
import logging
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Protocol, TypeAlias

from pydantic_core import to_json

from horsies.broker.enqueue import Answer
from horsies.broker.postgres import PostgresBroker
from horsies.broker.session import describe
from horsies.client import transaction
from horsies.client.handle import TaskHandle
from horsies.client.options import SendOptions, check_options, stored_options
from horsies.client.types import (
    TaskSendError,
    TaskSendErrorCode,
    TaskSendPayload,
    TaskSendResult,
)
from horsies.clock import utc_now
from horsies.codec.fingerprint import enqueue_fingerprint
from horsies.config import AppConfig
from horsies.database.rows import NewTask, Receipt
from horsies.database.statement import is_connection_failure
from horsies.errors import HorsiesError
from horsies.ids import new_id
from horsies.result import Err, Ok, Result
from horsies.tasks.definition import TaskDefinition
from horsies.tasks.options import parse_task_options
from horsies.tasks.queues import resolve_queue

_logger = logging.getLogger("horsies.send")
_RESEND_AFTER_S = (0.2, 0.4, 0.8)
Arguments: TypeAlias = tuple[Any, ...] | Mapping[str, Any]


class SendingApp(Protocol):
    """The part of an app that sending needs."""

    @property
    def config(self) -> AppConfig: ...
    def get_broker(self) -> PostgresBroker: ...
    def are_sends_suppressed(self) -> bool: ...


@dataclass(frozen=True, slots=True)
class Prepared:
    """A task about to be enqueued."""

    task_id: str
    payload: TaskSendPayload
    row: NewTask


class Sender:
    """Sends tasks for an app."""

    def __init__(self, app: SendingApp) -> None:
        self._app = app
        self._warned: set[str] = set()

    @property
    def is_suppressed(self) -> bool:
        return self._app.are_sends_suppressed()

    def send(
        self, definition: TaskDefinition, options: SendOptions, args: tuple[Any, ...], kwargs: Any
    ) -> TaskSendResult[TaskHandle[Any]]:
        prepared = self.prepare(definition, options, args, kwargs)
        if isinstance(prepared, Err):
            return prepared
        if options.connection is not None:
            return self._send_in_transaction(prepared.ok_value, options.connection)
        return self.enqueue(prepared.ok_value)

    async def send_async(
        self, definition: TaskDefinition, options: SendOptions, args: tuple[Any, ...], kwargs: Any
    ) -> TaskSendResult[TaskHandle[Any]]:
        prepared = self.prepare(definition, options, args, kwargs)
        if isinstance(prepared, Err):
            return prepared
        if options.connection is not None:
            return await self._send_in_transaction_async(prepared.ok_value, options.connection)
        return await self.enqueue_async(prepared.ok_value)

    def enqueue(self, prepared: Prepared) -> TaskSendResult[TaskHandle[Any]]:
        """Store a prepared task, again after a passing failure if the app wants that."""
        pauses = _RESEND_AFTER_S if self._app.config.resend_on_transient_err else ()
        for pause_s in (*pauses, None):
            result = self._enqueue_once(prepared)
            if pause_s is None or not _is_transient(result):
                return result
            time.sleep(pause_s)
        raise AssertionError("unreachable: the last pause is None")

    def _enqueue_once(self, prepared: Prepared) -> TaskSendResult[TaskHandle[Any]]:
        try:
            enqueuer = self._app.get_broker().enqueuer
        except HorsiesError as error:
            return _enqueue_failed(prepared, error)
        return self._answer(prepared, enqueuer.enqueue([prepared.row])[0])

    async def enqueue_async(self, prepared: Prepared) -> TaskSendResult[TaskHandle[Any]]:
        pauses = _RESEND_AFTER_S if self._app.config.resend_on_transient_err else ()
        for pause_s in (*pauses, None):
            try:
                enqueuer = self._app.get_broker().enqueuer
            except HorsiesError as error:
                return _enqueue_failed(prepared, error)
            result = self._answer(prepared, await enqueuer.enqueue_async(prepared.row))
            if pause_s is None or not _is_transient(result):
                return result
            await asyncio.sleep(pause_s)
        raise AssertionError("unreachable: the last pause is None")

    def send_many(
        self, definition: TaskDefinition, options: SendOptions, calls: Iterable[Arguments]
    ) -> TaskSendResult[list[TaskHandle[Any]]]:
        """Store many tasks in one transaction: all of them or, with the first problem, none."""
        prepared = self._prepare_many(definition, options, calls)
        if isinstance(prepared, Err) or not prepared.ok_value:
            return prepared.map(lambda _: [])
        try:
            receipts = self._store_many([one.row for one in prepared.ok_value], options)
        except transaction.WrongConnectionError as error:
            return _refused(str(error))
        except Exception as error:  # noqa: BLE001 - the user's own driver raises what it likes
            return _many_failed(error)
        return self._many_answers(prepared.ok_value, receipts)

    async def send_many_async(
        self, definition: TaskDefinition, options: SendOptions, calls: Iterable[Arguments]
    ) -> TaskSendResult[list[TaskHandle[Any]]]:
        if options.connection is None:
            return await asyncio.to_thread(self.send_many, definition, options, list(calls))
        prepared = self._prepare_many(definition, options, calls)
        if isinstance(prepared, Err) or not prepared.ok_value:
            return prepared.map(lambda _: [])
        rows = [one.row for one in prepared.ok_value]
        try:
            session = self._app.get_broker().session
            await session.ensure_schema_async()
            receipts = await transaction.enqueue_async(options.connection, session.schema, rows)
        except transaction.WrongConnectionError as error:
            return _refused(str(error))
        except Exception as error:  # noqa: BLE001 - the user's own driver raises what it likes
            return _many_failed(error)
        return self._many_answers(prepared.ok_value, receipts)

    def _prepare_many(
        self, definition: TaskDefinition, options: SendOptions, calls: Iterable[Any]
    ) -> Result[list[Prepared], TaskSendError]:
        prepared: list[Prepared] = []
        for position, call in enumerate(calls):
            if not isinstance(call, (tuple, list, Mapping)):
                kind = type(call).__name__
                return _refused(
                    f"call {position}: give a tuple or mapping of arguments, not {kind}"
                )
            args, kwargs = ((), dict(call)) if isinstance(call, Mapping) else (tuple(call), {})
            one = self.prepare(definition, options, args, kwargs)
            if isinstance(one, Err):
                error = one.err_value
                return Err(replace(error, message=f"call {position}: {error.message}"))
            prepared.append(one.ok_value)
        return Ok(prepared)

    def _many_answers(
        self, prepared: list[Prepared], receipts: list[Receipt]
    ) -> TaskSendResult[list[TaskHandle[Any]]]:
        handles: list[TaskHandle[Any]] = []
        for one, receipt in zip(prepared, receipts, strict=True):
            answer = self._answer(one, receipt)
            if isinstance(answer, Err):
                return answer
            handles.append(answer.ok_value)
        return Ok(handles)

    def _store_many(self, rows: list[NewTask], options: SendOptions) -> list[Receipt]:
        broker = self._app.get_broker()
        if options.connection is not None:
            broker.session.ensure_schema()
            return transaction.enqueue(options.connection, broker.session.schema, rows)
        is_plain = not (
            options.unique_key or options.tags or options.run_at or options.delay is not None
        )
        if is_plain:
            broker.enqueuer.copy(rows)
            return [Receipt(row.id, "created") for row in rows]
        return broker.enqueuer.enqueue_all(rows)

    def _send_in_transaction(
        self, prepared: Prepared, connection: Any
    ) -> TaskSendResult[TaskHandle[Any]]:
        try:
            session = self._app.get_broker().session
            session.ensure_schema()
            receipt = transaction.enqueue(connection, session.schema, [prepared.row])[0]
        except transaction.WrongConnectionError as error:
            return _refused(str(error))
        except Exception as error:  # noqa: BLE001 - the user's own driver raises what it likes
            return _enqueue_failed(prepared, error)
        return self._answer(prepared, receipt)

    async def _send_in_transaction_async(
        self, prepared: Prepared, connection: Any
    ) -> TaskSendResult[TaskHandle[Any]]:
        try:
            session = self._app.get_broker().session
            await session.ensure_schema_async()
            receipts = await transaction.enqueue_async(connection, session.schema, [prepared.row])
        except transaction.WrongConnectionError as error:
            return _refused(str(error))
        except Exception as error:  # noqa: BLE001 - the user's own driver raises what it likes
            return _enqueue_failed(prepared, error)
        return self._answer(prepared, receipts[0])

    def prepare(
        self, definition: TaskDefinition, options: SendOptions, args: tuple[Any, ...], kwargs: Any
    ) -> Result[Prepared, TaskSendError]:
        """Check and encode; nothing is written."""
        if self._app.are_sends_suppressed():
            message = "sends are suppressed here: during imports, or by HORSIES_SUPPRESS_SENDS=1"
            return Err(TaskSendError(TaskSendErrorCode.SEND_SUPPRESSED, message, retryable=False))
        try:
            queue_name, priority = self._place(definition, options)
            delay_s = check_options(options)
        except HorsiesError as error:
            return _refused(describe(error), error)
        except ValueError as error:
            return _refused(str(error))
        encoded = definition.encode_arguments(args, kwargs)
        if isinstance(encoded, Err):
            return _refused(str(encoded.err_value), encoded.err_value)
        arguments = encoded.ok_value
        size = len(arguments.args_json or "") + len(arguments.kwargs_json or "")
        if (refusal := self._check_size(definition.name, size)) is not None:
            return refusal
        sent_at = utc_now()
        task_options = stored_options(definition, options)
        sha = enqueue_fingerprint(
            task_name=definition.name,
            queue_name=queue_name,
            priority=priority,
            args_json=arguments.args_json,
            kwargs_json=arguments.kwargs_json,
            sent_at=sent_at,
            good_until=options.good_until,
            enqueue_delay_seconds=delay_s,
            task_options=task_options,
        )
        payload = TaskSendPayload(
            definition.name, queue_name, priority, arguments.args_json, arguments.kwargs_json,
            sent_at, options.good_until, delay_s, task_options, sha, options.run_at,
        )  # fmt: skip
        return Ok(make_prepared(new_id(), payload))

    def _place(self, definition: TaskDefinition, options: SendOptions) -> tuple[str, int]:
        queue_name, priority = definition.queue_name, definition.priority
        if options.queue_name is not None:
            queue = resolve_queue(self._app.config, options.queue_name)
            queue_name, priority = queue.name, queue.priority
        return queue_name, priority if options.priority is None else options.priority

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

    def _answer(self, prepared: Prepared, answer: Answer) -> TaskSendResult[TaskHandle[Any]]:
        if not isinstance(answer, Receipt):
            return _enqueue_failed(prepared, answer)
        if answer.outcome in ("mismatch", "key_mismatch"):
            what = "id" if answer.outcome == "mismatch" else "unique key"
            return Err(
                TaskSendError(
                    TaskSendErrorCode.PAYLOAD_MISMATCH,
                    f"task {answer.task_id} already holds this {what} with another payload",
                    retryable=False,
                    task_id=answer.task_id,
                    payload=prepared.payload,
                )
            )
        if answer.outcome == "freed":
            return _enqueue_failed(prepared, TimeoutError("the unique key kept changing hands"))
        created = answer.outcome == "created"
        return Ok(TaskHandle(answer.task_id, self._app, broker_mode=True, created=created))


def make_prepared(task_id: str, payload: TaskSendPayload) -> Prepared:
    """The row a payload stands for."""
    stored = parse_task_options(payload.task_options)
    row = NewTask(
        task_id, payload.task_name, payload.queue_name, payload.priority, payload.args_json,
        payload.kwargs_json, payload.sent_at, payload.run_at, payload.enqueue_delay_seconds,
        payload.good_until, stored.max_retries, payload.task_options, payload.enqueue_sha,
        stored.unique_key, stored.unique_scope == "stored",
        to_json(stored.tags).decode() if stored.tags else None,
    )  # fmt: skip
    return Prepared(task_id, payload, row)


def _is_transient(result: TaskSendResult[Any]) -> bool:
    return isinstance(result, Err) and result.err_value.retryable


def _many_failed(error: Exception) -> Err[TaskSendError]:
    code, message = TaskSendErrorCode.ENQUEUE_FAILED, describe(error)
    return Err(TaskSendError(code, message, is_connection_failure(error), exception=error))


def _refused(message: str, error: BaseException | None = None) -> Err[TaskSendError]:
    code = TaskSendErrorCode.VALIDATION_FAILED
    return Err(TaskSendError(code, message, retryable=False, exception=error))


def _enqueue_failed(prepared: Prepared, error: BaseException) -> Err[TaskSendError]:
    return Err(
        TaskSendError(
            TaskSendErrorCode.ENQUEUE_FAILED,
            describe(error),
            is_connection_failure(error),
            prepared.task_id,
            prepared.payload,
            error,
        )
    )
