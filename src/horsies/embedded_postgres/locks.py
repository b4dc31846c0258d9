"""File locks, which count the users of a server; the kernel drops them when the holder dies.

Closing the file releases a lock, never LOCK_UN: forked children share the lock, and an explicit
unlock in one of them would take it from all.
"""

import fcntl
import os
import time
from pathlib import Path
from types import TracebackType
from typing import Self

from horsies.embedded_postgres.refusals import refusal

_POLL_SECONDS = 0.02


class FileLock:
    """A held lock; only `release()` or the end of the process frees it, not garbage collection."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor: int | None = descriptor

    def release(self) -> None:
        descriptor, self._descriptor = self._descriptor, None
        if descriptor is not None:
            os.close(descriptor)

    def is_still_at(self, path: Path) -> bool:
        """Return False if the file was deleted or replaced: others then lock a different file."""
        if self._descriptor is None:
            return False
        try:
            found = path.stat()
        except FileNotFoundError:
            return False
        return os.path.samestat(found, os.fstat(self._descriptor))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.release()


def try_exclusive(path: Path) -> FileLock | None:
    return _try(path, fcntl.LOCK_EX)


def exclusive(path: Path, *, within: float) -> FileLock:
    return _wait(path, fcntl.LOCK_EX, within)


def shared(path: Path, *, within: float) -> FileLock:
    return _wait(path, fcntl.LOCK_SH, within)


def _wait(path: Path, kind: int, within: float) -> FileLock:
    deadline = time.monotonic() + within
    while (lock := _try(path, kind)) is None:
        if time.monotonic() > deadline:
            raise refusal(f"embedded PostgreSQL: {path} stayed locked for {within:.0f} s")
        time.sleep(_POLL_SECONDS)
    return lock


def _try(path: Path, kind: int) -> FileLock | None:
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
    except PermissionError as error:
        raise refusal(
            f"embedded PostgreSQL: {path.parent} belongs to another user",
            cure="run as the user who created it, or set HORSIES_HOME to a directory of your own",
        ) from error
    try:
        fcntl.flock(descriptor, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(descriptor)
        return None
    return FileLock(descriptor)
