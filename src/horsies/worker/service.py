"""The one loop of everything a worker does periodically.

A service describes one pass in `run_once`; a pass that meets a database that is away is repeated,
anything else is a bug and ends the worker.
"""

import asyncio
import logging
from typing import Protocol

from horsies.clock import jittered
from horsies.database.verdict import is_transient

_logger = logging.getLogger("horsies.worker")


class Service(Protocol):
    """One pass, and how often there is one."""

    name: str

    @property
    def interval_s(self) -> float: ...

    async def run_once(self) -> object: ...


async def repeat(service: Service, wake: asyncio.Event | None = None) -> None:
    """A pass at once, then one per interval and whenever `wake` is set, until cancelled."""
    wake = wake or asyncio.Event()
    while True:
        wake.clear()
        try:
            await service.run_once()
        except Exception as error:  # the service loop: a database that is away must not end it
            if not is_transient(error):
                raise
            _logger.warning("%s failed, the next pass tries again: %s", service.name, error)
        try:
            # A little early rather than late, so that many workers do not act in step.
            async with asyncio.timeout(jittered(service.interval_s, low=0.9, high=1.0)):
                await wake.wait()
        except TimeoutError:
            pass
