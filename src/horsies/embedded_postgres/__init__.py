"""A real PostgreSQL for development, started on first use, shared by a project's processes.

It stops by itself when nobody uses it. Production gives a database URL instead.
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
