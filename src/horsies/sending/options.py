"""What one send may change, and whether that is well formed."""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Literal, TypedDict

from horsies.codec.text import is_storable
from horsies.codes import ErrorCode
from horsies.errors import TaskDefinitionError
from horsies.tasks.definition import TaskDefinition

_TIME_LIMIT_RANGE_MS = (1_000, 86_400_000)
_LONGEST_DELAY_S = 100 * 365.25 * 86_400  # a century: beyond it is a mistake in the unit


@dataclass(frozen=True, slots=True)
class SendOptions:
    """What one send may change.

    `connection`: a user's own connection whose transaction the task joins.
    """

    good_until: datetime | None = None
    unique_key: str | None = None
    unique_scope: Literal["unfinished", "stored"] = "unfinished"
    priority: int | None = None
    queue_name: str | None = None
    run_at: datetime | None = None
    delay: float | timedelta | None = None
    tags: Iterable[str] = ()
    timeout_ms: int | None = None
    soft_timeout_ms: int | None = None
    connection: Any = None

    def __post_init__(self) -> None:
        tags = (self.tags,) if isinstance(self.tags, str) else tuple(self.tags)
        object.__setattr__(self, "tags", tags)


class SendChanges(TypedDict, total=False):
    """What `with_options` takes; see `SendOptions`."""

    good_until: datetime | None
    unique_key: str | None
    unique_scope: Literal["unfinished", "stored"]
    priority: int | None
    queue_name: str | None
    run_at: datetime | None
    delay: float | timedelta | None
    tags: Iterable[str]
    timeout_ms: int | None
    soft_timeout_ms: int | None
    connection: Any


def default_options(definition: TaskDefinition) -> SendOptions:
    """The options of a send that names none: those of the task; wrong ones are refused."""
    options = SendOptions(**definition.send_defaults)
    try:
        check_options(options)
    except ValueError as error:
        raise TaskDefinitionError(
            f"task {definition.name!r}: {error}",
            ErrorCode.TASK_INVALID_OPTIONS,
            definition.location,
            help_text="these defaults follow the rules of task.with_options(...)",
        ) from None
    return options


def check_options(options: SendOptions) -> float | None:
    """Refuse what is not well formed with a ValueError; return the delay in seconds."""
    _check_instant("good_until", options.good_until)
    _check_instant("run_at", options.run_at)
    _check_number("priority", options.priority, (1, 100))
    _check_number("timeout_ms", options.timeout_ms, _TIME_LIMIT_RANGE_MS)
    _check_number("soft_timeout_ms", options.soft_timeout_ms, _TIME_LIMIT_RANGE_MS)
    _check_unique_key(options.unique_key, options.unique_scope)
    if not all(_is_text(tag) for tag in options.tags):
        raise ValueError(f"tags must be texts of at least one character, got {options.tags!r}")
    if options.run_at is not None and options.delay is not None:
        raise ValueError("give run_at or delay, not both")
    return _seconds(options.delay)


def stored_options(definition: TaskDefinition, options: SendOptions) -> str:
    """The options text of the row: the definition's, with what this send changes."""
    changes: dict[str, Any] = {
        name: value
        for name in ("good_until", "timeout_ms", "soft_timeout_ms", "unique_key", "tags")
        if (value := getattr(options, name))
    }
    if options.unique_key is not None and options.unique_scope == "stored":
        changes["unique_scope"] = "stored"
    return definition.options_json(**changes) if changes else definition.task_options_json


def _check_instant(name: str, instant: object) -> None:
    if instant is None:
        return
    if not isinstance(instant, datetime):
        raise ValueError(f"{name} must be a datetime, got {instant!r}")  # noqa: TRY004 - told as a value
    if instant.tzinfo is None:
        raise ValueError(f"{name} must be timezone-aware, as in datetime.now(timezone.utc)")


def _check_number(name: str, number: object, limits: tuple[int, int]) -> None:
    low, high = limits
    if number is None:
        return
    if not isinstance(number, int) or isinstance(number, bool) or not low <= number <= high:
        raise ValueError(f"{name} must be an integer from {low} to {high}, got {number!r}")


def _check_unique_key(key: object, scope: object) -> None:
    if scope not in ("unfinished", "stored"):
        raise ValueError(f"unique_scope must be 'unfinished' or 'stored', got {scope!r}")
    if key is not None and not (_is_text(key) and len(str(key)) <= 255):
        raise ValueError(f"unique_key must be a text of 1 to 255 characters, got {key!r}")


def _is_text(value: object) -> bool:
    """A text the database can hold: not empty, no NUL, no lone surrogates."""
    return isinstance(value, str) and bool(value) and is_storable(value)


def _seconds(delay: Any) -> float | None:
    if delay is None:
        return None
    seconds = delay.total_seconds() if isinstance(delay, timedelta) else delay
    is_number = isinstance(seconds, (int, float)) and not isinstance(seconds, bool)
    if not is_number or not math.isfinite(seconds) or not 0 <= seconds <= _LONGEST_DELAY_S:
        raise ValueError(f"delay must be a number of seconds from 0 to a century, got {delay!r}")
    checked: float = seconds
    return checked
