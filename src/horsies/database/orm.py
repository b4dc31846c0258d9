"""SQLAlchemy sessions on the database of a broker, only for users who have SQLAlchemy installed."""

from typing import Any

from horsies.codes import ErrorCode
from horsies.database.database import Database
from horsies.errors import ConfigurationError


def make_session_factory(database: Database) -> Any:
    """An `async_sessionmaker` on the same database and schema."""
    try:
        from sqlalchemy import NullPool
        from sqlalchemy.ext.asyncio import async_sessionmaker, create_async_engine
    except ImportError as error:
        raise ConfigurationError(
            "session_factory needs SQLAlchemy, which is not installed",
            ErrorCode.BROKER_INIT_FAILED,
            help_text="pip install 'horsies[sqlalchemy]'",
        ) from error

    async def connect(**_: Any) -> Any:
        connection = await database.address.connect_async("horsies session")
        await connection.set_autocommit(False)
        return connection

    # No pool: a broker may be used from several event loops, a pooled connection from one only.
    engine = create_async_engine("postgresql+psycopg://", async_creator=connect, poolclass=NullPool)
    return async_sessionmaker(engine, expire_on_commit=False)
