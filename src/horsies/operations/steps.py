"""Operations of several statements: described once, performed by blocking and by async callers."""

from collections.abc import Generator
from typing import Any, Protocol, TypeVar

from horsies.codes import BrokerErrorCode
from horsies.database.database import Database
from horsies.database.operation import FAILURES, Operation, operation_error
from horsies.database.statement import Statement
from horsies.result import Err, Ok
from horsies.result.broker import BrokerOperationError, BrokerResult

T = TypeVar("T")
Row = TypeVar("Row")
# Yields statements, is sent their rows, returns the answer.
Steps = Generator[Statement[Any], Any, T]


class Runner(Protocol):
    """Where blocking steps are performed: a `Database`, or a connection of the caller's."""

    def ensure_schema(self) -> None: ...
    def run(self, statement: Statement[Row], /) -> list[Row]: ...


class RefusedError(Exception):
    """What was asked for makes no sense here; the text tells the caller why."""


def performed(operation: Operation[Any, T]) -> Steps[T]:
    """An operation as one of several steps."""
    return operation.read((yield operation.statement))


def perform(database: Runner, steps: Steps[T], failure: BrokerErrorCode) -> BrokerResult[T]:
    """Perform all steps; failures are values."""
    try:
        database.ensure_schema()
        statement = next(steps)
        while True:
            statement = steps.send(database.run(statement))
    except StopIteration as end:
        return Ok(end.value)
    except (RefusedError, *FAILURES) as error:
        return Err(_as_value(failure, error))


async def perform_async(
    database: Database, steps: Steps[T], failure: BrokerErrorCode
) -> BrokerResult[T]:
    try:
        await database.ensure_schema_async()
        statement = next(steps)
        while True:
            statement = steps.send(await database.run_async(statement))
    except StopIteration as end:
        return Ok(end.value)
    except (RefusedError, *FAILURES) as error:
        return Err(_as_value(failure, error))


def _as_value(failure: BrokerErrorCode, error: BaseException) -> BrokerOperationError:
    if isinstance(error, RefusedError):
        return BrokerOperationError(failure, str(error), retryable=False)
    return operation_error(failure, error)
