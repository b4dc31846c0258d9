"""A busy shop on a stopped clock: one for all tests that only look, and one of their own."""

import time
from collections.abc import Iterator

import pytest

from support import cluster
from support.database import connect
from support.scenes import Shop, plant_stable
from support.terminal_pictures import stop_clock


@pytest.fixture(autouse=True)
def _in_utc(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


def plant(server: cluster.Server, url: str) -> Shop:
    stop_clock(server.url, url)
    db = connect(url)
    return Shop(url, db, plant_stable(db))


@pytest.fixture(scope="module")
def shop(server: cluster.Server, migrated_template: str) -> Iterator[Shop]:
    """Only to look at."""
    with server.temporary_database(template=migrated_template) as url:
        shop = plant(server, url)
        yield shop
        shop.db.connection.close()


@pytest.fixture
def own_shop(server: cluster.Server, database_url: str) -> Iterator[Shop]:
    """To change."""
    shop = plant(server, database_url)
    yield shop
    shop.db.connection.close()
