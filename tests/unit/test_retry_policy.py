"""RetryPolicy: what it accepts and how long it waits."""

from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from horsies.codes import ErrorCode
from horsies.errors import ConfigurationError
from horsies.result import OperationalErrorCode
from horsies.tasks.options import StoredOptions, read_task_options, write_task_options
from horsies.tasks.retry import BY_POLICY, RetryPolicy, retry_delay_s

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
        ({"max_retries": 0}, "from 1 to 20"),
        ({"max_retries": 21}, "from 1 to 20"),
        ({"intervals": []}, "1 to 20 waits"),
        ({"intervals": [1, 2]}, "one interval per retry"),
        ({"intervals": [1, 2, 0]}, "from 0.01 to 86400 seconds"),
        ({"intervals": [1, 2, 86_401]}, "from 0.01 to 86400 seconds"),
        ({"intervals": [1, 2, 3], "backoff_strategy": "exponential"}, "exactly one interval"),
        ({"backoff_strategy": "linear"}, "fixed"),
        ({"tries": 3}, "no option 'tries'"),
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


@given(retry_number=st.integers(1, 20), seed=st.integers(0, 2**32))
def test_jitter_does_not_pass_the_longest_wait(retry_number: int, seed: int) -> None:
    policy = RetryPolicy.exponential(2, max_retries=20, auto_retry_for=CODES, max_interval=30)

    delay = policy.delay_seconds(retry_number, random=Random(seed))

    exact = min(2**retry_number, 30)
    assert exact * 0.75 <= delay <= min(exact * 1.25, 30.000001)


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


ONE = {"auto_retry_for": ["X"]}


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"auto_retry_for": [ValueError]}, "write retry_on=[ValueError]"),
        ({"auto_retry_for": "RATE_LIMITED"}, "must be a list of error codes, not 'RATE_LIMITED'"),
        ({"auto_retry_for": []}, "auto_retry_for must have at least 1 item"),
        ({}, "auto_retry_for must have at least 1 item"),
        ({**ONE, "max_retries": 0}, "max_retries must be a whole number from 1 to 20"),
        ({**ONE, "retries": 3}, "there is no option 'retries'"),
        ({**ONE, "intervals": [1, 0, 1]}, "intervals must be a list of 1 to 20 waits"),
        ({**ONE, "intervals": 60}, "intervals must be a list of 1 to 20 waits"),
        ({**ONE, "intervals": [1]}, "one interval per retry"),
        ({**ONE, "max_retries": 99}, "max_retries must be a whole number from 1 to 20"),
        ({**ONE, "jitter": "much"}, "jitter must be True or False"),
        ({**ONE, "backoff_strategy": "none"}, "must be 'fixed' or 'exponential'"),
        ({**ONE, "max_interval": 0}, "max_interval must be from 0.01 to 86400 seconds"),
        ({"retry_on": [3]}, "retry_on must be a list of exception classes"),
        ({"retry_on": OSError}, "retry_on must be a list of exception classes"),
    ],
    ids=str,
)
def test_every_mistake_has_one_error_of_ours(fields: Any, said: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        RetryPolicy(**fields)

    assert caught.value.code is ErrorCode.TASK_INVALID_OPTIONS
    assert caught.value.message.count(said) == 1
    assert "Input" not in caught.value.message
    assert caught.value.help_text
    assert isinstance(caught.value, ValueError)


@pytest.mark.parametrize(
    ("waits", "found"),
    [
        ([], "intervals=[]"),
        (60, "intervals=60"),
        ("15", "intervals='15'"),
        ([1, -2], "intervals[1]=-2"),
    ],
    ids=str,
)
def test_wrong_waits_are_named_once(waits: Any, found: str) -> None:
    with pytest.raises(ConfigurationError, match="intervals must be a list") as caught:
        RetryPolicy.fixed(waits, auto_retry_for=["X"])

    assert caught.value.notes == [f"found {found}"]


def test_classes_need_no_codes_and_waits_may_be_short_and_limited() -> None:
    policy = RetryPolicy.exponential(
        0.5, max_retries=5, retry_on=[OSError], max_interval=3, jitter=False
    )

    waits = [policy.delay_seconds(number, random=Random(1)) for number in range(1, 6)]
    stored = write_task_options(StoredOptions(retry_policy=policy))

    assert waits == [0.5, 1.0, 2.0, 3.0, 3.0]
    assert policy.auto_retry_for == ["RETRY"]
    read = read_task_options(stored).unwrap().retry_policy
    assert read is not None
    assert (read.intervals, read.max_interval) == ([0.5], 3)


def test_an_attempt_may_ask_for_its_own_wait() -> None:
    policy = RetryPolicy.fixed([60], auto_retry_for=["X"], jitter=False)

    assert retry_delay_s(policy, "OTHER", 1, random=Random(1), wish=2.5) == 2.5
    assert retry_delay_s(policy, "OTHER", 1, random=Random(1), wish=BY_POLICY) == 60.0
    assert retry_delay_s(policy, "OTHER", 1, random=Random(1)) is None
    assert retry_delay_s(None, "OTHER", 1, random=Random(1), wish=2.5) is None
