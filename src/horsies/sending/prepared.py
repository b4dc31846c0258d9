"""A prepared send: all that does not depend on the arguments, worked out once per task and options.

It turns arguments into a row, hands the row to the enqueuer and the answer to the caller; every
failure is a value.
"""

import asyncio
import logging
import math
import time
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from datetime import datetime
from typing import Any, Protocol, TypeAlias, TypeVar

from horsies.clock import utc_now
from horsies.codec.signature import byte_count
from horsies.codes import TaskSendErrorCode
from horsies.config import AppConfig
from horsies.database.database import Database
from horsies.database.operation import describe
from horsies.database.statement import Receipt
from horsies.errors import HorsiesError
from horsies.ids import new_id
from horsies.observability.hooks import EventHooks
from horsies.observability.traces import Tracing
from horsies.result import Err, Ok, Result
from horsies.results.handle import HandleBroker, TaskHandle
from horsies.sending import transaction
from horsies.sending.enqueuer import Enqueuer, EnqueueResult, not_stored, read_receipt
from horsies.sending.errors import TaskSendError, TaskSendResult
from horsies.sending.fingerprint import Fingerprint
from horsies.sending.options import SendOptions, check_options, stored_options
from horsies.sending.rows import NewTask, option_columns
from horsies.sending.telling import tell_enqueued, tell_enqueued_async
from horsies.tasks.definition import TaskDefinition
from horsies.tasks.queues import resolve_queue

_logger = logging.getLogger("horsies.send")
T = TypeVar("T")
_UNTRACED = nullcontext()
_RESEND_AFTER_S = (0.2, 0.4, 0.8)
AnyHandle: TypeAlias = TaskHandle[Any]  # the task function around it knows the type


class SendingBroker(HandleBroker, Protocol):
    """The part of a broker that sending needs."""

    @property
    def database(self) -> Database: ...
    @property
    def enqueuer(self) -> Enqueuer: ...
    @property
    def stores_in_transactions(self) -> bool: ...


class SendingApp(Protocol):
    """The part of an app that sending needs."""

    @property
    def config(self) -> AppConfig: ...
    @property
    def on(self) -> EventHooks: ...
    @property
    def tracing(self) -> Tracing | None: ...
    def get_broker(self) -> SendingBroker: ...
    def are_sends_suppressed(self) -> bool: ...


