"""Filters as people type them: what each word means, and what is said of a bad one."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from horsies.operations.filter_words import FilterError, parse_filter
from horsies.operations.filters import TaskFilter

NOW = datetime(2030, 1, 1, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("words", "fields"),
    [
        ("", {}),
        ("status:failed", {"statuses": ("FAILED",)}),
        ("status:failed,EXPIRED", {"statuses": ("FAILED", "EXPIRED")}),
        ("status:active", {"statuses": ("PENDING", "CLAIMED", "RUNNING")}),
        ("task:charge_* queue:mail", {"task_name": "charge_*", "queue_name": "mail"}),
        ("tag:a:b error:TASK_*", {"tag": "a:b", "error_code": "TASK_*"}),
        ("worker:host-a", {"worker": "host-a"}),
        ("0193e1", {"id_prefix": "0193e1"}),
        ("id:order-7", {"id_prefix": "order-7"}),
        ("since:2h", {"sent_since": NOW - timedelta(hours=2)}),
        ("until:90s", {"sent_until": NOW - timedelta(seconds=90)}),
        ("ended-since:3d", {"ended_since": NOW - timedelta(days=3)}),
        ("ended-until:1w", {"ended_until": NOW - timedelta(weeks=1)}),
        ("since:2030-01-01T09:00+00:00", {"sent_since": NOW - timedelta(hours=3)}),
        (
            "kwargs.order.id=42 args.0=x=y",
            {"arguments": (("kwargs.order.id", "42"), ("args.0", "x=y"))},
        ),
    ],
)
def test_words_become_a_filter(words: str, fields: dict[str, Any]) -> None:
    assert parse_filter(words, now=NOW) == TaskFilter(**fields)


@pytest.mark.parametrize(
    ("words", "answers"),
    [
        ("colour:red", ["'colour:red' is no filter", "status:", "kwargs.NAME=VALUE"]),
        ("failed", ["'failed' is no filter"]),
        ("status:broken", ["'broken' is no status", "pending", "active"]),
        ("since:999999w", ["since:999999w is no time"]),
        ("until:0001-01-01T00:00+14:00", ["is no time"]),
        ("since:yesterday", ["since:yesterday is no time", "2h", "2030-01-31T09:00"]),
        ("queue:", ["queue: needs a value", "queue:default"]),
        ("queue:a queue:b", ["'queue:b' is one too many"]),
    ],
)
def test_bad_words_are_refused_with_what_is_allowed(words: str, answers: list[str]) -> None:
    with pytest.raises(FilterError) as refused:
        parse_filter(words, now=NOW)

    assert [answer for answer in answers if answer not in str(refused.value)] == []


@pytest.mark.parametrize(
    ("words", "walk"),
    [
        ("", "made"),
        ("status:pending", "made"),
        ("status:running", "in_flight"),
        ("status:running,pending", "made"),
        ("status:failed", "ended"),
        ("error:BROKEN", "ended"),
        ("ended-since:1h", "ended"),
        ("status:failed 0193e1", "id"),
    ],
)
def test_each_filter_walks_the_index_that_fits(words: str, walk: str) -> None:
    assert parse_filter(words).walk == walk
