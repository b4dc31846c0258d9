"""The digest by which a repeated enqueue of the same payload is known."""

import hashlib
import json
from datetime import UTC, datetime


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
    parts = [
        task_name,
        queue_name,
        priority,
        args_json,
        kwargs_json,
        _instant(sent_at),
        None if good_until is None else _instant(good_until),
        enqueue_delay_seconds,
        task_options,
    ]
    text = json.dumps(parts, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(text.encode()).hexdigest()


def _instant(value: datetime) -> str:
    if value.tzinfo is None:
        raise ValueError("a fingerprint needs timezone-aware instants")
    return value.astimezone(UTC).isoformat(timespec="microseconds")
