"""A memory page that the worker shares with one child; its contents survive a kill -9."""

import mmap
import threading

PAGE_BYTES = mmap.PAGESIZE

_BEGUN_SEQUENCE, _STOP_SEQUENCE, _BEGUN_AT, _BEAT_AT, _SKIPS = range(5)
# One word per call that a child may hold; the page has room for these and the others.
MAX_QUEUED = 256
_PROGRESS_VERSION = _SKIPS + MAX_QUEUED
_PROGRESS_SEQUENCE, _PROGRESS_LENGTH = _PROGRESS_VERSION + 1, _PROGRESS_VERSION + 2
_PROGRESS_TEXT = 8 * (_PROGRESS_VERSION + 3)


class SharedPage:
    """Each word has one writer: the worker for stop and skip requests, the child for the rest."""

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
        """The last call that the child has begun."""
        return self._words[_BEGUN_SEQUENCE]

    @property
    def begun_at(self) -> float:
        """When it began, on the monotonic clock that all processes of the machine share."""
        return self._times[_BEGUN_AT]

    def begin(self, sequence: int, at: float) -> None:
        self._times[_BEGUN_AT] = at
        self._words[_BEGUN_SEQUENCE] = sequence

    @property
    def stop_sequence(self) -> int:
        """The call that the worker's last SIGTERM should end; 0 before the first SIGTERM."""
        return self._words[_STOP_SEQUENCE]

    @stop_sequence.setter
    def stop_sequence(self, sequence: int) -> None:
        self._words[_STOP_SEQUENCE] = sequence

    def withdraw(self, sequence: int) -> bool:
        """Take a queued call back; True if the child will certainly not begin it.

        The child writes that it begins and then reads this word; we write this word and then read
        whether it has begun. Whichever side comes second sees the write of the other.
        """
        self._words[_SKIPS + sequence % MAX_QUEUED] = sequence
        self._memory_barrier()
        return self.begun_sequence < sequence

    def should_skip(self, sequence: int) -> bool:
        self._memory_barrier()
        skipped = self._words[_SKIPS + sequence % MAX_QUEUED] == sequence
        return skipped or self.stop_sequence == sequence

    def write_progress(self, sequence: int, text: bytes) -> None:
        """Say how far a call is; only the child writes, one thread at a time."""
        # Odd while the rest changes, also when an exception cuts this short.
        version = self._words[_PROGRESS_VERSION] | 1
        self._words[_PROGRESS_VERSION] = version
        self._memory_barrier()
        self._words[_PROGRESS_SEQUENCE] = sequence
        self._words[_PROGRESS_LENGTH] = len(text)
        self._view[_PROGRESS_TEXT : _PROGRESS_TEXT + len(text)] = text
        self._memory_barrier()
        self._words[_PROGRESS_VERSION] = version + 1

    def read_progress(self, sequence: int) -> bytes | None:
        """Return what a call has written last; None if it has not, or is just writing."""
        version = self._words[_PROGRESS_VERSION]
        self._memory_barrier()
        if version % 2 or self._words[_PROGRESS_SEQUENCE] != sequence:
            return None
        length = min(self._words[_PROGRESS_LENGTH], PAGE_BYTES - _PROGRESS_TEXT)
        text = bytes(self._view[_PROGRESS_TEXT : _PROGRESS_TEXT + length])
        self._memory_barrier()
        return text if self._words[_PROGRESS_VERSION] == version else None

    def _memory_barrier(self) -> None:
        """Keep the processor from moving a read before an earlier write.

        On ARM both may move into the critical section of a lock and pass each other there. They do
        not pass two: nothing moves over a release that an acquisition follows.
        """
        with self._lock:
            pass
        with self._lock:
            pass

    @property
    def beat_at(self) -> float:
        return self._times[_BEAT_AT]

    @beat_at.setter
    def beat_at(self, at: float) -> None:
        self._times[_BEAT_AT] = at