class PreparedSend:
    """Sends one task with one set of options; options that cannot be are refused at each send."""

    def __init__(self, app: SendingApp, definition: TaskDefinition, options: SendOptions) -> None:
        self.app = app
        self.options = options
        self._definition = definition
        self._problem: Err[TaskSendError] | None = None
        self._has_warned = False
        self._is_checked = False
        try:
            self._prepare()
        except HorsiesError as error:
            self._problem = refused(describe(error), error)
        except ValueError as error:
            self._problem = refused(str(error))

    def _prepare(self) -> None:
        definition, options = self._definition, self.options
        self._queue_name, priority = definition.queue_name, definition.priority
        if options.queue_name is not None:
            queue = resolve_queue(definition.config, options.queue_name)
            self._queue_name, priority = queue.name, queue.priority
        self._priority = priority if options.priority is None else options.priority
        self._delay_s = check_options(options)
        self._task_options = stored_options(definition, options)
        self._columns = option_columns(self._task_options)
        self._fingerprint = Fingerprint(
            task_name=definition.name,
            queue_name=self._queue_name,
            priority=self._priority,
            good_until=options.good_until,
            enqueue_delay_seconds=self._delay_s,
            task_options=self._task_options,
        )
        config = definition.config
        limits = (config.payload_warn_bytes, config.payload_max_bytes)
        self._unremarkable_bytes = min((n for n in limits if n is not None), default=math.inf)

    @property
    def task_name(self) -> str:
        return self._definition.name

    @property
    def queue_name(self) -> str:
        return self._queue_name

    @property
    def problem(self) -> Err[TaskSendError] | None:
        """Why there can be no row with these options, whatever the arguments."""
        return self._problem

    @property
    def is_in_transaction(self) -> bool:
        """Whether its rows are stored by a transaction of the caller's."""
        return self.options.connection is not None

    @property
    def is_plain(self) -> bool:
        """Whether its rows can be copied as they are: new, due at once, holding no key."""
        options = self.options
        return not (
            options.connection is not None
            or options.unique_key
            or self._definition.unique_key_of
            or options.tags
            or options.run_at
            or options.delay is not None
        )

    def for_call(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> "PreparedSend":
        """This send, or one with the unique key that the task makes of these arguments."""
        make_key = self._definition.unique_key_of
        if make_key is None or self.options.unique_key is not None:
            return self
        key: Any = "?"
        problem: str | None = None
        try:
            key = make_key(*args, **kwargs)
        except Exception as error:  # noqa: BLE001  # user code: the function for the key
            problem = f"unique_key raised {type(error).__name__}: {error}"
        made = PreparedSend(self.app, self._definition, replace(self.options, unique_key=key))
        if problem is not None and self._definition.signature.bind_problem(args, kwargs) is None:
            made._problem = refused(problem)
        return made

    def send(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> TaskSendResult[AnyHandle]:
        if self._definition.unique_key_of is not None and self.options.unique_key is None:
            return self.for_call(args, kwargs).send(args, kwargs)
        with self.traced():
            result = told(self._definition.name, self._send(args, kwargs))
        tell_enqueued(self.app.on, self, result, is_in_transaction=self.is_in_transaction)
        return result

    def _send(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> TaskSendResult[AnyHandle]:
        prepared = self.refusal() or self.row(new_id(), args, kwargs, utc_now())
        if isinstance(prepared, Err):
            return prepared
        row = prepared.ok_value
        if self.options.connection is None:
            return enqueue(self.app, row)
        broker = self.app.get_broker()
        if not broker.stores_in_transactions:
            return enqueue(self.app, row)
        stored = transaction.enqueue(broker.database, self.options.connection, [row])
        return self._answer(row, stored)

    async def send_async(
        self, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> TaskSendResult[AnyHandle]:
        if self._definition.unique_key_of is not None and self.options.unique_key is None:
            return await self.for_call(args, kwargs).send_async(args, kwargs)
        with self.traced():
            result = told(self._definition.name, await self._send_async(args, kwargs))
        is_in_transaction = self.is_in_transaction
        await tell_enqueued_async(self.app.on, self, result, is_in_transaction=is_in_transaction)
        return result

    async def _send_async(
        self, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> TaskSendResult[AnyHandle]:
        prepared = self.refusal() or self.row(new_id(), args, kwargs, utc_now())
        if isinstance(prepared, Err):
            return prepared
        row = prepared.ok_value
        if self.options.connection is None:
            return await enqueue_async(self.app, row)
        broker = self.app.get_broker()
        if not broker.stores_in_transactions:
            return await enqueue_async(self.app, row)
        stored = await transaction.enqueue_async(broker.database, self.options.connection, [row])
        return self._answer(row, stored)

    def traced(self) -> AbstractContextManager[object]:
        """A span around a send, if the app is traced."""
        tracing = self.app.tracing
        if tracing is None or self._problem is not None:
            return _UNTRACED
        return tracing.sending(f"send {self._definition.name}", self._queue_name)

    def refusal(self) -> Err[TaskSendError] | None:
        """Why nothing can be sent, whatever the arguments."""
        return suppression(self.app) or self._problem or self._unusable()

    def _unusable(self) -> Err[TaskSendError] | None:
        """Refuse arguments that cannot be checked; by the first send annotations are complete."""
        if self._is_checked:
            return None
        problems = self._definition.problems()
        self._is_checked = not problems
        if not problems:
            return None
        first = problems[0]
        message = f"{first.message}: {'; '.join(first.notes)}"
        return refused(f"{message}; {first.help_text}", first)

    def row(
        self, task_id: str, args: tuple[Any, ...], kwargs: dict[str, Any], sent_at: datetime
    ) -> Result[NewTask, TaskSendError]:
        """The row to store for these arguments: checked, encoded, not too large."""
        encoded = self._definition.signature.encode(args, kwargs)
        if isinstance(encoded, Err):
            return refused(str(encoded.err_value), encoded.err_value)
        args_json, kwargs_json = encoded.ok_value
        size = byte_count(args_json or "") + byte_count(kwargs_json or "")
        if size > self._unremarkable_bytes:
            # Only where it is told: naming the largest argument encodes all of them once more.
            signature = self._definition.signature
            too_large = self._check_size(size, lambda: signature.largest(args, kwargs))
            if too_large is not None:
                return too_large
        return Ok(
            NewTask(
                id=task_id,
                task_name=self._definition.name,
                queue_name=self._queue_name,
                priority=self._priority,
                args=args_json,
                kwargs=kwargs_json,
                sent_at=sent_at,
                enqueued_at=self.options.run_at,
                delay_s=self._delay_s,
                good_until=self.options.good_until,
                max_retries=self._columns.max_retries,
                task_options=self._task_options
                if self.app.tracing is None
                else self.app.tracing.carried(self._task_options),
                enqueue_sha=self._fingerprint.digest(args_json, kwargs_json, sent_at),
                unique_key=self._columns.unique_key,
                unique_stored=self._columns.unique_stored,
                tags=self._columns.tags,
            )
        )

    def _answer(
        self, row: NewTask, stored: Result[list[Receipt], TaskSendError]
    ) -> TaskSendResult[AnyHandle]:
        receipt = stored.and_then(lambda receipts: read_receipt(row, receipts[0]))
        return receipt.map(lambda got: handle_of(self.app, got))

    def _check_size(self, size: int, largest: Callable[[], str]) -> Err[TaskSendError] | None:
        config, task_name = self._definition.config, self._definition.name
        if config.payload_max_bytes is not None and size > config.payload_max_bytes:
            limit = config.payload_max_bytes
            message = (
                f"arguments of {task_name!r} take {size} bytes, most of them {largest()!r}; "
                f"payload_max_bytes={limit}"
            )
            return Err(TaskSendError(TaskSendErrorCode.PAYLOAD_TOO_LARGE, message, retryable=False))
        warn_at = config.payload_warn_bytes
        if warn_at is not None and size > warn_at and not self._has_warned:
            self._has_warned = True
            _logger.warning(
                "arguments of task %s take %d bytes, most of them %r: payload_warn_bytes=%d; "
                "store large values elsewhere and send a reference",
                task_name,
                size,
                largest(),
                warn_at,
            )
        return None


def told(task_name: str, result: TaskSendResult[T]) -> TaskSendResult[T]:
    """Log a failed send: nobody may look at its result."""
    if isinstance(result, Err):
        is_wanted = result.err_value.code is TaskSendErrorCode.SEND_SUPPRESSED
        level = logging.DEBUG if is_wanted else logging.WARNING
        _logger.log(level, "task %s was not sent: %s", task_name, result.err_value)
    return result


def enqueue(app: SendingApp, row: NewTask) -> TaskSendResult[AnyHandle]:
    """Store a row, again after a transient failure if the app wants that."""
    pauses = _RESEND_AFTER_S if app.config.resend_on_transient_err else ()
    for pause_s in (*pauses, None):
        enqueuer = _enqueuer(app, row)
        stored = enqueuer if isinstance(enqueuer, Err) else enqueuer.ok_value.enqueue(row)
        if pause_s is None or not _is_worth_resending(stored):
            return stored.map(lambda receipt: handle_of(app, receipt))
        time.sleep(pause_s)
    raise AssertionError("unreachable: the last pause is None")


async def enqueue_async(app: SendingApp, row: NewTask) -> TaskSendResult[AnyHandle]:
    """The awaitable twin of `enqueue`."""
    pauses = _RESEND_AFTER_S if app.config.resend_on_transient_err else ()
    for pause_s in (*pauses, None):
        enqueuer = _enqueuer(app, row)
        stored = (
            enqueuer if isinstance(enqueuer, Err) else await enqueuer.ok_value.enqueue_async(row)
        )
        if pause_s is None or not _is_worth_resending(stored):
            return stored.map(lambda receipt: handle_of(app, receipt))
        await asyncio.sleep(pause_s)
    raise AssertionError("unreachable: the last pause is None")


def handle_of(app: SendingApp, receipt: Receipt) -> AnyHandle:
    is_new = receipt.outcome == "created"
    return TaskHandle(receipt.task_id, app, broker_mode=True, created=is_new)


def suppression(app: SendingApp) -> Err[TaskSendError] | None:
    """The refusal of every send while sends are suppressed."""
    if not app.are_sends_suppressed():
        return None
    message = "sends are suppressed here: during imports, or by HORSIES_SUPPRESS_SENDS=1"
    return Err(TaskSendError(TaskSendErrorCode.SEND_SUPPRESSED, message, retryable=False))


def refused(message: str, error: BaseException | None = None) -> Err[TaskSendError]:
    code = TaskSendErrorCode.VALIDATION_FAILED
    return Err(TaskSendError(code, message, retryable=False, exception=error))


def _enqueuer(app: SendingApp, row: NewTask) -> Result[Enqueuer, TaskSendError]:
    try:
        return Ok(app.get_broker().enqueuer)
    except HorsiesError as error:
        return Err(not_stored(error, row))


def _is_worth_resending(stored: EnqueueResult) -> bool:
    return isinstance(stored, Err) and stored.err_value.retryable
