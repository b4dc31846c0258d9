"""One filled database for all tests that only look at it or change tasks of their own."""

import asyncio
from collections.abc import Iterator
from typing import NamedTuple

import pytest

from horsies import Horsies
from support import cluster
from support.database import Database, connect
from support.web import fill, make_shop


class Shop(NamedTuple):
    app: Horsies
    db: Database
    ids: dict[str, str]


@pytest.fixture(scope="package")
def shop(server: cluster.Server, migrated_template: str) -> Iterator[Shop]:
    """An app on a database with tasks in all states."""
    with server.temporary_database(template=migrated_template) as url:
        app, db = make_shop(url), connect(url)
        yield Shop(app, db, asyncio.run(fill(app, db)))
        db.connection.close()
        app.close()


@pytest.fixture
def app(shop: Shop) -> Horsies:
    return shop.app


@pytest.fixture
def db(shop: Shop) -> Database:
    return shop.db
