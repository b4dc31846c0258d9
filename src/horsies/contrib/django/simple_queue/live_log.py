"""Shows the log of a task while it runs: once a second, what its process has written so far."""

import os
import stat
import threading
from types import TracebackType

from django.db import Error, connections

from horsies.contrib.django.conf import setting
from horsies.contrib.django.simple_queue.statements import run

_EVERY_S = 1.0
_STDOUT = 1


class LiveLog:
    """A thread with a connection of its own for tasks that take longer than a second.

    The engine stores the whole log at the end; this is what readers see before, and what is left
    when the whole worker is killed.
    """

    def __init__(self, task_id: str) -> None:
        self._task_id = task_id
        self._is_over = threading.Event()
        self._thread: threading.Thread | None = None

    def __enter__(self) -> None:
        # In a child of a worker standard output is an unnamed file, which can be read again.
        if setting("CAPTURE_LOG") and stat.S_ISREG(os.fstat(_STDOUT).st_mode):
            self._thread = threading.Thread(target=self._show, name="horsies-log", daemon=True)
            self._thread.start()

    def __exit__(
        self,
        _kind: type[BaseException] | None,
        _error: BaseException | None,
        _traceback: TracebackType | None,
    ) -> None:
        self._is_over.set()
        if self._thread is not None:
            self._thread.join()

    def _show(self) -> None:
        shown = 0
        try:
            while not self._is_over.wait(_EVERY_S):
                size = os.fstat(_STDOUT).st_size
                if size != shown:
                    shown = size
                    run("replace_log", task_id=self._task_id, chunk=self._tail(size))
        except (Error, OSError):  # the end of the task brings the whole log
            return
        finally:
            connections.close_all()

    def _tail(self, size: int) -> str:
        limit = int(setting("MAX_LOG_SIZE"))
        tail = os.pread(_STDOUT, limit, max(0, size - limit))
        return tail.decode(errors="replace").replace("\x00", "\ufffd")
