"""One verdict on database errors, by SQLSTATE class: retry, the row's own fault, or a bug.

`horsies_verdict` in SQL keeps the same list; `tests/sql/test_verdict.py` compares the two. The
driver's exception classes do not follow PostgreSQL's, so that nothing here asks for them.
"""

from enum import Enum

import psycopg


class Verdict(Enum):
    """What an error says about repeating the statement that met it."""

    RETRY = "retry"  # the server, the network or another session: the same statement may succeed
    ROW = "row"  # a value of one row: the statement succeeds without that row
    BUG = "bug"  # the statement, the schema or the rights: repeating does not help


# Connection trouble, idle and transaction timeouts, rollbacks, resources, locks, shutdowns, I/O.
_RETRY = ("08", "25006", "25P03", "25P04", "40", "53", "55", "57", "58")
# Cardinality, data, constraints, limits that a large or deep value exceeds.
_ROW = ("21", "22", "23", "54")
# Messages that make an error of another class worth a retry, by its SQLSTATE.
_PASSING = {
    "0A000": "cached plan",  # a migration has changed what a prepared statement returns
    "54000": "NOTIFY",  # the queue of notifications is full
    "XX000": "cache lookup failed for function",  # a migration has just replaced it
}
# The session is gone, or this server takes no writes: another connection may do better.
_UNREACHABLE = ("08", "25006", "25P03", "25P04", "53300", "57P01", "57P02", "57P03", "57P05")
# What a refused log-in says; libpq gives no SQLSTATE for it.
_REFUSALS = ("authentication failed", "does not exist", "no pg_hba.conf entry", "permission denied")


def judge_state(sqlstate: str, message: str) -> Verdict:
    """The verdict on an error that the server reported."""
    if sqlstate in _PASSING and _PASSING[sqlstate] in message:
        return Verdict.RETRY
    if sqlstate.startswith(_RETRY):
        return Verdict.RETRY
    return Verdict.ROW if sqlstate.startswith(_ROW) else Verdict.BUG


def judge_error(error: BaseException) -> Verdict:
    """The verdict on an error that performing a statement raised."""
    if isinstance(error, psycopg.Error) and error.sqlstate is not None:
        return judge_state(error.sqlstate, str(error))
    if is_connection_failure(error):
        return Verdict.RETRY
    if isinstance(error, (psycopg.DataError, UnicodeError)):
        return Verdict.ROW  # text that the driver could not encode
    return Verdict.BUG


def is_transient(error: BaseException) -> bool:
    """Whether a service should back off and retry: the database is away, or busy for now."""
    return judge_error(error) is Verdict.RETRY


def is_connection_failure(error: BaseException) -> bool:
    """Whether the database was unreachable, so that the same call may succeed later."""
    if isinstance(error, psycopg.Error) and error.sqlstate is not None:
        return error.sqlstate.startswith(_UNREACHABLE)
    if isinstance(error, psycopg.OperationalError):
        return not any(refusal in str(error) for refusal in _REFUSALS)
    return isinstance(error, (psycopg.InterfaceError, TimeoutError, ConnectionError))


def is_outdated_plan(error: BaseException) -> bool:
    """Whether a migration has changed what a prepared statement returns; a new session knows."""
    sqlstate = error.sqlstate if isinstance(error, psycopg.Error) else None
    return sqlstate == "0A000" and _PASSING["0A000"] in str(error)
