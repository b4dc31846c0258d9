"""The JSON text of the column task_options; parsed options are cached per text."""

from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from typing import cast

from pydantic import ValidationError
from pydantic_core import from_json, to_json

from horsies.codec.shapes import JsonObject
from horsies.config.exceptions import code_problem
from horsies.observability.trace_context import without_traceparent
from horsies.result import Err, Ok, Result
from horsies.tasks.retry import RetryPolicy

_LONGEST_LIMIT_MS = 86_400_000


@dataclass(frozen=True, slots=True)
class StoredOptions:
    """Everything that task_options can contain; other keys belong to integrations."""

    retry_policy: RetryPolicy | None = None
    good_until: datetime | None = None
    timeout_ms: int | None = None
    unique_key: str | None = None
    unique_scope: str | None = None
    soft_timeout_ms: int | None = None
    tags: tuple[str, ...] = ()

    @property
    def max_retries(self) -> int:
        return 0 if self.retry_policy is None else self.retry_policy.max_retries


_NO_OPTIONS = StoredOptions()


def write_task_options(options: StoredOptions) -> str:
    """Write options as compact JSON; leave out optional keys that are not set."""
    policy = options.retry_policy
    written: dict[str, object] = {
        "retry_policy": None
        if policy is None
        else {
            "max_retries": policy.max_retries,
            "intervals": policy.intervals,
            "backoff_strategy": policy.backoff_strategy,
            "jitter": policy.jitter,
            "auto_retry_for": [str(code) for code in policy.auto_retry_for],
        },
        "good_until": None if options.good_until is None else options.good_until.isoformat(),
    }
    if policy is not None and policy.max_interval is not None:
        cast("JsonObject", written["retry_policy"])["max_interval"] = policy.max_interval
    for key in ("timeout_ms", "unique_key", "unique_scope", "soft_timeout_ms", "tags"):
        if value := getattr(options, key):
            written[key] = value
    return to_json(written).decode()


def parse_task_options(text: str | None) -> StoredOptions:
    """Read stored options; a text that cannot be read counts as empty."""
    text = without_traceparent(text)
    return _NO_OPTIONS if text is None else read_task_options(text).unwrap_or(_NO_OPTIONS)


@lru_cache(maxsize=1024)
def read_task_options(text: str) -> Result[StoredOptions, str]:
    """Read options, or describe what is wrong with the text."""
    try:
        stored: object = from_json(text)
    except ValueError as error:
        return Err(f"invalid task_options_json: {error}")
    if not isinstance(stored, dict):
        return Err("task_options_json must be an object")
    options = cast("JsonObject", stored)
    policy = _read_policy(options.get("retry_policy"))
    if isinstance(policy, Err):
        return policy
    try:
        return Ok(_make_options(options, policy.ok_value))
    except (TypeError, ValueError) as error:
        return Err(f"invalid task_options_json: {error}")


def _make_options(options: JsonObject, policy: RetryPolicy | None) -> StoredOptions:
    good_until = options.get("good_until")
    return StoredOptions(
        retry_policy=policy,
        good_until=None if good_until is None else datetime.fromisoformat(good_until),
        timeout_ms=_time_limit(options, "timeout_ms"),
        unique_key=options.get("unique_key"),
        unique_scope=options.get("unique_scope"),
        soft_timeout_ms=_time_limit(options, "soft_timeout_ms"),
        tags=tuple(options.get("tags") or ()),
    )


def _time_limit(options: JsonObject, key: str) -> int | None:
    """A limit in milliseconds; a row may hold any number, a timer takes at most a day."""
    value = options.get(key)
    if value is None:
        return None
    if not isinstance(value, int) or isinstance(value, bool):
        raise TypeError(f"{key} must be an integer")
    return max(1, min(value, _LONGEST_LIMIT_MS))


def _read_policy(stored: object) -> Result[RetryPolicy | None, str]:
    if stored is None:
        return Ok(None)
    if not isinstance(stored, dict):
        return Err("retry_policy must be an object")
    policy = cast("JsonObject", stored)
    if "auto_retry_for" not in policy:
        return Err("retry_policy.auto_retry_for is required")
    if problem := _codes_problem(policy["auto_retry_for"]):
        return Err(problem)
    try:
        return Ok(RetryPolicy.model_validate(policy))
    except ValidationError as error:
        return Err(f"invalid retry_policy metadata: {error}")


def _codes_problem(codes: object) -> str | None:
    if not isinstance(codes, list):
        return "auto_retry_for must be a list"
    if not codes:
        return "auto_retry_for must not be empty"
    if not all(isinstance(code, str) for code in cast("list[object]", codes)):
        return "auto_retry_for entries must be strings"
    problems = (code_problem(code) for code in cast("list[object]", codes))
    return next((f"auto_retry_for: {problem}" for problem in problems if problem), None)
