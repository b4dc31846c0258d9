"""The pages that the menu lists, in its order: one line per page."""

from typing import NamedTuple


class Entry(NamedTuple):
    """A page in the menu; `g` and then `key` goes there."""

    path: str
    title: str
    key: str


NAVIGATION = (
    Entry("/", "Overview", "o"),
    Entry("/tasks", "Tasks", "t"),
    Entry("/queues", "Queues", "q"),
    Entry("/workers", "Workers", "w"),
    Entry("/workflows", "Workflows", "f"),
    Entry("/schedules", "Schedules", "s"),
    Entry("/failures", "Failures", "e"),
    Entry("/maintenance", "Maintenance", "m"),
)
