"""The rules of the task decorator: each violation has an HRS code, a place and a cure."""

import functools
import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Annotated, Literal, get_args, get_origin

from horsies.codes import ErrorCode
from horsies.config.exceptions import default_code_problems, mapper_problems
from horsies.errors import SourceLocation, TaskDefinitionError
from horsies.result import TaskError, TaskResult
from horsies.tasks.annotations import undefined_name
from horsies.tasks.retry import RetryPolicy

Execution = Literal["process", "async", "blocking"]
EXECUTIONS: tuple[Execution, ...] = get_args(Execution)
_TIME_LIMIT_RANGE_MS = (1_000, 86_400_000)
_KNOWN_OPTIONS = (
    "queue_name",
    "retry_policy",
    "exception_mapper",
    "default_unhandled_error_code",
    "execution",
    "timeout_ms",
    "soft_timeout_ms",
    "interruptible",
    "idempotent",
    "priority",
    "tags",
    "unique_key",
    "delay",
)


@dataclass(frozen=True, slots=True)
class ReturnType:
    """The declared return type of a task; plain means without a TaskResult around it."""

    ok: object
    err: object
    is_plain: bool


def refuse_decorated(function: Callable[..., object]) -> None:
    """Reject a function that another decorator has wrapped: its signature may be different."""
    plain = inspect.isfunction(function) or inspect.ismethod(function)
    if plain and not hasattr(function, "__wrapped__") and not _closes_over_function(function):
        return
    raise TaskDefinitionError(
        "a task must be a plain function, not one wrapped by another decorator",
        ErrorCode.TASK_PREDECORATED_NOT_SUPPORTED,
        None,  # use the place of @app.task: this function belongs to the other decorator
        [f"found {getattr(function, '__qualname__', function)!r}"],
        "put @app.task directly above the function and call helpers from its body",
    )


def _closes_over_function(function: Callable[..., object]) -> bool:
    for cell in getattr(function, "__closure__", None) or ():
        try:
            content = cell.cell_contents
        except ValueError:  # the name is not bound yet
            continue
        if inspect.isroutine(content) or isinstance(content, functools.partial):
            return True
    return False


def refuse_unusable(function: Callable[..., object], location: SourceLocation | None) -> None:
    """Reject functions that no worker could call: generators, and methods without their object."""
    if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
        raise _invalid_signature(
            "a task cannot be a generator function",
            f"{function.__qualname__!r} contains yield",
            "return a value, for example a list; a task has one result",
            location,
        )
    scope = function.__qualname__.rpartition(".")[0]
    first = next(iter(inspect.signature(function).parameters), None)
    if scope and not scope.endswith("<locals>") and first in ("self", "cls"):
        raise _invalid_signature(
            "a task cannot be a method",
            f"{function.__qualname__!r} takes {first!r}, which no worker has",
            "define the task as a function at the top level of its module",
            location,
        )


def read_return_type(
    function: Callable[..., object],
    annotations: Mapping[str, object],
    location: SourceLocation | None,
    *,
    allow_plain_returns: bool,
) -> "ReturnType":
    """Return the ok and the error type that a function declares."""
    if "return" not in inspect.get_annotations(function):
        raise TaskDefinitionError(
            "a task needs a return annotation",
            ErrorCode.TASK_NO_RETURN_TYPE,
            location,
            [f"function {function.__qualname__!r}"],
            "declare it: def f(...) -> "
            + ("int" if allow_plain_returns else "TaskResult[int, TaskError]"),
        )
    declared = annotations.get("return", inspect.Parameter.empty)
    if get_origin(declared) is Annotated:
        declared = get_args(declared)[0]
    if get_origin(declared) is TaskResult and len(get_args(declared)) == 2:
        ok_type, error_type = get_args(declared)
        return ReturnType(ok_type, error_type, is_plain=False)
    if declared is inspect.Parameter.empty:
        note, cure = undefined_name(function, inspect.get_annotations(function)["return"])
        raise TaskDefinitionError(
            "the return annotation cannot be evaluated",
            ErrorCode.TASK_INVALID_RETURN_TYPE,
            location,
            [note],
            f"{cure}; for a return type it must stand above the task",
        )
    unusable = (get_origin(declared) or declared) is TaskResult
    if allow_plain_returns and not unusable:
        return ReturnType(declared, TaskError, is_plain=True)
    raise TaskDefinitionError(
        "a task must return TaskResult[T, E] with two type parameters",
        ErrorCode.TASK_INVALID_RETURN_TYPE,
        location,
        [f"found {inspect.get_annotations(function)['return']!r}"],
        "declare it: def f(...) -> TaskResult[int, TaskError]"
        + ("" if unusable else ",\nor set AppConfig(allow_plain_returns=True)"),
    )


