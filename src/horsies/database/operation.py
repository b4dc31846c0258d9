"""An operation as its callers see it: a statement in, a value or its failure out."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

import psycopg

from horsies.codes import BrokerErrorCode
from horsies.database.statement import Statement
from horsies.database.verdict import is_connection_failure
from horsies.errors import HorsiesError
from horsies.result.broker import BrokerOperationError

Row = TypeVar("Row")
T = TypeVar("T")
U = TypeVar("U")

# What may go wrong on the way to the database; anything else is a bug and propagates.
# UnicodeError: text with lone surrogates has no bytes to send.
FAILURES = (psycopg.Error, OSError, HorsiesError, TimeoutError, UnicodeError)


@dataclass(frozen=True, slots=True)
class Operation(Generic[Row, T]):
    """A statement, how to read its rows, and the code under which it fails."""

    statement: Statement[Row]
    read: Callable[[list[Row]], T]
    failure: BrokerErrorCode

    def map(self, function: Callable[[T], U]) -> "Operation[Row, U]":
        """The same operation with its value passed through a function."""
        return Operation(self.statement, lambda rows: function(self.read(rows)), self.failure)


def operation_error(code: BrokerErrorCode, error: BaseException) -> BrokerOperationError:
    """An exception on the way to the database, as the value callers get."""
    return BrokerOperationError(code, describe(error), is_connection_failure(error), error)


def describe(error: BaseException) -> str:
    """One text for people: what happened and, when we know it, the cure."""
    if isinstance(error, HorsiesError):
        return error.message if error.help_text is None else f"{error.message}; {error.help_text}"
    return f"{type(error).__name__}: {error}"
