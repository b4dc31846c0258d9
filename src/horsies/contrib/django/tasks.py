"""`HorsiesTask`: Django's Task with retries, a time limit, a deadline and a unique key."""

from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any

from django.utils import timezone

from horsies.contrib.django.compat import InvalidTask, Task, task_backends
from horsies.result import OperationalErrorCode, OutcomeCode
from horsies.tasks.retry import RetryPolicy

# Any failure of the task itself or of the process that ran it.
_RETRIED = [
    OperationalErrorCode.UNHANDLED_EXCEPTION,
    OperationalErrorCode.WORKER_CRASHED,
    OutcomeCode.TASK_TIMEOUT,
]
_RETRY_AFTER_S = 1
_EXTRAS = ("max_retries", "retry_policy", "timeout", "good_until", "unique_key")


@dataclass(frozen=True, slots=True, kw_only=True)
class HorsiesTask(Task):
    """`timeout` and `good_until` are seconds; `good_until` counts from the enqueue."""

    max_retries: int = 0
    retry_policy: RetryPolicy | None = None
    timeout: float | None = None
    good_until: float | None = None
    unique_key: str | None = None

    def using(self, **changes: Any) -> Any:
        """A copy with other defaults; `run_after` may also be a `timedelta` from now."""
        run_after = changes.get("run_after")
        if isinstance(run_after, timedelta):
            now = timezone.now()
            changes["run_after"] = now + run_after
        return replace(self, **{key: value for key, value in changes.items() if value is not None})


def policy_of(max_retries: int) -> RetryPolicy | None:
    """Retry any failure so many times, after pauses that double from one second on."""
    if not max_retries:
        return None
    return RetryPolicy.exponential(
        _RETRY_AFTER_S, max_retries=max_retries, auto_retry_for=list(_RETRIED)
    )


def check_extras(task: Any) -> None:
    """Refuse what our own fields cannot mean."""
    for name in ("timeout", "good_until"):
        value = getattr(task, name, None)
        if value is not None and not (isinstance(value, (int, float)) and value > 0):
            raise InvalidTask(f"{name} must be a positive number of seconds.")
    retries = getattr(task, "max_retries", 0)
    if not isinstance(retries, int) or not 0 <= retries <= 20:
        raise InvalidTask("max_retries must be a whole number between 0 and 20.")


def task(
    function: Any = None,
    *,
    priority: int = 0,
    queue_name: str = "default",
    backend: str = "default",
    takes_context: bool = False,
    **extras: Any,
) -> Any:
    """Django's `@task` with our fields, on every version of Django.

    >>> @task(max_retries=3, timeout=60)  # doctest: +SKIP
    ... def send_receipt(order_id: int) -> None: ...
    """
    unknown = sorted(set(extras) - set(_EXTRAS))
    if unknown:
        raise TypeError(f"task() got an unexpected keyword argument {unknown[0]!r}")

    def wrap(wrapped: Any) -> Any:
        made = task_backends[backend].task_class
        cls = made if issubclass(made, HorsiesTask) else HorsiesTask
        return cls(
            func=wrapped,
            priority=priority,
            queue_name=queue_name,
            backend=backend,
            takes_context=takes_context,
            run_after=None,
            **extras,
        )

    return wrap if function is None else wrap(function)
