"""The task_options column: written, read, and what is wrong with it."""

import json
from datetime import UTC, datetime
from typing import Any

import pytest

from horsies.result import Err, Ok, OperationalErrorCode
from horsies.tasks.options import (
    StoredOptions,
    parse_task_options,
    read_task_options,
    write_task_options,
)
from horsies.tasks.retry import RetryPolicy

POLICY = RetryPolicy.fixed(
    [5, 10], auto_retry_for=["BUSY", OperationalErrorCode.WORKER_CRASHED], jitter=False
)


@pytest.mark.seed("S103")
def test_only_what_is_set_is_written() -> None:
    assert write_task_options(StoredOptions()) == '{"retry_policy":null,"good_until":null}'
    assert json.loads(write_task_options(StoredOptions(retry_policy=POLICY, timeout_ms=2000))) == {
        "retry_policy": {
            "max_retries": 2,
            "intervals": [5, 10],
            "backoff_strategy": "fixed",
            "jitter": False,
            "auto_retry_for": ["BUSY", "WORKER_CRASHED"],
        },
        "good_until": None,
        "timeout_ms": 2000,
    }


@pytest.mark.parametrize(
    "options",
    [
        StoredOptions(),
        StoredOptions(good_until=datetime(2024, 1, 1, tzinfo=UTC)),
        StoredOptions(unique_key="k", unique_scope="stored"),
        StoredOptions(timeout_ms=5000, soft_timeout_ms=4000, tags=("a", "b")),
    ],
)
def test_options_round_trip(options: StoredOptions) -> None:
    assert parse_task_options(write_task_options(options)) == options


@pytest.mark.seed("S27")
def test_a_stored_policy_is_read_back_with_its_retries() -> None:
    options = parse_task_options(write_task_options(StoredOptions(retry_policy=POLICY)))

    assert options.retry_policy is not None
    assert options.retry_policy.intervals == [5, 10]
    assert options.max_retries == 2
    assert parse_task_options(None).max_retries == 0


def test_the_same_text_is_parsed_once() -> None:
    text = write_task_options(StoredOptions(retry_policy=POLICY, unique_key="once"))

    assert parse_task_options(text) is parse_task_options(text)


def test_keys_of_integrations_are_left_alone() -> None:
    assert read_task_options('{"retry_policy":null,"django":{"x":1}}') == Ok(StoredOptions())


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("{", "invalid task_options_json"),
        ("[]", "task_options_json must be an object"),
        ('{"retry_policy":3}', "retry_policy must be an object"),
        ('{"retry_policy":{}}', "retry_policy.auto_retry_for is required"),
        ('{"retry_policy":{"auto_retry_for":"X"}}', "auto_retry_for must be a list"),
        ('{"retry_policy":{"auto_retry_for":[]}}', "auto_retry_for must not be empty"),
        ('{"retry_policy":{"auto_retry_for":[1]}}', "auto_retry_for entries must be strings"),
        (
            '{"retry_policy":{"auto_retry_for":["KeyError"]}}',
            "looks like an exception class name",
        ),
        ('{"retry_policy":{"auto_retry_for":["x y"]}}', "is invalid"),
        (
            '{"retry_policy":{"auto_retry_for":["X"],"max_retries":99}}',
            "invalid retry_policy metadata",
        ),
        ('{"timeout_ms":"soon"}', "invalid task_options_json"),
        ('{"good_until":"soon"}', "invalid task_options_json"),
    ],
)
def test_bad_texts_are_explained_and_carry_nothing(text: str, problem: str) -> None:
    result: Any = read_task_options(text)

    assert isinstance(result, Err)
    assert problem in result.err_value
    assert parse_task_options(text) == StoredOptions()
