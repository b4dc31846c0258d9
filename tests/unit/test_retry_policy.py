"""RetryPolicy: what it accepts and how long it waits."""

from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from horsies.result import OperationalErrorCode
from horsies.tasks.retry import RetryPolicy, retry_delay_s

CODES: Any = ["RATE_LIMITED"]


def test_defaults() -> None:
    policy = RetryPolicy(auto_retry_for=CODES)

    assert (policy.max_retries, policy.intervals) == (3, [60, 300, 900])
    assert (policy.backoff_strategy, policy.jitter) == ("fixed", True)


@pytest.mark.parametrize(
    ("fields", "text"),
    [
        ({"auto_retry_for": []}, "at least 1 item"),
        ({"auto_retry_for": ["ValueError"]}, "auto_retry_for.*looks like an exception class"),
        ({"auto_retry_for": ["OSError"]}, "auto_retry_for.*looks like an exception class"),
        ({"auto_retry_for": ["MyException"]}, "auto_retry_for.*looks like an exception class"),
        ({"auto_retry_for": ["lower"]}, "auto_retry_for.*is invalid"),
        ({"auto_retry_for": ["1X"]}, "auto_retry_for.*is invalid"),
        ({"max_retries": 0}, "greater than or equal to 1"),
        ({"max_retries": 21}, "less than or equal to 20"),
        ({"intervals": []}, "at least 1 item"),
        ({"intervals": [1, 2]}, "one interval per retry"),
        ({"intervals": [1, 2, 0]}, "greater than or equal to 1"),
        ({"intervals": [1, 2, 86_401]}, "less than or equal to 86400"),
        ({"intervals": [1, 2, 3], "backoff_strategy": "exponential"}, "exactly one interval"),
        ({"backoff_strategy": "linear"}, "fixed"),
        ({"tries": 3}, "Extra inputs"),
    ],
)
def test_what_makes_no_sense_is_a_value_error(fields: dict[str, Any], text: str) -> None:
    with pytest.raises(ValueError, match=text):
        RetryPolicy(**{"auto_retry_for": CODES, **fields})


def test_built_in_codes_are_listed_by_member_or_text() -> None:
    member = OperationalErrorCode.WORKER_CRASHED
    policy = RetryPolicy.fixed([1], auto_retry_for=[member, "TASK_TIMEOUT"])

    assert [str(code) for code in policy.auto_retry_for] == ["WORKER_CRASHED", "TASK_TIMEOUT"]


@pytest.mark.seed("S27", "S29")
def test_fixed_waits_each_interval_in_turn() -> None:
    policy = RetryPolicy.fixed([10, 20, 40], auto_retry_for=CODES, jitter=False)

    assert policy.max_retries == 3
    assert [policy.delay_seconds(n, random=Random()) for n in (1, 2, 3)] == [10, 20, 40]


@pytest.mark.seed("S29")
def test_exponential_doubles_each_time() -> None:
    policy = RetryPolicy.exponential(5, max_retries=4, auto_retry_for=CODES, jitter=False)

    assert [policy.delay_seconds(n, random=Random()) for n in (1, 2, 3, 4)] == [5, 10, 20, 40]


@given(
    base=st.integers(1, 86_400),
    retry_number=st.integers(1, 20),
    seed=st.integers(0, 2**32),
)
def test_jitter_stays_within_a_quarter_and_above_a_second(
    base: int, retry_number: int, seed: int
) -> None:
    plain = RetryPolicy.exponential(base, max_retries=20, auto_retry_for=CODES, jitter=False)
    jittered = RetryPolicy.exponential(base, max_retries=20, auto_retry_for=CODES)

    exact = plain.delay_seconds(retry_number, random=Random(seed))
    delay = jittered.delay_seconds(retry_number, random=Random(seed))

    assert max(1.0, exact * 0.75) <= delay <= exact * 1.25


ALL_CODES: Any = ["BUSY", "WORKER_CRASHED", "TASK_TIMEOUT", "TASK_EXPIRED", "BROKER_ERROR"]


@pytest.mark.seed("S27", "S28")
@pytest.mark.parametrize(
    ("code", "is_retried"),
    [
        ("BUSY", True),
        ("WORKER_CRASHED", True),
        (OperationalErrorCode.WORKER_CRASHED, True),
        ("TASK_TIMEOUT", True),
        ("TASK_EXPIRED", False),
        ("BROKER_ERROR", False),
        ("UNLISTED", False),
        ("UNHANDLED_EXCEPTION", False),
        (None, False),
    ],
)
def test_only_listed_codes_that_can_go_better_are_retried(
    code: str | None, is_retried: bool
) -> None:
    policy = RetryPolicy.fixed([7], auto_retry_for=ALL_CODES, jitter=False)

    delay = retry_delay_s(policy, code, 1, random=Random())

    assert delay == (7.0 if is_retried else None)


@pytest.mark.seed("S27")
def test_without_a_policy_nothing_is_retried() -> None:
    assert retry_delay_s(None, "BUSY", 1, random=Random()) is None
