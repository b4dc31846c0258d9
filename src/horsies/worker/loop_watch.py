"""Notices that the event loop is blocked, and says where: one blocking coroutine stops them all.

From a thread, since the loop itself cannot: claims and every other coroutine of the worker wait
until the blocking call returns. Heartbeats go on, they have a thread of their own.
"""

import asyncio
import logging
import sys
import sysconfig
import threading
import traceback
from collections.abc import Callable
from pathlib import Path

from horsies.clock import monotonic

_logger = logging.getLogger("horsies.worker")
_TICK_S = 0.25
_STILL_S = 1.0
_LONG_S = 30.0
# People look for the line of their own that called into these.
_LIBRARIES = tuple(sysconfig.get_path(name) for name in ("stdlib", "purelib", "platlib"))


class LoopWatch:
    """Warns when the loop is blocked for a second, then after twice as long each time."""

    def __init__(self, on_lag: Callable[[float], None]) -> None:
        self._on_lag = on_lag
        self._seen_at = monotonic()
        self._loop_thread = threading.get_ident()
        self._stopping = threading.Event()

    def blocked_for(self) -> float:
        """Return for how many seconds the loop has been blocked; 0 while it runs."""
        return max(0.0, monotonic() - self._seen_at - _TICK_S)

    async def run(self) -> None:
        """Show that the loop runs, until cancelled."""
        self._seen_at = monotonic()
        threading.Thread(target=self._watch, name="horsies-loop-watch", daemon=True).start()
        try:
            while True:
                self._seen_at = monotonic()
                await asyncio.sleep(_TICK_S)
                self._on_lag(max(0.0, monotonic() - self._seen_at - _TICK_S))
        finally:
            self._stopping.set()

    def _watch(self) -> None:
        warn_after_s = _STILL_S
        while not self._stopping.wait(_TICK_S):
            blocked_s = self.blocked_for()
            if blocked_s < _STILL_S:
                warn_after_s = _STILL_S
            elif blocked_s > warn_after_s:
                warn_after_s *= 2
                _logger.log(
                    logging.WARNING if blocked_s < _LONG_S else logging.ERROR,
                    "the event loop has been blocked for %.1f s at %s: no coroutine can run "
                    "meanwhile; await something there, use asyncio.to_thread, or make the task a "
                    "plain def",
                    blocked_s,
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
