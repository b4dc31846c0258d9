"""Which tasks an operation on many is about, and which index finds them."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TypedDict

from horsies.states import TASK_TERMINAL_STATES

ENDED = tuple(sorted(status.value for status in TASK_TERMINAL_STATES))
_LAST = "\U0010ffff"  # sorts behind every id
IN_FLIGHT = ("CLAIMED", "RUNNING")
_WITH_ERRORS = ("FAILED", "EXPIRED", "CANCELLED")
# What is sent late, by a schedule that catches up, bears the time of its slot.
_UNTIL_SLACK = timedelta(hours=1)
# An id is made by the sender's clock a moment before or after `sent_at`.
_ID_SLACK = timedelta(minutes=1)


@dataclass(frozen=True, slots=True)
class TaskFilter:
    """Tasks in these states (none given: in any), narrowed by what is given.

    `task_name` and `error_code` may hold `*`. `worker` is a host, or the beginning of a worker's
    id. `arguments` are paths with the text of their value: `("kwargs.order", "42")`.
    """

    statuses: tuple[str, ...] = ()
    task_name: str | None = None
    queue_name: str | None = None
    tag: str | None = None
    error_code: str | None = None
    worker: str | None = None
    id_prefix: str | None = None
    sent_since: datetime | None = None
    sent_until: datetime | None = None
    ended_since: datetime | None = None
    ended_until: datetime | None = None
    arguments: tuple[tuple[str, str], ...] = ()
    task_names: tuple[str, ...] | None = None

    @property
    def found_statuses(self) -> tuple[str, ...]:
        """The states that tasks with all these properties can be in; none: any."""
        if self.error_code:
            possible: tuple[str, ...] = _WITH_ERRORS
        elif self.ended_since or self.ended_until:
            possible = ENDED
        else:
            return self.statuses
        found = tuple(status for status in self.statuses if status in possible)
        # Asked only for states that have no error or no end: then nothing fits, and no other state.
        return found or self.statuses or possible

    @property
    def walk(self) -> str:
        """The index that finds them, and so their order: by id, by birth, by claim or by end."""
        statuses = self.found_statuses
        if self.id_prefix is not None:
            return "id"
        if not statuses:
            return "made"
        if all(status in ENDED for status in statuses):
            return "ended"
        return "in_flight" if all(status in IN_FLIGHT for status in statuses) else "made"

    def wanted(self, *, is_plain: bool) -> dict[str, object]:
        """What `horsies_find_tasks` takes; `is_plain` leaves out the nodes of workflows."""
        arguments = [_argument(path, value) for path, value in self.arguments]
        values: Mapping[str, object] = {
            "statuses": list(self.found_statuses),
            "task_name": _pattern(self.task_name),
            "queue_name": self.queue_name,
            "tag": self.tag,
            "error_code": _pattern(self.error_code),
            "worker": self.worker,
            "lowest_id": self._lowest_id(),
            "sent_since": self.sent_since,
            "sent_until": self.sent_until,
            "ended_since": self.ended_since,
            "ended_until": self.ended_until,
            "is_plain": is_plain,
            "arguments": arguments,
            "hint": max((one["hint"] for one in arguments), key=len, default=""),
            "task_names": None if self.task_names is None else list(self.task_names),
        }
        return {name: value for name, value in values.items() if value}

    def _lowest_id(self) -> str | None:
        if self.id_prefix is not None:
            return self.id_prefix
        return None if self.sent_since is None else id_at(self.sent_since - _ID_SLACK)

    @property
    def before_id(self) -> str:
        """Where a walk by id or by birth starts."""
        if self.id_prefix is not None:
            return self.id_prefix + _LAST
        return _LAST if self.sent_until is None else id_at(self.sent_until + _UNTIL_SLACK) + _LAST


def id_at(instant: datetime) -> str:
    """The least id that can have been made at this time."""
    milliseconds = max(int(instant.timestamp() * 1000), 0)
    return f"{milliseconds >> 16:08x}-{milliseconds & 0xFFFF:04x}"


def _pattern(text: str | None) -> str | None:
    """`charge_*` as LIKE reads it."""
    if text is None:
        return None
    for special in "\\%_":
        text = text.replace(special, "\\" + special)
    return text.replace("*", "%")


class _Argument(TypedDict):
    path: list[str]
    value: str
    hint: str  # a text that matching arguments contain


def _argument(path: str, value: str) -> _Argument:
    # Only plain text is stored as it is typed: other characters may be escaped.
    is_plain = value.isascii() and value.replace("-", "").replace("_", "").isalnum()
    return {"path": path.split("."), "value": value, "hint": value if is_plain else ""}
