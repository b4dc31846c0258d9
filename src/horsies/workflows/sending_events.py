"""Sends events to workflows: stored, so that one that comes early is kept."""

from typing import Any, Protocol

from horsies.codec.annotated import codec_for
from horsies.codec.shapes import SerializationError
from horsies.codes import BrokerErrorCode
from horsies.database.database import Database
from horsies.database.operation import FAILURES, Operation, operation_error
from horsies.database.savepoint import run_in_savepoint, run_in_savepoint_async
from horsies.database.statement import Scalar
from horsies.database.user_connection import UnusableConnectionError
from horsies.result import Err, Ok, Result
from horsies.result.broker import BrokerOperationError, BrokerResult
from horsies.workflows.events import EventRegistry
from horsies.workflows.nodes import is_short_text
from horsies.workflows.statements import store_event


class _EventBroker(Protocol):
    @property
    def database(self) -> Database: ...


class EventApp(Protocol):
    """The part of an app that sending an event needs."""

    @property
    def events(self) -> EventRegistry: ...
    def get_broker(self) -> _EventBroker: ...


def send_event(
    app: EventApp, name: str, key: str, payload: object, *, connection: Any = None
) -> BrokerResult[None]:
    """Store an event, in the user's transaction if there is one; failures are values."""
    prepared = _prepare(app, name, key, payload)
    if isinstance(prepared, Err):
        return prepared
    operation, database = prepared.ok_value, app.get_broker().database
    if connection is None:
        return database.perform(operation)
    try:
        database.ensure_schema()
    except FAILURES as error:
        return Err(_failure(error))
    done = run_in_savepoint(connection, [operation.statement], database.schema, "send_event")
    return done.map(lambda _: None).map_err(_failure)


async def send_event_async(
    app: EventApp, name: str, key: str, payload: object, *, connection: Any = None
) -> BrokerResult[None]:
    """The awaitable twin of `send_event`."""
    prepared = _prepare(app, name, key, payload)
    if isinstance(prepared, Err):
        return prepared
    operation, database = prepared.ok_value, app.get_broker().database
    if connection is None:
        return await database.perform_async(operation)
    try:
        await database.ensure_schema_async()
    except FAILURES as error:
        return Err(_failure(error))
    statements = [operation.statement]
    done = await run_in_savepoint_async(connection, statements, database.schema, "send_event")
    return done.map(lambda _: None).map_err(_failure)


def _prepare(
    app: EventApp, name: str, key: str, payload: object
) -> Result[Operation[Scalar, None], BrokerOperationError]:
    event = app.events.by_name.get(name)
    if event is None:
        known = ", ".join(sorted(app.events.by_name)) or "none"
        return _refusal(f"no event {name!r} is declared: app.event(name, type); known: {known}")
    if not is_short_text(key):
        return _refusal(f"an event needs a key of 1 to 255 characters, got {key!r}")
    try:
        text = codec_for(event.payload_type).encode(payload)
    except SerializationError as error:
        return _refusal(f"the payload of event {name!r} does not fit its type: {error}")
    statement = store_event(name, key, text)
    return Ok(Operation(statement, lambda _: None, BrokerErrorCode.ENQUEUE_FAILED))


def _failure(error: BaseException) -> BrokerOperationError:
    if isinstance(error, (UnusableConnectionError, *FAILURES)):
        return operation_error(BrokerErrorCode.ENQUEUE_FAILED, error)
    return BrokerOperationError(BrokerErrorCode.ENQUEUE_FAILED, str(error), False, error)


def _refusal(message: str) -> Err[BrokerOperationError]:
    error = BrokerOperationError(BrokerErrorCode.ENQUEUE_FAILED, message, retryable=False)
    return Err(error)
