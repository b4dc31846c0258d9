"""What every executor takes and gives: calls, outcomes, and the protocol the worker drives."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol, TypeAlias

from horsies.tasks.definition import TaskDefinition

STOP_GRACE_SECONDS = 5.0


class Call:
    """One attempt at one task, as it is handed to an executor.

    `slot` is where its beginning is noted, see `BegunMarks`.
    """

    __slots__ = (
        "args",
        "attempt",
        "kwargs",
        "slot",
        "soft_timeout_ms",
        "task_id",
        "task_name",
        "timeout_ms",
    )

    def __init__(  # noqa: PLR0913, PLR0917 - these travel to a child in this order
        self,
        task_id: str,
        task_name: str,
        attempt: int,
        args: str | None = None,
        kwargs: str | None = None,
        timeout_ms: int | None = None,
        soft_timeout_ms: int | None = None,
        slot: int = 0,
    ) -> None:
        self.task_id = task_id
        self.task_name = task_name
        self.attempt = attempt
        self.args = args
        self.kwargs = kwargs
        self.timeout_ms = timeout_ms
        self.soft_timeout_ms = soft_timeout_ms
        self.slot = slot


class Delivered(NamedTuple):
    """The call ended by itself; `result` is the stored text of its TaskResult."""

    result: str
    is_ok: bool
    error_code: str | None
    error_message: str | None
    duration_s: float
    log: str | None = None
    log_truncated: bool = False


class Crashed(NamedTuple):
    """The executing process ended without a result after user code had begun."""

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
    """The call was ended by our own stop() or close(kill=True)."""

    log: str | None = None
    log_truncated: bool = False


@dataclass(frozen=True, slots=True)
class NotBegun:
    """User code never began: the call may be handed elsewhere as the same attempt."""


Outcome: TypeAlias = Delivered | Crashed | TimedOut | Stopped | NotBegun
Done: TypeAlias = Callable[[Call, Outcome], None]


@dataclass(frozen=True, slots=True)
class CaptureSettings:
    """Whether output is kept with the attempt, and how much of its tail."""

    enabled: bool = True
    max_bytes: int = 65_536


class SoftTimeout(Exception):  # noqa: N818 - users catch it by the name of what happened
    """Raised inside a task at its soft time limit, so that it may tidy up and return."""


class Interrupted(BaseException):
    """Raised in user code to end it, so that its `finally` blocks run; never seen outside."""


class ExecutorStartError(Exception):
    """The executor could not start; the message carries the child's traceback."""


class BegunMarks(Protocol):
    """Where it is noted, just before user code, that a call begins; outlives a kill -9."""

    def begin(self, slot: int) -> None: ...
    def has_begun(self, slot: int) -> bool: ...


class Definitions(Protocol):
    """Task definitions by name, and what runs in each child before its first task."""

    @property
    def start_hooks(self) -> Sequence[Callable[[], None]]: ...
    @property
    def begun(self) -> BegunMarks | None: ...
    def get(self, name: str, /) -> TaskDefinition | None: ...


class Executor(Protocol):
    """Runs calls; lives on the worker's event loop and calls back only there."""

    @property
    def started_slots(self) -> int: ...
    @property
    def free_slots(self) -> int: ...
    async def start(self) -> None: ...
    def submit(self, call: Call, done: Done) -> None: ...
    def stop(self, task_id: str) -> bool:
        """End one call; False when it is not here. A result it still gives with ok counts."""
        ...

    def is_alive(self, task_id: str) -> bool: ...
    def begun_at(self, task_id: str) -> float | None: ...
    async def close(self, *, kill: bool) -> None: ...
