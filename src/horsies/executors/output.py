"""Capture what a task writes in a child: all output on fd 1 and 2.

A capture keeps only the tail. Nothing here may make a task fail.
"""

import contextlib
import ctypes
import fcntl
import io
import logging
import os
import sys
import tempfile
import threading
from dataclasses import dataclass

from horsies.observability.logs import formatter_as_parent

LINE_FORMAT = "%(levelname)s %(name)s: %(message)s"

_PUNCH_HOLE_KEEP_SIZE = 3
_OUR_OFFSET = 2**40 + 7


@dataclass(frozen=True, slots=True)
class Captured:
    """The tail of what one attempt wrote."""

    text: str | None = None
    is_truncated: bool = False


NOTHING = Captured()


class OutputFile:
    """An unnamed file that a child writes through fd 1 and 2 and both sides can read."""

    def __init__(self, file: int, max_bytes: int) -> None:
        self.file = file
        self._max_bytes = max_bytes
        self._stdout: io.TextIOWrapper | None = None
        self._stderr: io.TextIOWrapper | None = None
        self._terminal: int | None = None
        self._echoed_bytes = 0
        self._echo_lock = threading.Lock()

    def redirect_standard_streams(self, *, echoes: bool = False) -> None:
        """Redirect the output of this process here, unbuffered, so that a kill loses nothing."""
        sys.stdout.flush()
        sys.stderr.flush()
        if echoes:
            self._terminal = os.dup(2)
        for number, earlier in ((1, sys.stdout), (2, sys.stderr)):
            os.dup2(self.file, number)
            if isinstance(earlier, io.TextIOWrapper):
                earlier.reconfigure(line_buffering=True)
        self._restore_streams()
        _log_to_standard_error()

    def _restore_streams(self) -> None:
        """Give this process its standard streams, also after a task has replaced or closed them."""
        if self._stdout is None or self._stdout.closed:
            self._stdout = _stream(1)
        if self._stderr is None or self._stderr.closed:
            self._stderr = _stream(2)
        sys.stdout, sys.stderr = self._stdout, self._stderr

    def _restore_descriptors(self) -> None:
        """Make fd 1 and 2 write here again, also after a task has closed or redirected them."""
        # Duplicates of a descriptor share its offset: one that no other file has identifies ours.
        os.lseek(self.file, _OUR_OFFSET, os.SEEK_SET)
        for number in (1, 2):
            try:
                is_ours = os.lseek(number, 0, os.SEEK_CUR) == _OUR_OFFSET
            except OSError:
                is_ours = False
            if not is_ours:
                os.dup2(self.file, number)

    def captured(self) -> Captured:
        """Return the tail of the output."""
        with contextlib.suppress(OSError):
            size = os.fstat(self.file).st_size
            if size > 0:
                start = max(0, size - self._max_bytes)
                return Captured(text_of(os.pread(self.file, self._max_bytes, start)), start > 0)
        return NOTHING

    def echo(self) -> None:
        """Show what was written since the last time where the output went before."""
        if self._terminal is None:
            return
        with self._echo_lock, contextlib.suppress(OSError):
            size = os.fstat(self.file).st_size
            while self._echoed_bytes < size:
                wanted = min(size - self._echoed_bytes, 65_536)
                written = os.pread(self.file, wanted, self._echoed_bytes)
                self._echoed_bytes += os.write(self._terminal, written) if written else wanted

    def take(self) -> Captured:
        """Return the tail and clear the file."""
        with contextlib.suppress(Exception):  # user code: it may have put anything there
            sys.stdout.flush()
            sys.stderr.flush()
        self._restore_streams()
        self._restore_descriptors()
        captured = self.captured()
        if captured.text is not None:
            self.echo()
            with self._echo_lock, contextlib.suppress(OSError):
                os.ftruncate(self.file, 0)
                self._echoed_bytes = 0
        return captured

    def release_surplus(self) -> None:
        """Free the memory of output that no capture will keep; sizes and offsets do not change."""
        with contextlib.suppress(OSError, AttributeError):
            surplus = os.fstat(self.file).st_size - 4 * self._max_bytes
            if surplus > 0:
                fallocate = ctypes.CDLL(None).fallocate
                offset, length = ctypes.c_int64(0), ctypes.c_int64(surplus)
                fallocate(self.file, _PUNCH_HOLE_KEEP_SIZE, offset, length)


def anonymous_file(size: int = 0) -> int:
    """Open an unnamed file in append mode; its descriptor can be passed to a child."""
    if sys.platform == "linux":
        file = os.memfd_create("horsies", os.MFD_CLOEXEC)
    else:
        with tempfile.TemporaryFile() as temporary:
            file = os.dup(temporary.fileno())
    fcntl.fcntl(file, fcntl.F_SETFL, fcntl.fcntl(file, fcntl.F_GETFL) | os.O_APPEND)
    os.ftruncate(file, size)
    return file


def _log_to_standard_error() -> None:
    """Send log records to stderr unless the app already does."""
    root = logging.getLogger()
    if any(type(handler) is logging.StreamHandler for handler in root.handlers):
        return
    if not root.handlers and root.level == logging.WARNING:
        root.setLevel(logging.INFO)
    handler = logging.StreamHandler(sys.stderr)
    handler.setLevel(logging.INFO)
    handler.setFormatter(formatter_as_parent(LINE_FORMAT))
    root.addHandler(handler)


def _stream(number: int) -> io.TextIOWrapper:
    raw = io.FileIO(number, "w", closefd=False)
    return io.TextIOWrapper(raw, encoding="utf-8", errors="backslashreplace", write_through=True)


def text_of(tail: bytes) -> str:
    return tail.decode("utf-8", "replace").replace("\x00", "\ufffd")