def check_options(options: Mapping[str, object], location: SourceLocation | None) -> None:
    """Reject unknown options, a deadline, and a retry policy of the wrong type."""
    if options.get("good_until") is not None:
        raise _invalid_option(
            "good_until must be set when sending a task",
            f"good_until={options['good_until']!r}",
            "use task.with_options(good_until=...).send(...)",
            location,
        )
    unknown = sorted(options.keys() - {*_KNOWN_OPTIONS, "good_until"})
    if unknown:
        raise _invalid_option(
            f"unknown task option: {', '.join(unknown)}",
            f"known options: {', '.join(_KNOWN_OPTIONS)}",
            _option_cure(unknown),
            location,
        )
    policy = options.get("retry_policy")
    if policy is not None and not isinstance(policy, RetryPolicy):
        raise _invalid_option(
            "retry_policy must be a RetryPolicy",
            f"found {type(policy).__name__}",
            "use RetryPolicy.fixed(...) or RetryPolicy.exponential(...)",
            location,
        )


def _option_cure(unknown: list[str]) -> str:
    if "auto_retry_for" in unknown:
        return "put it into retry_policy=RetryPolicy(auto_retry_for=[...])"
    import difflib  # most apps never misspell one

    meant = [difflib.get_close_matches(name, _KNOWN_OPTIONS, n=1) for name in unknown]
    guesses = ", ".join(match for matches in meant for match in matches)
    return f"remove it, or write {guesses}" if guesses else "remove it"


def check_error_codes(
    options: Mapping[str, object], name: str, location: SourceLocation | None
) -> None:
    """Reject an invalid exception mapper or default error code."""
    owner = f"task {name!r}"
    if (mapper := options.get("exception_mapper")) is not None:
        for problem in mapper_problems(mapper, owner=owner, location=location):
            raise problem
    if (code := options.get("default_unhandled_error_code")) is not None:
        for problem in default_code_problems(code, owner=owner, location=location):
            raise problem


def read_execution(
    wish: object, location: SourceLocation | None, *, is_coroutine: bool
) -> Execution:
    """Return where the function runs; by default, coroutines in the loop, others in a child."""
    match wish:
        case None:
            return "async" if is_coroutine else "process"
        case "process":
            return "process"
        case "async" if is_coroutine:
            return "async"
        case "blocking" if not is_coroutine:
            return "blocking"
        case _:
            kind = "a coroutine function" if is_coroutine else "a plain function"
            raise _invalid_option(
                f"execution={wish!r} does not fit {kind}",
                f"known: {', '.join(EXECUTIONS)}",
                "'async' is for coroutine functions, 'blocking' for plain ones",
                location,
            )


def check_time_limits(options: Mapping[str, object], location: SourceLocation | None) -> None:
    """Reject limits outside one second to one day, and a soft limit at or above the hard one."""
    hard, soft = (
        _time_limit(key, options.get(key), location) for key in ("timeout_ms", "soft_timeout_ms")
    )
    if hard is not None and soft is not None and soft >= hard:
        raise _invalid_option(
            "soft_timeout_ms must be below timeout_ms",
            f"soft_timeout_ms={soft}, timeout_ms={hard}",
            "leave the task some time to clean up",
            location,
        )


def _time_limit(key: str, value: object, location: SourceLocation | None) -> int | None:
    low, high = _TIME_LIMIT_RANGE_MS
    if value is None:
        return None
    if not isinstance(value, int) or isinstance(value, bool) or not low <= value <= high:
        raise _invalid_option(
            f"{key} must be an integer from {low} to {high}",
            f"{key}={value!r}",
            "give the limit in milliseconds",
            location,
        )
    return value


def check_unique_key(key: object, location: SourceLocation | None) -> None:
    """Reject a constant key: it would let the task wait only once, whatever its arguments."""
    if key is not None and not callable(key):
        raise _invalid_option(
            "unique_key of a task must be a function of its arguments",
            f"unique_key={key!r}",
            'for example unique_key=lambda order_id: f"order {order_id}"',
            location,
        )


def nameless(function: Callable[..., object]) -> TaskDefinitionError:
    """Build the error for `@app.task` or `@app.task()`, which name no task."""
    shown = getattr(function, "__name__", "f")
    return _invalid_option(
        "@app.task needs the name of the task",
        f"found @app.task above {shown!r} without a name",
        f'write @app.task("{shown}")',
        SourceLocation.from_function(function),
    )


def check_name(name: object, location: SourceLocation | None) -> None:
    """Reject a name that is not a string of 1 to 255 characters."""
    if not isinstance(name, str) or not 1 <= len(name) <= 255:
        raise _invalid_option(
            "task_name must be a string of 1 to 255 characters",
            f"task_name={name!r}",
            'name the task: @app.task("reports.daily")',
            location,
        )


def _invalid_signature(
    message: str, note: str, cure: str, location: SourceLocation | None
) -> TaskDefinitionError:
    return TaskDefinitionError(message, ErrorCode.TASK_INVALID_SIGNATURE, location, [note], cure)


def _invalid_option(
    message: str, note: str, cure: str, location: SourceLocation | None
) -> TaskDefinitionError:
    return TaskDefinitionError(message, ErrorCode.TASK_INVALID_OPTIONS, location, [note], cure)
