"""The one loop of everything a worker does periodically.

A service describes one pass in `run_once`. A pass that fails is repeated, whatever the reason: only
the claimer and the completer may end a worker, and only for a bug.
"""

import asyncio
import logging
from typing import Protocol

from horsies.clock import jittered
from horsies.database.verdict import is_transient

_logger = logging.getLogger("horsies.worker")
# The pauses after passes that fail for another reason than a database that is away: 2, 4, 8 s ...
_MAX_BACKOFF_S = 60.0


class Service(Protocol):
    """One pass, and how often there is one."""

    name: str

    @property
    def interval_s(self) -> float: ...

    async def run_once(self) -> object: ...


async def repeat(service: Service, wake: asyncio.Event | None = None) -> None:
    """A pass at once, then one per interval and whenever `wake` is set, until cancelled."""
    wake = wake or asyncio.Event()
    failure_count = 0
    while True:
        wake.clear()
        try:
            await service.run_once()
            failure_count = 0
        except Exception as error:  # the service loop: what fails here must not end the worker
            if is_transient(error):
                _logger.warning("%s failed, the next pass tries again: %s", service.name, error)
            else:
                failure_count += 1
                wait_s = min(_MAX_BACKOFF_S, 2.0**failure_count)
                _logger.exception("%s failed, trying again in %.0f s", service.name, wait_s)
                await asyncio.sleep(wait_s)
                continue
        try:
            # A little early rather than late, so that many workers do not act in step.
            async with asyncio.timeout(jittered(service.interval_s, low=0.9, high=1.0)):
                await wake.wait()
        except TimeoutError:
            pass
