"""Capture what a task logs in the worker's own process.

A capture keeps only the tail. Nothing here may make a task fail.
"""

import contextlib
import logging
from collections import deque

from horsies.executors.base import Call, CaptureSettings
from horsies.executors.current import Running, running_here
from horsies.executors.output import LINE_FORMAT, NOTHING, Captured, text_of


class LogBuffer:
    """The log records of one call; it drops the oldest first."""

    __slots__ = ("_dropped", "_lines", "_max_bytes", "_size")

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._lines: deque[bytes] = deque()
        self._size = 0
        self._dropped = False

    def append(self, line: str) -> None:
        encoded = line.encode("utf-8", "replace") + b"\n"
        self._lines.append(encoded)
        self._size += len(encoded)
        while self._size - len(self._lines[0]) >= self._max_bytes:
            self._size -= len(self._lines.popleft())
            self._dropped = True

    def captured(self) -> Captured:
        if not self._lines:
            return NOTHING
        is_truncated = self._dropped or self._size > self._max_bytes
        return Captured(text_of(b"".join(self._lines)[-self._max_bytes :]), is_truncated)


class CapturedRun(Running):
    """A call whose log records are kept: the first one makes the buffer."""

    __slots__ = ("buffer", "capture")

    def __init__(self, call: Call) -> None:
        super().__init__(call)
        self.capture: CaptureHandler | None = None
        self.buffer: LogBuffer | None = None


class CaptureHandler(logging.Handler):
    """A root handler that adds each record to the buffer of the call that logged it."""

    def __init__(self, settings: CaptureSettings) -> None:
        super().__init__(logging.INFO)
        self._settings = settings
        self.setFormatter(logging.Formatter(LINE_FORMAT))

    def install(self) -> None:
        if self._settings.enabled:
            logging.getLogger().addHandler(self)

    def uninstall(self) -> None:
        logging.getLogger().removeHandler(self)

    def emit(self, record: logging.LogRecord) -> None:
        running = running_here()
        if isinstance(running, CapturedRun) and running.capture is self:
            with contextlib.suppress(Exception):  # user code: a record may fail to format
                if running.buffer is None:
                    running.buffer = LogBuffer(self._settings.max_bytes)
                running.buffer.append(self.format(record))
