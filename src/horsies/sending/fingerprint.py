"""The digest that makes a repeated enqueue harmless (docs/contract/tasks.md §8.3)."""

import hashlib
import json
from datetime import UTC, datetime

from pydantic_core import to_json


class Fingerprint:
    """All of the digest but arguments and send time, made once for many sends alike."""

    def __init__(  # six of the contract's nine parts, by keyword only
        self,
        *,
        task_name: str,
        queue_name: str,
        priority: int,
        good_until: datetime | None,
        enqueue_delay_seconds: float | None,
        task_options: str | None,
    ) -> None:
        until = None if good_until is None else _instant(good_until)
        self._head = _elements(task_name, queue_name, priority)
        self._tail = _elements(until, enqueue_delay_seconds, task_options)
        self._last_sent: tuple[datetime | None, str] = (None, "")

    def digest(self, args_json: str | None, kwargs_json: str | None, sent_at: datetime) -> str:
        """The SHA-256 as lowercase hex."""
        known, instant = self._last_sent
        if known is not sent_at:  # a bulk send has one instant for thousands of rows
            instant = _instant(sent_at)
            self._last_sent = (sent_at, instant)
        # Texts and nulls are written alike by both writers, and by this one in a tenth of the time.
        middle = to_json((args_json, kwargs_json, instant))[1:-1]
        return hashlib.sha256(b"[%b,%b,%b]" % (self._head, middle, self._tail)).hexdigest()


def enqueue_fingerprint(  # noqa: PLR0913  # the contract's nine parts, by keyword only
    *,
    task_name: str,
    queue_name: str,
    priority: int,
    args_json: str | None,
    kwargs_json: str | None,
    sent_at: datetime,
    good_until: datetime | None,
    enqueue_delay_seconds: float | None,
    task_options: str | None,
) -> str:
    """Return the SHA-256 of the payload as lowercase hex; naive instants raise ValueError."""
    fingerprint = Fingerprint(
        task_name=task_name,
        queue_name=queue_name,
        priority=priority,
        good_until=good_until,
        enqueue_delay_seconds=enqueue_delay_seconds,
        task_options=task_options,
    )
    return fingerprint.digest(args_json, kwargs_json, sent_at)


def _elements(*values: object) -> bytes:
    """A JSON array without its brackets; numbers as Python writes them."""
    return json.dumps(values, separators=(",", ":"), ensure_ascii=False)[1:-1].encode()


def _instant(value: datetime) -> str:
    if value.tzinfo is None:
        raise ValueError("a fingerprint needs timezone-aware instants")
    return value.astimezone(UTC).isoformat(timespec="microseconds")
