"""Apps on a test database, and workers inside the test's own event loop."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

from horsies import Horsies
from horsies.config import AppConfig, PostgresConfig
from horsies.result import Err, Ok, Result
from horsies.worker.settings import WorkerConfig
from horsies.worker.worker import Worker


def make_app(database_url: str, **config: Any) -> Horsies:
    """An app on this database."""
    broker = config.pop("broker", None) or PostgresConfig(database_url=database_url, pool_size=5)
    return Horsies(AppConfig(broker=broker, **config))


@asynccontextmanager
async def working(
    app: Horsies, *, before_start: Callable[[Worker], None] | None = None, **settings: Any
) -> AsyncIterator[Worker]:
    """A worker that serves the app for the length of the block, then drains."""
    settings = {"processes": 1, "threads": 4, **settings}
    worker = Worker(app, WorkerConfig(**settings))
    if before_start is not None:
        before_start(worker)
    running = asyncio.create_task(worker.run(), name="worker under test")
    ready = asyncio.create_task(worker.ready.wait(), name="worker becomes ready")
    await asyncio.wait([running, ready], return_when=asyncio.FIRST_COMPLETED)
    ready.cancel()
    try:
        yield worker
    except BaseException:
        worker.stop()
        worker.stop()
        raise
    else:
        worker.stop()
    finally:
        async with asyncio.timeout(20):
            await running


def good(result: Result[Any, Any]) -> Any:
    """The value of a result that must be Ok."""
    assert isinstance(result, Ok), result
    return result.ok_value


def bad(result: Result[Any, Any]) -> Any:
    """The error of a result that must be Err."""
    assert isinstance(result, Err), result
    return result.err_value
