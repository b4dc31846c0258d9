"""Runs a scheduler until it is told to stop: asleep until the next slot, woken by changes."""

import asyncio
import logging
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from signal import Signals

from horsies.clock import jittered, monotonic
from horsies.database.database import Database
from horsies.database.notifications import SCHEDULE_CHANNEL
from horsies.database.operation import FAILURES
from horsies.database.verdict import is_transient
from horsies.scheduling.scheduler import Scheduler

_logger = logging.getLogger("horsies.scheduler")
_RETRY_S = 1.0
# The pauses after passes that fail for another reason than a database that is away: 2, 4, 8 s ...
_MAX_BACKOFF_S = 60.0


async def run_scheduler(
    scheduler: Scheduler, database: Database, stop_signals: Sequence[Signals]
) -> int:
    """Fire schedules until a signal comes; the pass under way completes."""
    loop = asyncio.get_running_loop()
    stopping, woken = asyncio.Event(), asyncio.Event()

    def stop() -> None:
        stopping.set()
        woken.set()

    for number in stop_signals:
        loop.add_signal_handler(number, stop)
    try:
        await database.ensure_schema_async()
        await fire_until(stopping, woken, scheduler, database)
        _logger.info("scheduler stopped")
        return 0
    finally:
        for number in stop_signals:
            loop.remove_signal_handler(number)
        await database.close_async()


async def fire_until(
    stopping: asyncio.Event, woken: asyncio.Event, scheduler: Scheduler, database: Database
) -> None:
    """Pass after pass until told to stop; `woken` ends the sleep between two."""
    scheduler.builds.when_ended = woken.set
    failure_count = 0
    with _listening(database, scheduler, woken):
        while not stopping.is_set():
            woken.clear()
            try:
                wait_s = await _pass(scheduler)
                failure_count = 0
            except Exception:  # the service loop: what fails here ends neither this nor a worker
                failure_count += 1
                wait_s = min(_MAX_BACKOFF_S, 2.0**failure_count)
                _logger.exception("a pass failed, trying again in %.0f s", wait_s)
            await _sleep(woken, monotonic() + wait_s)


async def _pass(scheduler: Scheduler) -> float:
    """One pass; the seconds until the next one."""
    try:
        sent = await scheduler.run_once()
    except FAILURES as error:
        if not is_transient(error):
            raise
        _logger.warning("the database is away, trying again: %s", error)
        return jittered(_RETRY_S)
    if sent:
        _logger.info("%d run(s) sent", sent)
    return scheduler.interval_s


async def _sleep(woken: asyncio.Event, wake_at: float) -> None:
    try:
        async with asyncio.timeout(max(0.0, wake_at - monotonic())):
            await woken.wait()
    except TimeoutError:
        pass


@contextmanager
def _listening(
    database: Database, scheduler: Scheduler, woken: asyncio.Event
) -> Generator[None, None, None]:
    """Wake when schedules change; without a session to listen on, the poll has to do."""
    loop = asyncio.get_running_loop()
    listener = database.listener()

    def wake(payload: str) -> None:
        if not loop.is_closed():
            if payload == "deleted":
                scheduler.look_for_missing()
            loop.call_soon_threadsafe(woken.set)

    if listener is not None:
        listener.subscribe(SCHEDULE_CHANNEL, wake)
    yield
