"""A real PostgreSQL for development, which all processes of a project share.

It starts on first use and stops by itself when idle. In production, set a database URL instead.
"""

from horsies.embedded_postgres.binaries import is_available
from horsies.embedded_postgres.server import (
    EmbeddedServer,
    ServerStatus,
    acquire,
    psql_program,
    reset,
    status,
    stop,
)

__all__ = [
    "EmbeddedServer",
    "ServerStatus",
    "acquire",
    "is_available",
    "psql_program",
    "reset",
    "status",
    "stop",
]
