"""How to connect: what holds for every session of ours."""

from dataclasses import dataclass
from typing import Any

import psycopg
from psycopg import AsyncConnection, Connection
from psycopg.rows import TupleRow

from horsies.database.echo import AsyncEchoCursor, EchoCursor

_SESSION: dict[str, Any] = {
    "autocommit": True,
    "connect_timeout": 10,
    # A peer that vanished without a word is noticed in about half a minute instead of hours.
    "keepalives_idle": 15,
    "keepalives_interval": 5,
    "keepalives_count": 3,
    "tcp_user_timeout": 30_000,
}


@dataclass(frozen=True, slots=True)
class Address:
    """Where the tables are and how sessions there behave."""

    url: str
    schema: str | None = None
    is_pooled: bool = False  # behind a transaction-mode pooler: nothing may outlive a transaction
    is_echoed: bool = False

    def _arguments(self, name: str) -> dict[str, Any]:
        arguments = {**_SESSION, "application_name": name}
        if self.schema is not None:
            arguments["options"] = f"-c search_path={_option(self.schema)}"
        if self.is_pooled:
            arguments["prepare_threshold"] = None
        return arguments

    def connect(self, name: str = "horsies") -> Connection[TupleRow]:
        connection = psycopg.connect(self.url, **self._arguments(name))
        if self.is_echoed:
            connection.cursor_factory = EchoCursor
        return connection

    async def connect_async(self, name: str = "horsies") -> AsyncConnection[TupleRow]:
        connection = await AsyncConnection.connect(self.url, **self._arguments(name))
        if self.is_echoed:
            connection.cursor_factory = AsyncEchoCursor
        return connection


def _option(schema: str) -> str:
    quoted = '"' + schema.replace('"', '""') + '"'
    return quoted.replace("\\", "\\\\").replace(" ", "\\ ")
