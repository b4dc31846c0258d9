"""The digest that makes a repeated enqueue harmless."""

import hashlib
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest

from horsies import AppConfig, Horsies, PostgresConfig, TaskError, TaskResult
from horsies.sending.fingerprint import enqueue_fingerprint
from horsies.sending.options import SendOptions
from horsies.sending.prepared import PreparedSend
from horsies.sending.resend import is_unchanged
from horsies.sending.rows import payload_of

SENT_AT = datetime(2024, 1, 2, 3, 4, 5, tzinfo=UTC)
PAYLOAD: dict[str, Any] = {
    "task_name": "feed",
    "queue_name": "default",
    "priority": 100,
    "args_json": "[1]",
    "kwargs_json": None,
    "sent_at": SENT_AT,
    "good_until": None,
    "enqueue_delay_seconds": None,
    "task_options": '{"retry_policy":null,"good_until":null}',
}


@pytest.mark.seed("S108")
def test_the_digest_is_that_of_the_compact_array() -> None:
    text = (
        '["feed","default",100,"[1]",null,"2024-01-02T03:04:05.000000+00:00",null,null,'
        '"{\\"retry_policy\\":null,\\"good_until\\":null}"]'
    )

    assert enqueue_fingerprint(**PAYLOAD) == hashlib.sha256(text.encode()).hexdigest()


def test_the_same_instant_in_another_zone_is_the_same_payload() -> None:
    elsewhere = SENT_AT.astimezone(timezone(timedelta(hours=5)))

    assert enqueue_fingerprint(**PAYLOAD | {"sent_at": elsewhere}) == enqueue_fingerprint(**PAYLOAD)


@pytest.mark.parametrize(
    "change",
    [
        {"task_name": "other"},
        {"queue_name": "fast"},
        {"priority": 1},
        {"args_json": None},
        {"kwargs_json": "{}"},
        {"sent_at": SENT_AT + timedelta(microseconds=1)},
        {"good_until": SENT_AT},
        {"enqueue_delay_seconds": 0},
        {"task_options": None},
    ],
    ids=lambda change: next(iter(change)),
)
def test_every_part_counts(change: dict[str, Any]) -> None:
    assert enqueue_fingerprint(**PAYLOAD | change) != enqueue_fingerprint(**PAYLOAD)


@pytest.mark.parametrize("field", ["sent_at", "good_until"])
def test_naive_instants_are_an_error(field: str) -> None:
    with pytest.raises(ValueError, match="timezone"):
        enqueue_fingerprint(**PAYLOAD | {field: datetime(2024, 1, 1)})  # noqa: DTZ001


@pytest.mark.parametrize("delay", [0, 0.00005, 1e-9, 0.1, 1.5, 1e9, 3_000_000_000.123])
def test_a_delayed_send_can_be_sent_again_as_itself(delay: float) -> None:
    app = Horsies(AppConfig(broker=PostgresConfig(database_url="postgresql://nowhere/none")))
    feed: Any = app.task("feed", function_of_one)
    prepared = PreparedSend(app, feed.definition, SendOptions(delay=delay))

    payload = payload_of(prepared.row("an-id", (1,), {}, SENT_AT).unwrap())

    assert payload is not None
    assert payload.enqueue_delay_seconds == delay
    assert is_unchanged(payload)


def function_of_one(number: int) -> TaskResult[int, TaskError]:
    return TaskResult(ok=number)
