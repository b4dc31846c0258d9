"""Cursors that write every statement to the log, for `PostgresConfig(echo=True)`."""

import logging
import sys
from typing import Any

from psycopg import AsyncCursor, Cursor
from psycopg.sql import Composable

_logger = logging.getLogger("horsies.sql")
_SHOWN_CHARACTERS = 1_000


def _echo(query: Any, parameters: Any) -> None:
    if not _logger.hasHandlers():  # as print would: a program without logging still shows it
        _logger.addHandler(logging.StreamHandler(sys.stdout))
    if _logger.getEffectiveLevel() > logging.INFO:
        _logger.setLevel(logging.INFO)
    _logger.info("%s", _on_one_line(query)[:_SHOWN_CHARACTERS])
    if parameters:
        _logger.info("%s", repr(parameters)[:_SHOWN_CHARACTERS])


def _on_one_line(query: Any) -> str:
    if isinstance(query, Composable):
        query = query.as_string(None)
    text = query.decode() if isinstance(query, bytes) else query
    lines = (line.strip() for line in text.splitlines())
    return " ".join(line for line in lines if line and not line.startswith("--"))


class EchoCursor(Cursor[Any]):
    def execute(self, query: Any, params: Any = None, **options: Any) -> "EchoCursor":
        _echo(query, params)
        return super().execute(query, params, **options)

    def copy(self, statement: Any, params: Any = None, **options: Any) -> Any:
        _echo(statement, params)
        return super().copy(statement, params, **options)


class AsyncEchoCursor(AsyncCursor[Any]):
    async def execute(self, query: Any, params: Any = None, **options: Any) -> "AsyncEchoCursor":
        _echo(query, params)
        return await super().execute(query, params, **options)
