"""What a filter that is being typed may go on with."""

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from horsies.operations.filter_words import WORDS
from horsies.states import TaskStatus

_LIMIT = 12
_ABOUT = {
    "status": "in one of these states",
    "task": "of this name; * stands for any text",
    "queue": "in this queue",
    "tag": "with this tag",
    "error": "that ended with this code",
    "worker": "held by this host or worker",
    "id": "whose id begins like this",
    "since": "sent since: 2h, 3d or a time",
    "until": "sent until: 10m or a time",
    "ended-since": "that ended since: 2h or a time",
    "ended-until": "that ended until: 10m or a time",
}
_AGES = {"5m": "5 minutes ago", "1h": "an hour ago", "24h": "a day ago", "7d": "a week ago"}
STATUSES = {
    **{status.value.lower(): "" for status in TaskStatus},
    "active": "pending, claimed or running",
    "ended": "all other states",
}


class Suggestion(NamedTuple):
    """A word, and what it means."""

    word: str
    about: str


def suggest(typed: str, known: Mapping[str, Sequence[str]]) -> list[Suggestion]:
    """The words that begin as typed; `known` has values of `queue`, `task` and so on."""
    name, colon, value = typed.partition(":")
    if not colon:
        words = [Suggestion(f"{word}:", _ABOUT[word]) for word in WORDS if word.startswith(typed)]
        arguments = [
            Suggestion("kwargs.", "an argument: kwargs.order=42"),
            Suggestion("args.", "an argument by position: args.0=42"),
        ]
        return [*words, *(one for one in arguments if one.word.startswith(typed))][:_LIMIT]
    if name == "status":
        before, comma, last = value.rpartition(",")
        return [
            Suggestion(f"status:{before}{comma}{status}", about)
            for status, about in STATUSES.items()
            if status.startswith(last.lower())
        ][:_LIMIT]
    if name.endswith(("since", "until")) and name in WORDS:
        return [
            Suggestion(f"{name}:{age}", about)
            for age, about in _AGES.items()
            if age.startswith(value)
        ]
    return [Suggestion(f"{name}:{one}", "") for one in _fitting(value, known.get(name, ()))]


def _fitting(value: str, known: Iterable[str]) -> list[str]:
    """Those that begin like it first, then those that contain it; a space would end the word."""
    named = sorted({one for one in known if " " not in one})
    begin = [one for one in named if one.startswith(value)]
    contain = [one for one in named if value in one and one not in begin]
    return [*begin, *contain][:_LIMIT]
