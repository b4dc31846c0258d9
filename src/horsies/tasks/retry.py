"""RetryPolicy: which errors are retried, how often and when. Pure."""

from collections.abc import Iterable, Sequence
from random import Random
from typing import TYPE_CHECKING, Annotated, Any, Literal, Self

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    ValidationError,
    field_validator,
    model_validator,
)

from horsies.codes import ErrorCode
from horsies.config.exceptions import code_problem
from horsies.errors import ConfigurationError
from horsies.result import BUILTIN_CODE_REGISTRY, BuiltInTaskCode, OperationalErrorCode
from horsies.result.raising import RETRY_CODE
from horsies.tasks.mistakes import keep_mistake

# Built-in codes that can be retried (docs/contract/errors.md §5); others are never retried.
RETRYABLE_BUILT_IN = ("UNHANDLED_EXCEPTION", "TASK_EXCEPTION", "WORKER_CRASHED", "TASK_TIMEOUT")
# Whole seconds stay integers: that is how the contract's rows have them.
_Seconds = Annotated[int, Field(ge=1, le=86_400)] | Annotated[float, Field(ge=0.01, le=86_400)]
_RULES = {
    "auto_retry_for": "must have at least 1 item, an error code, unless retry_on names a class",
    "max_retries": "must be a whole number from 1 to 20",
    "intervals": "must be a list of 1 to 20 waits, each from 0.01 to 86400 seconds",
    "backoff_strategy": "must be 'fixed' or 'exponential'",
    "jitter": "must be True or False",
    "max_interval": "must be from 0.01 to 86400 seconds",
    "retry_on": "must be a list of exception classes",
}
BY_POLICY = -1.0  # a wish for a retry after the wait that the policy gives


