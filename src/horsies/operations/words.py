"""Lengths of time, instants and counts as people say them."""

from collections.abc import Sequence
from datetime import datetime, timedelta


def duration(length: timedelta | None) -> str:
    """A length of time in at most two units."""
    if length is None:
        return ""
    seconds = max(length.total_seconds(), 0.0)
    if seconds < 1:
        return f"{seconds * 1000:.0f} ms"
    if seconds < 60:
        return f"{seconds:.1f} s"
    units = (("d", 86_400), ("h", 3_600), ("min", 60), ("s", 1))
    whole = int(seconds)
    at = next(i for i, (_, size) in enumerate(units) if whole >= size)
    parts = [f"{whole // units[at][1]} {units[at][0]}"]
    if at + 1 < len(units) and (rest := whole % units[at][1] // units[at + 1][1]):
        parts.append(f"{rest} {units[at + 1][0]}")
    return " ".join(parts)


def moment(at: datetime, now: datetime) -> str:
    """An instant in local time, without the date if it is today's."""
    local = at.astimezone()
    return f"{local:%H:%M:%S}" if local.date() == now.astimezone().date() else f"{local:%F %T}"


def listed(words: Sequence[str], at_most: int = 3) -> str:
    """`a, b and c`; of many the first ones and how many more there are."""
    said = list(words[:at_most])
    if len(words) > at_most:
        said.append(f"{len(words) - at_most} more")
    return said[0] if len(said) == 1 else f"{', '.join(said[:-1])} and {said[-1]}" if said else ""


def counted(number: int, limit: int) -> str:
    """`1,203`, or `10,000+` for a count that stopped there."""
    return f"{limit:,}+" if number > limit else f"{number:,}"
