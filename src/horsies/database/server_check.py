"""Refuses a server that our statements cannot work with, before anything is written."""

from collections.abc import Iterator
from typing import NamedTuple

from psycopg import Connection
from psycopg.rows import TupleRow

from horsies.codes import ErrorCode
from horsies.database.sql_files import query
from horsies.database.statement import Statement, run_blocking
from horsies.errors import ConfigurationError, HorsiesError, ValidationReport

_OLDEST_VERSION = 140_000


class _Facts(NamedTuple):
    version: int
    encoding: str
    date_style: str
    interval_style: str
    isolation: str
    array_nulls: str


def check_server(connection: Connection[TupleRow]) -> None:
    """Raise what is wrong, all at once.

    Our own sessions set what they need; behind a pooler the role's defaults are all there is.
    """
    facts = run_blocking(connection, Statement(query("database", "server_facts"), {}, _Facts))[0]
    report = ValidationReport("database")
    for problem in _problems(facts, connection.info.user):
        report.add(problem)
    if (error := report.to_error()) is not None:
        raise error


def _problems(facts: _Facts, role: str) -> Iterator[HorsiesError]:
    if facts.version < _OLDEST_VERSION:
        yield _refusal(
            f"this server is PostgreSQL {facts.version // 10_000}; 14 or newer is needed",
            "upgrade the server, or use another one",
        )
    if facts.encoding == "SQL_ASCII":
        yield _refusal(
            "the encoding of this database is SQL_ASCII: it would store texts it cannot check",
            "create the database with encoding 'UTF8' template template0",
        )
    wanted = {
        "datestyle": (facts.date_style, "ISO"),
        "intervalstyle": (facts.interval_style, "postgres"),
        "default_transaction_isolation": (facts.isolation, "read committed"),
        "array_nulls": (facts.array_nulls, "on"),
    }
    for setting, (found, needed) in wanted.items():
        if not found.startswith(needed):
            yield _refusal(
                f"sessions here have {setting} = {found!r}; {needed!r} is needed",
                f"alter role \"{role}\" set {setting} = '{needed}', and reconnect the pooler",
            )


def _refusal(message: str, cure: str) -> ConfigurationError:
    return ConfigurationError(message, ErrorCode.BROKER_INIT_FAILED, help_text=cure)
