"""A connection per test whose transaction is rolled back, and one whose statements commit."""

from collections.abc import Iterator

import psycopg
import pytest

from support import cluster
from support.database import Database, connect


@pytest.fixture(scope="session")
def shared_database_url(server: cluster.Server, migrated_template: str) -> Iterator[str]:
    """One database for all tests that roll back."""
    with server.temporary_database(template=migrated_template) as url:
        yield url


@pytest.fixture
def db(shared_database_url: str) -> Iterator[Database]:
    with psycopg.connect(shared_database_url) as connection:
        database = Database(connection)
        database.set_now(0)
        yield database
        connection.rollback()


@pytest.fixture
def committing(database_url: str) -> Iterator[Database]:
    """A database of its own, for tests that need a second connection to see."""
    database = connect(database_url)
    database.set_now(0)
    yield database
    database.connection.close()
