"""Django's connections around tasks and forks."""

from collections.abc import Iterator
from contextlib import contextmanager

from django.db import connections, reset_queries


def close_connections() -> None:
    """Close the connections of this thread and the pools behind them, unless in a transaction."""
    for connection in connections.all(initialized_only=True):
        if connection.in_atomic_block:
            continue
        connection.close()
        if hasattr(connection, "close_pool"):
            connection.close_pool()


@contextmanager
def clean_connections() -> Iterator[None]:
    """As around a request: obsolete connections are closed, the query log is emptied."""
    _close_old_connections()
    try:
        yield
    finally:
        _close_old_connections()
        reset_queries()


def _close_old_connections() -> None:
    """Leave those alone that are in a transaction: a test's, in which tasks run inline."""
    for connection in connections.all(initialized_only=True):
        if not connection.in_atomic_block:
            connection.close_if_unusable_or_obsolete()
