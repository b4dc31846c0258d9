"""Which calls of a worker have begun, in shared memory that outlives a kill -9 of the worker.

The worker places a call in a slot; whoever runs it marks the slot just before user code; recorded,
the slot is free. A peer on the same host reads here which runs never began (decision 0006).
"""

import fcntl
import mmap
import os
from contextlib import suppress
from pathlib import Path

from horsies.clock import utc_now

_SLOT_BYTES = 40  # one byte of state, 36 of id, padding
_SLOT_COUNT = 16_384
_BEGUN = 1
_OVERFLOW = 0  # the first slot: marked when there was a call without a slot of its own
# Longer than any threshold of RecoveryConfig.
_FORGOTTEN_S = 86_400.0


class BegunSlots:
    """The slots of one worker."""

    def __init__(self, path: Path, *, creates: bool = False) -> None:
        self.path = path
        flags = os.O_RDWR | (os.O_CREAT | os.O_EXCL if creates else 0)
        self._file = file = os.open(path, flags, 0o600)
        if creates:
            fcntl.flock(file, fcntl.LOCK_EX)  # held until the worker ends, whatever ends it
            os.truncate(file, _SLOT_BYTES * _SLOT_COUNT)
        try:
            self._map = mmap.mmap(file, _SLOT_BYTES * _SLOT_COUNT)
        except ValueError:
            os.close(file)
            raise
        self._free = list(range(_SLOT_COUNT - 1, _OVERFLOW, -1)) if creates else []

    def place(self, task_id: str) -> int:
        """A slot for a call that has not begun."""
        if not self._free:
            return _OVERFLOW
        slot = self._free.pop()
        start = slot * _SLOT_BYTES
        self._map[start : start + 37] = b"\0" + task_id.encode().ljust(36)[:36]
        return slot

    def begin(self, slot: int) -> None:
        """User code follows."""
        self._map[slot * _SLOT_BYTES] = _BEGUN

    def has_begun(self, slot: int) -> bool:
        return slot == _OVERFLOW or self._map[slot * _SLOT_BYTES] == _BEGUN

    def release(self, slot: int) -> None:
        """The outcome of the call in this slot is recorded."""
        if slot != _OVERFLOW:
            self._map[slot * _SLOT_BYTES] = 0
            self._free.append(slot)

    def begun_ids(self) -> set[str] | None:
        """The calls that have begun and are not recorded; `None` when one had no slot."""
        content = self._map[:]
        if content[_OVERFLOW] == _BEGUN:
            return None
        return {
            content[start + 1 : start + 37].decode().rstrip()
            for start in range(0, len(content), _SLOT_BYTES)
            if content[start] == _BEGUN
        }

    @property
    def is_abandoned(self) -> bool:
        """Whether the worker that made it is gone; known across containers and reused pids."""
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
        self.path.unlink(missing_ok=True)


def create_begun_slots(worker_id: str) -> BegunSlots | None:
    """The begun_slots of a new worker; `None` where there is no such memory."""
    directory = _directory()
    if directory is None:
        return None
    try:
        directory.mkdir(mode=0o700, exist_ok=True)
        _remove_forgotten(directory)
        return BegunSlots(directory / worker_id, creates=True)
    except OSError:
        return None


def _remove_forgotten(directory: Path) -> None:
    """What killed workers left and no peer took up; by now their runs are stale on all counts."""
    for path in directory.iterdir():
        with suppress(OSError, ValueError):  # another worker was faster, or it is none of ours
            if utc_now().timestamp() - path.stat().st_mtime > _FORGOTTEN_S:
                begun_slots = BegunSlots(path)
                if begun_slots.is_abandoned:
                    begun_slots.remove()
                else:
                    begun_slots.close()


def find_begun_slots(worker_id: str) -> BegunSlots | None:
    """The begun_slots a worker of this host has left, if it can be read."""
    directory = _directory()
    try:
        if directory is None or directory.stat().st_uid != os.getuid():
            return None
        return BegunSlots(directory / worker_id)
    except (OSError, ValueError):
        return None


def _directory() -> Path | None:
    shared_memory = Path("/dev/shm")  # noqa: S108 - its own directory below is private
    if not shared_memory.is_dir():
        return None
    return shared_memory / f"horsies-{os.getuid()}"
