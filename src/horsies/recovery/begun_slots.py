"""Which calls of a worker have begun, in shared memory that outlives a kill -9 of the worker.

The worker places a call in a slot, whoever runs it marks the slot just before user code, and the
slot is free again when the outcome is recorded. A peer on the same host reads here which runs never
began (decision 0006). A worker id comes from a row, so it names a file only if it is a UUID.
"""

import fcntl
import logging
import mmap
import os
import re
import stat
from collections.abc import Generator
from contextlib import contextmanager, suppress

from horsies.clock import utc_now

_logger = logging.getLogger("horsies.worker")

SHARED_MEMORY = "/dev/shm"  # noqa: S108 - the directory below it is private, and checked
# The name of a file in a directory of our own: ids that users choose fit too, paths never do.
_WORKER_ID = re.compile(r"[0-9A-Za-z][0-9A-Za-z_.@-]{0,63}")

# One byte of state, one of length, 144 of id: 36 characters of four bytes at most.
_ID_BYTES = 144
_SLOT_BYTES = 2 + _ID_BYTES
_SLOT_COUNT = 16_384
# What stands before an id: not begun, and its length.
_HEADERS = [bytes((0, length)) for length in range(_ID_BYTES + 1)]
_BEGUN = 1
_OVERFLOW = 0  # the first slot: marked when there was a call without a slot of its own
# Longer than any threshold of RecoveryConfig.
_FORGOTTEN_S = 86_400.0


class BegunSlots:
    """The slots of one worker; `directory` is open and has been checked."""

    def __init__(self, worker_id: str, directory: int, *, creates: bool = False) -> None:
        if not _WORKER_ID.fullmatch(worker_id):
            raise ValueError(f"not a worker id: {worker_id!r}")
        self.worker_id = worker_id
        flags = os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC
        flags |= os.O_CREAT | os.O_EXCL if creates else 0
        self._file = file = os.open(worker_id, flags, 0o600, dir_fd=directory)
        try:
            if creates:
                fcntl.flock(file, fcntl.LOCK_EX)  # held until the worker ends, whatever ends it
                # Reserved now: a page that is missing later would end the worker with SIGBUS.
                os.posix_fallocate(file, 0, _SLOT_BYTES * _SLOT_COUNT)
            self._map = mmap.mmap(file, _SLOT_BYTES * _SLOT_COUNT)
        except (OSError, ValueError):
            os.close(file)
            if creates:
                os.unlink(worker_id, dir_fd=directory)
            raise
        self._free: list[int] = []  # those that have been used before
        self._next = _OVERFLOW + 1 if creates else _SLOT_COUNT

    def place(self, task_id: str) -> int:
        """Return a slot for a call that has not begun."""
        encoded = task_id.encode("utf-8", "replace")
        if len(encoded) > _ID_BYTES:
            return _OVERFLOW
        if self._free:
            slot = self._free.pop()
        elif self._next < _SLOT_COUNT:
            slot, self._next = self._next, self._next + 1
        else:
            return _OVERFLOW
        start = slot * _SLOT_BYTES
        self._map[start : start + 2 + len(encoded)] = _HEADERS[len(encoded)] + encoded
        return slot

    def begin(self, slot: int) -> None:
        """Mark the call as begun: user code runs next."""
        self._map[slot * _SLOT_BYTES] = _BEGUN

    def has_begun(self, slot: int) -> bool:
        return slot == _OVERFLOW or self._map[slot * _SLOT_BYTES] == _BEGUN

    def release(self, slot: int) -> None:
        """Free the slot: the outcome of its call is recorded."""
        if slot != _OVERFLOW:
            self._map[slot * _SLOT_BYTES] = 0
            self._free.append(slot)

    def begun_ids(self) -> set[str] | None:
        """The calls that have begun and are not recorded; `None` when that cannot be told."""
        content = self._map[:]
        if content[_OVERFLOW] == _BEGUN:
            return None
        begun: set[str] = set()
        for start in range(0, len(content), _SLOT_BYTES):
            if content[start] == _BEGUN:
                encoded = content[start + 2 : start + 2 + content[start + 1]]
                try:
                    begun.add(encoded.decode())
                except UnicodeDecodeError:  # not written by a worker of ours
                    return None
        return begun

    @property
    def is_abandoned(self) -> bool:
        """Whether the worker that made them is gone; known across containers and reused pids."""
        try:
            fcntl.flock(self._file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        fcntl.flock(self._file, fcntl.LOCK_UN)
        return True

    def close(self) -> None:
        self._map.close()
        os.close(self._file)

    def remove(self) -> None:
        self.close()
        with _directory() as directory, suppress(FileNotFoundError):
            if directory is not None:
                os.unlink(self.worker_id, dir_fd=directory)


def create_begun_slots(worker_id: str) -> BegunSlots | None:
    """Make the slots of a new worker; without shared memory it warns and works without them."""
    try:
        with _directory(creates=True) as directory:
            if directory is None:
                return None
            _remove_forgotten(directory)
            return BegunSlots(worker_id, directory, creates=True)
    except OSError as error:
        _logger.warning(
            "no shared memory for begun slots (%s): if this worker is killed, all its running "
            "tasks count as begun",
            error,
        )
        return None


def find_begun_slots(worker_id: str) -> BegunSlots | None:
    """The slots a worker of this host has left, if they can be read."""
    try:
        with _directory() as directory:
            return None if directory is None else BegunSlots(worker_id, directory)
    except (OSError, ValueError):
        return None


def _remove_forgotten(directory: int) -> None:
    """Delete what killed workers left a day ago: by now their runs are stale by any measure."""
    for name in os.listdir(directory):
        with suppress(OSError, ValueError):  # another worker was faster, or it is none of ours
            written_at = os.stat(name, dir_fd=directory, follow_symlinks=False).st_mtime
            if utc_now().timestamp() - written_at > _FORGOTTEN_S:
                begun_slots = BegunSlots(name, directory)
                is_abandoned = begun_slots.is_abandoned
                begun_slots.close()
                if is_abandoned:
                    os.unlink(name, dir_fd=directory)


@contextmanager
def _directory(*, creates: bool = False) -> Generator[int | None, None, None]:
    """This user's private directory, opened; `None` where there is no shared memory.

    Anyone may have made it first: it must be a directory of ours that nobody else can write to.
    """
    name = f"horsies-{os.getuid()}"
    try:
        parent = os.open(SHARED_MEMORY, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError:
        yield None
        return
    try:
        if creates:
            with suppress(FileExistsError):
                os.mkdir(name, 0o700, dir_fd=parent)
        flags = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
        directory = os.open(name, flags, dir_fd=parent)
    finally:
        os.close(parent)
    try:
        found = os.fstat(directory)
        if found.st_uid != os.getuid() or stat.S_IMODE(found.st_mode) & 0o077:
            raise PermissionError(f"{SHARED_MEMORY}/{name} is not private to this user")
        yield directory
    finally:
        os.close(directory)
