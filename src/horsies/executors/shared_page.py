"""A page of memory shared by the worker and one child: what must be known even after a kill -9."""

import mmap
import threading

PAGE_BYTES = mmap.PAGESIZE

_BEGUN_SEQUENCE, _STOP_SEQUENCE, _BEGUN_AT, _BEAT_AT, _SKIPS = range(5)
# One word per call a child may hold: a page has room for these and the four above.
MAX_QUEUED = 256


class SharedPage:
    """Each word has one writer: the child, except for what asks it to stop or skip a call."""

    def __init__(self, file: int) -> None:
        self._map = mmap.mmap(file, PAGE_BYTES)
        self._view = memoryview(self._map)
        self._words = self._view.cast("Q")
        self._times = self._view.cast("d")
        self._lock = threading.Lock()

    def close(self) -> None:
        for view in (self._words, self._times, self._view):
            view.release()
        self._map.close()

    @property
    def begun_sequence(self) -> int:
        """The last call whose user code has begun."""
        return self._words[_BEGUN_SEQUENCE]

    @property
    def begun_at(self) -> float:
        """When that was, on the monotonic clock all processes of the machine share."""
        return self._times[_BEGUN_AT]

    def begin(self, sequence: int, at: float) -> None:
        self._times[_BEGUN_AT] = at
        self._words[_BEGUN_SEQUENCE] = sequence

    @property
    def stop_sequence(self) -> int:
        """The call that the worker's last SIGTERM was meant for; 0 before the first."""
        return self._words[_STOP_SEQUENCE]

    @stop_sequence.setter
    def stop_sequence(self, sequence: int) -> None:
        self._words[_STOP_SEQUENCE] = sequence

    def withdraw(self, sequence: int) -> bool:
        """Take a queued call back; True when the child is certain not to begin it.

        The child says that it begins and then looks here, we write here and then look whether it
        has begun: whoever comes second sees the other.
        """
        self._words[_SKIPS + sequence % MAX_QUEUED] = sequence
        self._memory_barrier()
        return self.begun_sequence < sequence

    def should_skip(self, sequence: int) -> bool:
        self._memory_barrier()
        skipped = self._words[_SKIPS + sequence % MAX_QUEUED] == sequence
        return skipped or self.stop_sequence == sequence

    def _memory_barrier(self) -> None:
        """A processor may move a read before an earlier write, but not past a lock."""
        with self._lock:
            pass

    @property
    def beat_at(self) -> float:
        return self._times[_BEAT_AT]

    @beat_at.setter
    def beat_at(self, at: float) -> None:
        self._times[_BEAT_AT] = at
