"""Locks that survive a fork: its new process has only the thread that forked.

What another thread of the parent held at that moment would stay held for ever.
"""

import os
import threading
import weakref


class ForkSafeLock:
    """A reentrant lock that is free in a forked process, whoever held it in the parent."""

    def __init__(self) -> None:
        self._renew()
        _locks.add(self)

    def _renew(self) -> None:
        self._lock = threading.RLock()

    def __enter__(self) -> None:
        self._lock.acquire()

    def __exit__(self, *_: object) -> None:
        self._lock.release()


_locks: weakref.WeakSet[ForkSafeLock] = weakref.WeakSet()


def _renew_all() -> None:
    for lock in _locks:
        lock._renew()


os.register_at_fork(after_in_child=_renew_all)
