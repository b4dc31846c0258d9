"""Transactions of the user's own, begun with each driver that a user may bring."""

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from contextlib import (
    AbstractAsyncContextManager,
    AbstractContextManager,
    asynccontextmanager,
    contextmanager,
)
from typing import Any, NamedTuple

import asyncpg
import psycopg
from psycopg import AsyncConnection
from sqlalchemy import NullPool, create_engine
from sqlalchemy.ext.asyncio import AsyncSession, create_async_engine
from sqlalchemy.orm import Session, scoped_session, sessionmaker


class Begun(NamedTuple):
    """What users hand over, and how they end it."""

    connection: Any
    commit: Callable[[], object]
    rollback: Callable[[], object]


class BegunAsync(NamedTuple):
    connection: Any
    commit: Callable[[], Awaitable[object]]
    rollback: Callable[[], Awaitable[object]]


Begin = Callable[[str], AbstractContextManager[Begun]]
BeginAsync = Callable[[str], AbstractAsyncContextManager[BegunAsync]]


def alchemy_url(url: str, driver: str) -> str:
    return url.replace("postgresql:", f"postgresql+{driver}:")


def _engine(url: str) -> Any:
    return create_engine(alchemy_url(url, "psycopg"), poolclass=NullPool)


@contextmanager
def _psycopg(url: str) -> Iterator[Begun]:
    with psycopg.connect(url) as connection:
        yield Begun(connection, connection.commit, connection.rollback)


@contextmanager
def _alchemy_connection(url: str) -> Iterator[Begun]:
    with _engine(url).connect() as connection:
        yield Begun(connection, connection.commit, connection.rollback)


@contextmanager
def _alchemy_session(url: str) -> Iterator[Begun]:
    with Session(_engine(url)) as session:
        yield Begun(session, session.commit, session.rollback)


@contextmanager
def _alchemy_scoped_session(url: str) -> Iterator[Begun]:
    session = scoped_session(sessionmaker(_engine(url)))
    yield Begun(session, session.commit, session.rollback)
    session.remove()


@asynccontextmanager
async def _psycopg_async(url: str) -> AsyncIterator[BegunAsync]:
    async with await AsyncConnection.connect(url) as connection:
        yield BegunAsync(connection, connection.commit, connection.rollback)


@asynccontextmanager
async def _asyncpg(url: str) -> AsyncIterator[BegunAsync]:
    connection = await asyncpg.connect(url)
    transaction = connection.transaction()
    await transaction.start()
    yield BegunAsync(connection, transaction.commit, transaction.rollback)
    await connection.close()


@asynccontextmanager
async def _asyncpg_pool(url: str) -> AsyncIterator[BegunAsync]:
    async with asyncpg.create_pool(url, min_size=1, max_size=1) as pool, pool.acquire() as lent:
        transaction = lent.transaction()
        await transaction.start()
        yield BegunAsync(lent, transaction.commit, transaction.rollback)


def _alchemy_connection_async(driver: str) -> BeginAsync:
    @asynccontextmanager
    async def begin(url: str) -> AsyncIterator[BegunAsync]:
        engine = create_async_engine(alchemy_url(url, driver), poolclass=NullPool)
        async with engine.connect() as connection:
            yield BegunAsync(connection, connection.commit, connection.rollback)

    return begin


def _alchemy_session_async(driver: str) -> BeginAsync:
    @asynccontextmanager
    async def begin(url: str) -> AsyncIterator[BegunAsync]:
        engine = create_async_engine(alchemy_url(url, driver), poolclass=NullPool)
        async with AsyncSession(engine) as session:
            yield BegunAsync(session, session.commit, session.rollback)

    return begin


BLOCKING: Mapping[str, Begin] = {
    "psycopg": _psycopg,
    "SQLAlchemy connection": _alchemy_connection,
    "SQLAlchemy session": _alchemy_session,
    "SQLAlchemy scoped session": _alchemy_scoped_session,
}
AWAITABLE: Mapping[str, BeginAsync] = {
    "psycopg": _psycopg_async,
    "asyncpg": _asyncpg,
    "asyncpg from a pool": _asyncpg_pool,
    "SQLAlchemy connection, psycopg": _alchemy_connection_async("psycopg"),
    "SQLAlchemy connection, asyncpg": _alchemy_connection_async("asyncpg"),
    "SQLAlchemy session, psycopg": _alchemy_session_async("psycopg"),
    "SQLAlchemy session, asyncpg": _alchemy_session_async("asyncpg"),
}