class RetryPolicy(BaseModel):
    """Retry a task when its error code is listed, or its exception is one of `retry_on`.

    >>> RetryPolicy.fixed([60, 300], auto_retry_for=["RATE_LIMITED"]).max_retries
    2
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    auto_retry_for: list[str | BuiltInTaskCode] = Field(min_length=1)
    max_retries: int = Field(default=3, ge=1, le=20)
    intervals: list[_Seconds] = Field(default=[60, 300, 900], min_length=1, max_length=20)
    backoff_strategy: Literal["fixed", "exponential"] = "fixed"
    jitter: bool = True
    max_interval: _Seconds | None = None
    # Classes with their subclasses; they stay in the code, a row holds only what SQL can read.
    retry_on: list[type[BaseException]] = Field(default=[], exclude=True)

    @classmethod
    def fixed(
        cls,
        intervals: Sequence[float],
        *,
        auto_retry_for: Sequence[str | BuiltInTaskCode] = (),
        retry_on: Sequence[type[BaseException]] = (),
        jitter: bool = True,
    ) -> "RetryPolicy":
        """Retry once per interval; each interval is the wait in seconds before its retry."""
        waits: Any = intervals
        # What type checkers refuse gets an answer of ours, too; "15" is not the waits 1 and 5.
        if isinstance(waits, Iterable) and not isinstance(waits, str | bytes):
            waits = list(waits)
        return cls._made(
            auto_retry_for,
            retry_on,
            max_retries=len(waits) if isinstance(waits, list) and waits else 1,
            intervals=waits,
            jitter=jitter,
        )

    @classmethod
    def exponential(
        cls,
        base_seconds: float,
        *,
        max_retries: int,
        auto_retry_for: Sequence[str | BuiltInTaskCode] = (),
        retry_on: Sequence[type[BaseException]] = (),
        max_interval: float | None = None,
        jitter: bool = True,
    ) -> "RetryPolicy":
        """Wait `base_seconds`, then twice as long each time, at most `max_interval`."""
        return cls._made(
            auto_retry_for,
            retry_on,
            max_retries=max_retries,
            intervals=[base_seconds],
            backoff_strategy="exponential",
            max_interval=max_interval,
            jitter=jitter,
        )

    @classmethod
    def _made(cls, codes: Any, classes: Any, **fields: Any) -> "RetryPolicy":
        given = {"auto_retry_for": codes} if codes or not classes else {}
        return cls(**given, retry_on=classes, **fields)

    @model_validator(mode="before")
    @classmethod
    def _need_no_codes_with_classes(cls, fields: Any) -> Any:
        if isinstance(fields, dict) and fields.get("retry_on") and "auto_retry_for" not in fields:
            return {**fields, "auto_retry_for": [RETRY_CODE]}
        return fields

    if not TYPE_CHECKING:  # type checkers should see the fields, not **data

        def __init__(self, **data: object) -> None:
            try:
                super().__init__(**data)
            except ValidationError as error:
                refusal = _refusal(error)
            else:
                return
            keep_mistake(refusal)
            # In `check` this stands in for the policy, so that later mistakes are found as well.
            super().__init__(auto_retry_for=[RETRY_CODE])

        # Pydantic must not treat this as a custom __init__: policies in rows are read without it.
        __init__.__pydantic_base_init__ = True

    @field_validator("auto_retry_for", mode="before")
    @classmethod
    def _refuse_classes(cls, codes: object) -> object:
        if isinstance(codes, (str, type)):
            raise ValueError(f"must be a list of error codes, not {_name(codes)}")  # noqa: TRY004
        for code in codes if isinstance(codes, (list, tuple)) else ():
            if isinstance(code, type):
                raise ValueError(  # noqa: TRY004
                    f"takes error codes, not the class {_name(code)}: "
                    f"write retry_on=[{_name(code)}]"
                )
        return codes

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
        """Return the wait before retry 1, 2, …; jitter takes none below one second."""
        if self.backoff_strategy == "fixed":
            delay = float(self.intervals[min(retry_number, len(self.intervals)) - 1])
        else:
            delay = float(self.intervals[0] * 2 ** (retry_number - 1))
        most = 1.25
        if self.max_interval is not None:
            delay = min(delay, float(self.max_interval))
            most = min(most, self.max_interval / delay)
        least = min(delay, 1.0)
        if self.jitter:
            delay *= random.uniform(0.75, most)
        return max(delay, least)


def retried_after_crash(policy: RetryPolicy | None) -> RetryPolicy:
    """The policy of a task that may run twice: a crash of its worker is retried, too.

    Without a policy of its own, after 1, 5 and 30 seconds.
    """
    code = OperationalErrorCode.WORKER_CRASHED
    if policy is None:
        return RetryPolicy.fixed([1, 5, 30], auto_retry_for=[code])
    codes = list(dict.fromkeys([*policy.auto_retry_for, code]))
    return policy.model_copy(update={"auto_retry_for": codes})


def never_retried(codes: Iterable[str]) -> list[str]:
    """Those of the codes that cannot cause a retry."""
    return [
        str(code)
        for code in codes
        if code in BUILTIN_CODE_REGISTRY and code not in RETRYABLE_BUILT_IN
    ]


def retry_delay_s(
    policy: RetryPolicy | None,
    error_code: str | None,
    attempt: int,
    *,
    random: Random,
    wish: float | None = None,
) -> float | None:
    """Return seconds until the next attempt, or `None` if the policy does not retry this error.

    `wish` is what the attempt itself asked for: seconds, or `BY_POLICY`.

    The database decides under the row lock whether retries are left and the deadline allows one.
    """
    if policy is None:
        return None
    if wish is not None:
        number = max(1, min(attempt, policy.max_retries))
        return wish if wish >= 0 else policy.delay_seconds(number, random=random)
    if error_code is None or error_code not in policy.auto_retry_for:
        return None
    if never_retried([error_code]):
        return None
    # Attempt numbers keep growing after a manual requeue; then the last interval applies.
    return policy.delay_seconds(max(1, min(attempt, policy.max_retries)), random=random)


def _refusal(error: ValidationError) -> ConfigurationError:
    """All mistakes of a policy in one error of ours."""
    found = error.errors(include_url=False, include_context=False)
    said = [_told(item["loc"], item["type"], item["msg"]) for item in found]
    values = [
        f"{_place(item['loc'])}={item['input']!r}"
        for item in found
        if item["loc"] and item["type"] != "missing"
    ]
    return ConfigurationError(
        f"RetryPolicy: {'; '.join(dict.fromkeys(said))}",
        ErrorCode.TASK_INVALID_OPTIONS,
        notes=[f"found {value}" for value in dict.fromkeys(values)],
        help_text='for example RetryPolicy.fixed([60, 300], auto_retry_for=["RATE_LIMITED"]),\n'
        'or RetryPolicy.exponential(30, max_retries=5, auto_retry_for=["RATE_LIMITED"])',
    )


def _told(place: tuple[int | str, ...], kind: str, text: str) -> str:
    name = str(place[0]) if place else ""
    if kind == "value_error":
        own = text.removeprefix("Value error, ")
        return own if not name or own.startswith(name) else f"{name} {own}"
    if kind == "extra_forbidden":
        return f"there is no option {name!r}"
    return f"{name} {_RULES[name]}"


def _place(place: tuple[int | str, ...]) -> str:
    """`intervals[1]`; what follows a position is the branch of a union, which tells nothing."""
    return "".join(
        f"[{part}]" if isinstance(part, int) else part
        for number, part in enumerate(place)
        if number == 0 or isinstance(part, int)
    )


def _name(value: object) -> str:
    return value.__name__ if isinstance(value, type) else repr(value)
