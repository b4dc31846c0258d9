"""Filters as people type them: `status:failed task:charge_* since:2h kwargs.order=42`."""

import re
from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Any

from horsies.clock import utc_now
from horsies.operations.filters import ENDED, IN_FLIGHT, TaskFilter
from horsies.states import TaskStatus

_GROUPS = {"active": ("PENDING", *IN_FLIGHT), "ended": ENDED}
_TEXTS = {
    "task": "task_name",
    "queue": "queue_name",
    "tag": "tag",
    "error": "error_code",
    "worker": "worker",
    "id": "id_prefix",
}
_INSTANTS = {
    "since": "sent_since",
    "until": "sent_until",
    "ended-since": "ended_since",
    "ended-until": "ended_until",
}
_UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days", "w": "weeks"}
_AGE = re.compile(r"(\d{1,6})([smhdw])")
_ARGUMENT = re.compile(r"((?:args|kwargs)\.[^=]+)=(.*)", re.DOTALL)
_ID = re.compile(r"[0-9a-f][0-9a-f-]*")
WORDS = ("status", *_TEXTS, *_INSTANTS)


class FilterError(ValueError):
    """A word of a filter that means nothing; the text says what was wrong and what is allowed."""

    __module__ = "horsies"


def parse_filter(text: str | Iterable[str], *, now: datetime | None = None) -> TaskFilter:
    """The filter that these words describe: `parse_filter("status:failed since:2h")`.

    Raises `FilterError` for a word or value that means nothing.
    """
    words = text.split() if isinstance(text, str) else text
    fields: dict[str, Any] = {}
    for word in words:
        field, value = _read(word, now or utc_now())
        if field == "arguments":
            value = (*fields.get(field, ()), value)
        elif field in fields:
            raise FilterError(f"{word!r} is one too many; a filter takes each word once")
        fields[field] = value
    return TaskFilter(**fields)


def is_filter_word(word: str) -> bool:
    """Whether a word is meant as a filter, be its value good or bad."""
    is_named = word.partition(":")[0] in WORDS and ":" in word
    return is_named or bool(_ARGUMENT.fullmatch(word) or _ID.fullmatch(word))


def _read(word: str, now: datetime) -> tuple[str, Any]:
    """The field of the filter that a word sets, and its value."""
    if argument := _ARGUMENT.fullmatch(word):
        return "arguments", (argument[1], argument[2])
    name, colon, value = word.partition(":")
    if not colon and _ID.fullmatch(word):
        return "id_prefix", word
    if name not in WORDS or not colon:
        allowed = ", ".join(f"{known}:" for known in WORDS)
        raise FilterError(
            f"{word!r} is no filter; allowed are {allowed} kwargs.NAME=VALUE, args.NUMBER=VALUE "
            "and the beginning of an id"
        )
    if not value:
        raise FilterError(f"{name}: needs a value, such as {name}:{_EXAMPLES[name]}")
    if name == "status":
        return "statuses", _statuses(value)
    if name in _INSTANTS:
        return _INSTANTS[name], read_instant(name, value, now)
    return _TEXTS[name], value


_EXAMPLES = {
    "status": "failed",
    "task": "charge_*",
    "queue": "default",
    "tag": "import-42",
    "error": "TASK_TIMEOUT",
    "worker": "host-a",
    "id": "0193e1",
    **dict.fromkeys(_INSTANTS, "2h"),
}


def _statuses(value: str) -> tuple[str, ...]:
    found: list[str] = []
    for one in value.split(","):
        if one.lower() in _GROUPS:
            found += _GROUPS[one.lower()]
        elif one.upper() in TaskStatus.__members__:
            found.append(one.upper())
        else:
            allowed = ", ".join([*(known.lower() for known in TaskStatus.__members__), *_GROUPS])
            raise FilterError(f"{one!r} is no status; allowed are {allowed}")
    return tuple(dict.fromkeys(found))


def read_due(name: str, value: str, now: datetime) -> datetime:
    """An instant to come: `2h` is so long from now; or a time, as above."""
    instant = read_instant(name, value, now)
    return now + (now - instant) if _AGE.fullmatch(value) else instant


def read_instant(name: str, value: str, now: datetime) -> datetime:
    """An instant: an age such as `2h`, or a time such as `2030-01-31T09:00`, local if bare."""
    try:
        if age := _AGE.fullmatch(value):
            return now - timedelta(**{_UNITS[age[2]]: int(age[1])})
        return datetime.fromisoformat(value).astimezone()
    except (ValueError, OverflowError, OSError):  # also an instant that no calendar has
        raise FilterError(
            f"{name}:{value} is no time; give an age such as 90s, 10m, 2h, 3d or 1w, or a time "
            "such as 2030-01-31T09:00"
        ) from None
