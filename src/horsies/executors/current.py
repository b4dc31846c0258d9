"""The task that runs in this thread or coroutine: the only context variable of the executors."""

import logging
import math
from contextvars import ContextVar, Token
from datetime import datetime, timedelta

from horsies.clock import monotonic, utc_now
from horsies.codec.text import storable
from horsies.executors.base import Call, Progress

_logger = logging.getLogger("horsies.task")
_MAX_NOTE = 200
_LARGEST = math.nextafter(math.inf, 0)


class Running:
    """A call that is run here; each executor has its own way to end it and to hear from it."""

    __slots__ = ("begun_at", "call", "worker_id")

    def __init__(self, call: Call) -> None:
        self.call = call
        self.begun_at: float | None = None
        self.worker_id = ""

    def is_ending(self) -> bool:
        """Whether the executor wants the call to end."""
        return False

    def start_soft_limit(self) -> None:
        """Begin to count the soft limit: the function is called next."""

    def report(self, progress: Progress) -> None:
        """Take what the task says of itself; where it runs inline, nobody looks before its end."""
        self.call.progress = progress


_running: ContextVar[Running | None] = ContextVar("horsies_running", default=None)


class NoCurrentTaskError(RuntimeError):
    """`current_task()` was called where no task runs."""

    __module__ = "horsies"


def enter(running: Running, worker_id: str) -> Token[Running | None]:
    """Say which call begins here."""
    running.worker_id = worker_id
    return _running.set(running)


def leave(token: Token[Running | None]) -> None:
    """Say that it has ended."""
    try:  # noqa: SIM105 - on the way of every attempt, and free while nothing is raised
        _running.reset(token)
    except ValueError:  # an abandoned coroutine is closed by whoever collects it
        pass


def running_here() -> Running | None:
    """The attempt whose user code asks, or `None` outside of one."""
    return _running.get()


def current_task() -> "CurrentTask":
    """Return the task that runs here, to report its progress and to see its limits.

    Outside of a task it raises `NoCurrentTaskError`. Threads that a task starts itself are outside,
    unless they are started by `asyncio.to_thread`, which hands the context on.
    """
    running = _running.get()
    if running is None:
        raise NoCurrentTaskError(
            "there is no current task here: call current_task() inside a task that a worker runs, "
            "not in a direct call of its function and not in a thread of its own"
        )
    return CurrentTask(running)


class CurrentTask:
    """One attempt, seen from inside."""

    __slots__ = ("_running",)

    def __init__(self, running: Running) -> None:
        self._running = running

    @property
    def id(self) -> str:
        return self._running.call.task_id

    @property
    def name(self) -> str:
        return self._running.call.task_name

    @property
    def attempt(self) -> int:
        """The number of this attempt; the first is 1."""
        return self._running.call.attempt

    @property
    def queue(self) -> str:
        return self._running.call.queue_name

    @property
    def traceparent(self) -> str | None:
        """The span that sent this task, as W3C Trace Context writes it, if there was one."""
        return self._running.call.traceparent

    @property
    def worker_id(self) -> str:
        return self._running.worker_id

    @property
    def deadline(self) -> datetime | None:
        """When the time limit ends this attempt; `None` without a limit."""
        limit_ms = self._running.call.timeout_ms
        if limit_ms is None:
            return None
        left_s = (self._running.begun_at or 0.0) + limit_ms / 1000 - monotonic()
        return utc_now() + timedelta(seconds=left_s)

    @property
    def is_cancel_requested(self) -> bool:
        """Whether this run should end: it was cancelled, is over its limit, or its worker stops.

        An exception tells the task the same; this is for code that has caught it or holds it up.
        """
        return self._running.is_ending()

    def progress(self, done: float, total: float | None = None, note: str | None = None) -> None:
        """Report how far the task is: `progress(3, 10, "third file")`.

        It may be called as often as you like: the worker stores the latest report once a second,
        and the last one with the end of the attempt. A note is cut at 200 characters.
        """
        self._running.report(_checked(done, total, note))

    def log(self, message: str, *args: object, level: int = logging.INFO) -> None:
        """Log a line by the logger `horsies.task`; the output of the attempt keeps it from INFO on.

        The level of the loggers does not matter: handlers decide by theirs.
        """
        place = _logger.findCaller(stacklevel=2)
        record = _logger.makeRecord(_logger.name, level, *place[:2], message, args, None, place[2])
        _logger.handle(record)

    def __repr__(self) -> str:
        return f"<CurrentTask {self.name} {self.id}, attempt {self.attempt}>"


def _checked(done: float, total: float | None, note: str | None) -> Progress:
    if not _is_amount(done):
        raise ValueError(f"progress: done must be a number of 0 or more, not {done!r}")
    if total is not None and not _is_amount(total):
        raise ValueError(f"progress: total must be None or a number of 0 or more, not {total!r}")
    if note is not None and not isinstance(note, str):
        raise TypeError(f"progress: note must be None or a text, not {note!r}")
    shown = None if note is None else storable(note[:_MAX_NOTE])
    return Progress(float(done), None if total is None else float(total), shown)


def _is_amount(value: object) -> bool:
    return isinstance(value, (int, float)) and 0 <= value <= _LARGEST
