"""The interface of an executor: calls, outcomes, and the protocol that the worker drives."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple, Protocol, TypeAlias

from horsies.tasks.definition import TaskDefinition

if TYPE_CHECKING:
    from horsies.executors.middleware import Middleware

STOP_GRACE_SECONDS = 5.0


class Progress(NamedTuple):
    """How far a task says it is."""

    done: float
    total: float | None = None
    note: str | None = None


class Call:
    """One attempt at one task, as an executor receives it.

    `slot` is the place in `BegunMarks` where its start is recorded; `progress` is what the task
    has reported last.
    """

    __slots__ = (
        "args",
        "attempt",
        "kwargs",
        "progress",
        "queue_name",
        "slot",
        "soft_timeout_ms",
        "task_id",
        "task_name",
        "timeout_ms",
        "traceparent",
    )

    def __init__(  # noqa: PLR0913, PLR0917 - the fields travel to a child in this order
        self,
        task_id: str,
        task_name: str,
        attempt: int,
        args: str | None = None,
        kwargs: str | None = None,
        timeout_ms: int | None = None,
        soft_timeout_ms: int | None = None,
        slot: int = 0,
        queue_name: str = "default",
        traceparent: str | None = None,
    ) -> None:
        self.task_id = task_id
        self.task_name = task_name
        self.attempt = attempt
        self.args = args
        self.kwargs = kwargs
        self.timeout_ms = timeout_ms
        self.soft_timeout_ms = soft_timeout_ms
        self.slot = slot
        self.queue_name = queue_name
        self.traceparent = traceparent
        self.progress: Progress | None = None


class Delivered(NamedTuple):
    """The call returned or raised; `result` is the text of its TaskResult, as it is stored."""

    result: str
    is_ok: bool
    error_code: str | None
    error_message: str | None
    duration_s: float
    log: str | None = None
    log_truncated: bool = False
    # What the attempt asked for: seconds until its retry, or `BY_POLICY` (tasks/retry.py).
    retry_wish: float | None = None
    # The JSON of what it has reported last, from a child; others report where the worker sees it.
    progress: str | None = None


class Crashed(NamedTuple):
    """The process that ran the call ended without a result after user code had begun."""

    message: str
    reason: str
    exit_code: int | None
    signal: int | None
    log: str | None = None
    log_truncated: bool = False

    @property
    def is_ok(self) -> bool:
        return False


@dataclass(frozen=True, slots=True)
class TimedOut:
    """The call exceeded its run-time limit, whatever it did afterwards."""

    limit_ms: int
    log: str | None = None
    log_truncated: bool = False


@dataclass(frozen=True, slots=True)
class Stopped:
    """Our own stop() or close(kill=True) ended the call."""

    log: str | None = None
    log_truncated: bool = False


@dataclass(frozen=True, slots=True)
class NotBegun:
    """User code never began, so the same attempt may run elsewhere."""


Outcome: TypeAlias = Delivered | Crashed | TimedOut | Stopped | NotBegun
Done: TypeAlias = Callable[[Call, Outcome], None]


@dataclass(frozen=True, slots=True)
class CaptureSettings:
    """Whether an attempt keeps its output, and how many bytes of its tail."""

    enabled: bool = True
    max_bytes: int = 65_536
    # Whether children also show it where the worker's own output goes.
    echoes: bool = False


class SoftTimeout(Exception):  # noqa: N818 - users catch it, and this name says what happened
    """Raised inside a task at its soft time limit, so that the task can clean up and return."""

    __module__ = "horsies"


class Interrupted(BaseException):
    """Raised in user code to end it, so that its `finally` blocks run; never leaves an executor."""


class ExecutorStartError(Exception):
    """The executor could not start; the message contains the child's traceback."""


class BegunMarks(Protocol):
    """Records that a call begins, just before user code runs; the record survives kill -9."""

    def begin(self, slot: int) -> None: ...
    def has_begun(self, slot: int) -> bool: ...


class Definitions(Protocol):
    """Task definitions by name, and the hooks that a child runs before its first task."""

    @property
    def worker_id(self) -> str: ...
    @property
    def start_hooks(self) -> Sequence[Callable[[], None]]: ...
    @property
    def begun(self) -> BegunMarks | None: ...
    @property
    def middleware(self) -> "Middleware": ...
    def get(self, name: str, /) -> TaskDefinition | None: ...
    def finish(self) -> None:
        """Called in a child before it exits by itself."""
        ...


class Executor(Protocol):
    """Runs calls; lives on the worker's event loop and invokes callbacks only there."""

    @property
    def started_slots(self) -> int: ...
    @property
    def free_slots(self) -> int: ...
    async def start(self) -> None: ...
    def submit(self, call: Call, done: Done) -> None: ...
    def stop(self, task_id: str) -> bool:
        """End one call; False if it is not here. A success that it still delivers counts."""
        ...

    def withdraw(self, task_id: str) -> bool:
        """Report the call as `NotBegun` if it certainly has not begun; otherwise leave it alone."""
        ...

    def is_alive(self, task_id: str) -> bool: ...
    def begun_at(self, task_id: str) -> float | None: ...
    def collect_progress(self) -> None:
        """Bring the `progress` of running calls up to date."""
        ...

    async def close(self, *, kill: bool) -> None: ...
