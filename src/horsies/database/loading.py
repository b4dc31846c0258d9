"""What the database may hold, as Python values: reading a row never raises.

PostgreSQL's instants reach beyond Python's, and its documents may be nested deeper than Python
reads. What does not fit becomes the nearest value that does, so that one odd row costs no other.
"""

import json
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from functools import cache
from types import NoneType, UnionType
from typing import Any, Union, get_args, get_origin, get_type_hints

import psycopg
from psycopg.abc import AdaptContext, Buffer
from psycopg.adapt import Loader
from psycopg.pq import Format
from psycopg.types.json import set_json_loads

# A day within what Python holds: local time, half a day off at most, must fit as well.
EARLIEST = datetime(1, 1, 2, tzinfo=UTC)
LATEST = datetime(9999, 12, 30, tzinfo=UTC)
UNREADABLE = "(cannot be read)"
_INTEGER_LIMIT = 2**63  # what the database's own integers hold; JSON has larger ones


def register_loaders(connection: psycopg.Connection[Any] | psycopg.AsyncConnection[Any]) -> None:
    """Have a connection of ours read whatever our tables may hold."""
    connection.adapters.register_loader("timestamptz", _InstantLoader)
    set_json_loads(_load_json, connection)


class _InstantLoader(Loader):
    """Infinite instants, and years before 1 and after 9999, are `EARLIEST` or `LATEST`."""

    def __init__(self, oid: int, context: AdaptContext | None = None) -> None:
        super().__init__(oid, context)
        made = psycopg.adapters.get_loader(oid, Format.TEXT)
        assert made is not None, "the driver reads instants"
        self._load = made(oid, context).load

    def load(self, data: Buffer) -> datetime:
        try:
            instant: datetime = self._load(data)
        except (psycopg.DataError, ValueError, OverflowError):
            text = bytes(data)
            return EARLIEST if text.startswith(b"-") or text.endswith(b"BC") else LATEST
        return min(max(instant, EARLIEST), LATEST)


@cache
def container_columns(row: Callable[..., object]) -> Sequence[tuple[int, object]]:
    """The columns of a row type that hold lists or objects: their places and declared types."""
    if not isinstance(row, type):
        return ()
    hints = enumerate(get_type_hints(row).values())
    return [(place, hint) for place, hint in hints if get_origin(_kinds(hint)[0]) in (list, dict)]


def fitted(value: Any, declared: object) -> Any:
    """A list or an object without the parts that are not of their declared types.

    What is none at all becomes `None` where that is allowed, else empty.
    """
    kind, *others = _kinds(declared)
    origin, parts = get_origin(kind), get_args(kind)
    if origin is dict and isinstance(value, dict):
        return {key: one for key, one in value.items() if _fits(one, parts[1])}
    if origin is list and isinstance(value, list):
        return [one for one in value if _fits(one, parts[0])]
    return None if NoneType in others else kind()


def _fits(value: Any, declared: object) -> bool:
    return any(_fits_kind(value, kind) for kind in _kinds(declared))


def _fits_kind(value: Any, kind: Any) -> bool:
    origin, parts = get_origin(kind), get_args(kind)
    if origin is dict:
        return isinstance(value, dict) and all(_fits(one, parts[1]) for one in value.values())
    if kind is int:
        return isinstance(value, int) and abs(value) < _INTEGER_LIMIT
    return kind is Any or isinstance(value, origin or kind)


def _kinds(declared: object) -> Sequence[Any]:
    is_union = get_origin(declared) in (Union, UnionType)
    return get_args(declared) if is_union else (declared,)


def _load_json(text: str | bytes) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):  # too many digits for a number, or too deep
        return UNREADABLE
