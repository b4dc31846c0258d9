"""RetryPolicy: which errors are retried, how often and when. Pure."""

from random import Random
from typing import Annotated, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from horsies.config.exceptions import code_problem
from horsies.result import BUILTIN_CODE_REGISTRY, BuiltInTaskCode

# Built-in codes that can be retried (docs/contract/errors.md §5); others are never retried.
_RETRYABLE_BUILT_IN = {"UNHANDLED_EXCEPTION", "TASK_EXCEPTION", "WORKER_CRASHED", "TASK_TIMEOUT"}
_Seconds = Annotated[int, Field(ge=1, le=86_400)]


class RetryPolicy(BaseModel):
    """Retry a task when its error code is listed.

    >>> RetryPolicy.fixed([60, 300], auto_retry_for=["RATE_LIMITED"]).max_retries
    2
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    auto_retry_for: list[str | BuiltInTaskCode] = Field(min_length=1)
    max_retries: int = Field(default=3, ge=1, le=20)
    intervals: list[_Seconds] = Field(default=[60, 300, 900], min_length=1, max_length=20)
    backoff_strategy: Literal["fixed", "exponential"] = "fixed"
    jitter: bool = True

    @classmethod
    def fixed(
        cls,
        intervals: list[int],
        *,
        auto_retry_for: list[str | BuiltInTaskCode],
        jitter: bool = True,
    ) -> "RetryPolicy":
        """Retry once per interval; each interval is the wait in seconds before its retry."""
        return cls(
            auto_retry_for=auto_retry_for,
            max_retries=len(intervals),
            intervals=intervals,
            jitter=jitter,
        )

    @classmethod
    def exponential(
        cls,
        base_seconds: int,
        *,
        max_retries: int,
        auto_retry_for: list[str | BuiltInTaskCode],
        jitter: bool = True,
    ) -> "RetryPolicy":
        """Wait `base_seconds` before the first retry, then twice as long each time."""
        return cls(
            auto_retry_for=auto_retry_for,
            max_retries=max_retries,
            intervals=[base_seconds],
            backoff_strategy="exponential",
            jitter=jitter,
        )

    @field_validator("auto_retry_for")
    @classmethod
    def _check_codes(cls, codes: list[str | BuiltInTaskCode]) -> list[str | BuiltInTaskCode]:
        for code in codes:
            if problem := code_problem(code):
                raise ValueError(f"auto_retry_for: {problem}")
        return codes

    @model_validator(mode="after")
    def _check_intervals(self) -> Self:
        if self.backoff_strategy == "fixed" and len(self.intervals) != self.max_retries:
            raise ValueError(
                f"fixed backoff needs one interval per retry: {len(self.intervals)} intervals, "
                f"max_retries={self.max_retries}"
            )
        if self.backoff_strategy == "exponential" and len(self.intervals) != 1:
            raise ValueError(
                f"exponential backoff needs exactly one interval, got {len(self.intervals)}"
            )
        return self

    def delay_seconds(self, retry_number: int, *, random: Random) -> float:
        """Return the wait before retry 1, 2, …; it is at least one second."""
        if self.backoff_strategy == "fixed":
            delay = float(self.intervals[min(retry_number, len(self.intervals)) - 1])
        else:
            delay = float(self.intervals[0] * 2 ** (retry_number - 1))
        if self.jitter:
            delay *= random.uniform(0.75, 1.25)
        return max(delay, 1.0)


def retry_delay_s(
    policy: RetryPolicy | None, error_code: str | None, attempt: int, *, random: Random
) -> float | None:
    """Return seconds until the next attempt, or `None` if the policy does not retry this error.

    The database decides under the row lock whether retries are left and the deadline allows one.
    """
    if policy is None or error_code is None or error_code not in policy.auto_retry_for:
        return None
    if error_code in BUILTIN_CODE_REGISTRY and error_code not in _RETRYABLE_BUILT_IN:
        return None
    # Attempt numbers keep growing after a manual requeue; then the last interval applies.
    return policy.delay_seconds(max(1, min(attempt, policy.max_retries)), random=random)
