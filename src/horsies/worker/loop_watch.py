"""Notices that the event loop stands still, and says where: a coroutine that blocks stops them all.

From a thread, since the loop itself cannot: heartbeats, claims and every other coroutine of the
worker wait until the blocking call returns.
"""

import asyncio
import logging
import sys
import sysconfig
import threading
import traceback
from pathlib import Path

from horsies.clock import monotonic

_logger = logging.getLogger("horsies.worker")
_TICK_S = 0.25
_STILL_S = 1.0
# People look for the line of their own that called into these.
_LIBRARIES = tuple(sysconfig.get_path(name) for name in ("stdlib", "purelib", "platlib"))


class LoopWatch:
    """Warns once for each time the loop does not come round for a second."""

    def __init__(self) -> None:
        self._seen_at = monotonic()
        self._loop_thread = threading.get_ident()
        self._stopping = threading.Event()

    async def run(self) -> None:
        """Show that the loop comes round, until cancelled."""
        self._seen_at = monotonic()
        threading.Thread(target=self._watch, name="horsies-loop-watch", daemon=True).start()
        try:
            while True:
                self._seen_at = monotonic()
                await asyncio.sleep(_TICK_S)
        finally:
            self._stopping.set()

    def _watch(self) -> None:
        told_of = 0.0
        while not self._stopping.wait(_TICK_S):
            seen_at = self._seen_at
            if monotonic() - seen_at > _STILL_S + _TICK_S and seen_at != told_of:
                told_of = seen_at
                _logger.warning(
                    "the event loop has stood still for %.1f s at %s: no coroutine goes on "
                    "meanwhile, nor do heartbeats; await something there, use asyncio.to_thread, "
                    "or make the task a plain def",
                    monotonic() - seen_at,
                    self._place(),
                )

    def _place(self) -> str:
        frame = sys._current_frames().get(self._loop_thread)
        if frame is None:
            return "an unknown place"
        stack = traceback.extract_stack(frame)
        own = [where for where in stack if not where.filename.startswith(_LIBRARIES)]
        where = (own or stack)[-1]
        return f"{Path(where.filename).name}:{where.lineno} in {where.name}"
