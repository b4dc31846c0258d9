"""Defining a task: what is refused, and how results and exceptions are judged."""

import asyncio
import functools
import json
from collections.abc import Callable
from typing import Any

import pytest

from horsies.codes import ErrorCode
from horsies.config import AppConfig, CustomQueueConfig, PostgresConfig, QueueMode
from horsies.errors import ConfigurationError, HorsiesError, TaskDefinitionError
from horsies.result import (
    ContractCode,
    Err,
    Ok,
    OperationalErrorCode,
    OutcomeCode,
    TaskError,
    TaskResult,
)
from horsies.result.raising import Retry, TaskFailed
from horsies.tasks.definition import TaskDefinition, define_task
from horsies.tasks.retry import BY_POLICY, RetryPolicy
from support.codec_models import Horse

BROKER = PostgresConfig(database_url="postgresql://localhost/horses")
CONFIG = AppConfig(broker=BROKER)
CUSTOM = AppConfig(
    broker=BROKER,
    queue_mode=QueueMode.CUSTOM,
    custom_queues=[CustomQueueConfig(name="fast", priority=7)],
)
PLAIN = AppConfig(broker=BROKER, allow_plain_returns=True)


def good(n: int = 0) -> TaskResult[int, TaskError]:
    return TaskResult(ok=n)


async def good_async(n: int = 0) -> TaskResult[int, TaskError]:
    return TaskResult(ok=n)


def unannotated(n: int):  # type: ignore[no-untyped-def]
    return n


def plain(n: int) -> int:
    return n


def bare(n: int) -> TaskResult:  # type: ignore[type-arg]
    return TaskResult(ok=n)


def halved(n: int) -> TaskResult[int]:  # type: ignore[type-arg]
    return TaskResult(ok=n)


def wraps(function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    def wrapper(*args: Any) -> Any:
        return function(*args)

    return wrapper


def closes_over(function: Callable[..., Any]) -> Callable[..., Any]:
    def wrapper(n: int) -> TaskResult[int, TaskError]:
        result: TaskResult[int, TaskError] = function(n)
        return result

    return wrapper


def define(function: Callable[..., Any] = good, **options: Any) -> TaskDefinition:
    return define_task(function, "stable.feed", config=CONFIG, **options)


@pytest.mark.seed("S57")
@pytest.mark.parametrize(
    ("function", "options", "code", "text"),
    [
        (wraps(good), {}, "HRS-104", "plain function"),
        (closes_over(good), {}, "HRS-104", "plain function"),
        (wraps(unannotated), {}, "HRS-104", "plain function"),
        (functools.partial(good, 1), {}, "HRS-104", "plain function"),
        (unannotated, {}, "HRS-100", "return annotation"),
        (plain, {}, "HRS-101", "TaskResult"),
        (bare, {}, "HRS-101", "two type parameters"),
        (halved, {}, "HRS-101", "two type parameters"),
        (good, {"retries": 3}, "HRS-102", "retries"),
        (good, {"auto_retry_for": ["X"]}, "HRS-102", "auto_retry_for"),
        (good, {"retry_policy": {"max_retries": 3}}, "HRS-102", "retry_policy"),
        (good, {"good_until": 1}, "HRS-102", "good_until must be set when sending a task"),
        (good, {"queue_name": "default"}, "HRS-200", "cannot specify queue_name"),
        (good, {"exception_mapper": {KeyError: "key"}}, "HRS-209", "Mapper value"),
        (good, {"exception_mapper": {int: "KEY"}}, "HRS-209", "Mapper key"),
        (good, {"exception_mapper": [1]}, "HRS-209", "exception_mapper must be a mapping"),
        (good, {"default_unhandled_error_code": "KeyError"}, "HRS-209", "exception class name"),
        (good, {"execution": "thread"}, "HRS-102", "execution"),
        (good, {"execution": "async"}, "HRS-102", "execution"),
        (good_async, {"execution": "blocking"}, "HRS-102", "execution"),
        (good, {"timeout_ms": 999}, "HRS-102", "timeout_ms"),
        (good, {"timeout_ms": 86_400_001}, "HRS-102", "timeout_ms"),
        (good, {"timeout_ms": "soon"}, "HRS-102", "timeout_ms"),
        (good, {"timeout_ms": 2000, "soft_timeout_ms": 2000}, "HRS-102", "soft_timeout_ms"),
    ],
)
def test_each_wrong_definition_has_its_code(
    function: Any, options: dict[str, Any], code: str, text: str
) -> None:
    with pytest.raises(HorsiesError) as caught:
        define(function, **options)

    error = caught.value
    assert error.code == ErrorCode(code)
    assert text in str(error)
    assert error.help_text
    assert isinstance(error, TaskDefinitionError if code < "HRS-200" else ConfigurationError)


def test_the_place_of_a_wrong_definition_is_the_function() -> None:
    with pytest.raises(TaskDefinitionError) as caught:
        define(plain)

    assert caught.value.location is not None
    assert caught.value.location.line == plain.__code__.co_firstlineno
    assert isinstance(caught.value, TypeError)


@pytest.mark.parametrize("name", ["", "x" * 256, None])
def test_a_name_must_fit_its_column(name: Any) -> None:
    with pytest.raises(TaskDefinitionError, match="task_name"):
        define_task(good, name, config=CONFIG)


@pytest.mark.parametrize(
    ("queue_name", "code", "text"),
    [(None, "HRS-200", "queue_name is required"), ("slow", "HRS-103", "'slow'")],
)
def test_custom_mode_asks_for_a_known_queue(queue_name: Any, code: str, text: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        define_task(good, "x", config=CUSTOM, queue_name=queue_name)

    assert caught.value.code == ErrorCode(code)
    assert text in caught.value.message
    assert "fast" in caught.value.notes[0]


def test_queue_and_priority_are_resolved() -> None:
    custom = define_task(good, "x", config=CUSTOM, queue_name="fast")

    assert (custom.queue_name, custom.priority) == ("fast", 7)
    assert (define().queue_name, define().priority) == ("default", 100)


@pytest.mark.parametrize(
    ("function", "wish", "execution"),
    [
        (good, None, "process"),
        (good_async, None, "async"),
        (good, "blocking", "blocking"),
        (good_async, "process", "process"),
    ],
)
def test_where_a_task_runs(function: Any, wish: str | None, execution: str) -> None:
    assert define(function, execution=wish).execution == execution


def test_options_are_kept_and_written() -> None:
    policy = RetryPolicy.fixed([1], auto_retry_for=["X"])
    task = define(
        retry_policy=policy, timeout_ms=5000, soft_timeout_ms=4000, exception_mapper={KeyError: "K"}
    )

    assert task.retry_policy is policy
    assert (task.max_retries, task.timeout_ms, task.soft_timeout_ms) == (1, 5000, 4000)
    assert json.loads(task.task_options_json)["timeout_ms"] == 5000
    assert json.loads(task.options_json(unique_key="u"))["unique_key"] == "u"
    assert task.exception_mapper == {KeyError: "K"}
    with pytest.raises(TypeError):
        task.exception_mapper[ValueError] = "V"  # type: ignore[index]


def test_annotations_that_cannot_be_evaluated_are_left_to_check_and_send() -> None:
    def f(known: int, unknown: "NoSuchClass") -> TaskResult[int, TaskError]:  # type: ignore[name-defined]  # noqa: F821
        return TaskResult(ok=known)

    task = define(f)

    (problem,) = task.problems()  # `check` shows it, and a send is refused with it
    assert problem.code is ErrorCode.TASK_INVALID_SIGNATURE
    assert "the name 'NoSuchClass' is not defined" in problem.notes[0]
    assert "parameter 'known'" in str(task.encode_arguments(("x", 2), {}).unwrap_err())


def returning(value: Any) -> Callable[[], TaskResult[int, TaskError]]:
    def f(kept: list[Any] = [value]) -> TaskResult[int, TaskError]:  # noqa: B006
        result: TaskResult[int, TaskError] = kept[0]
        return result

    return f


def raising(error: BaseException) -> Callable[[], TaskResult[int, TaskError]]:
    def f(kept: list[BaseException] = [error]) -> TaskResult[int, TaskError]:  # noqa: B006
        raise kept[0]

    return f


@pytest.mark.parametrize(
    "result",
    [
        TaskResult(ok=3),
        TaskResult(ok="3"),
        TaskResult(err=TaskError(error_code="MINE")),
        TaskResult(err=TaskError(error_code=OutcomeCode.TASK_CANCELLED)),
    ],
    ids=repr,
)
def test_a_fitting_result_is_returned_unchanged(result: Any) -> None:
    assert define(returning(result)).call() is result


@pytest.mark.parametrize(("variant", "value"), [("ok", "x"), ("ok", None), ("err", "x")])
def test_a_result_of_the_wrong_type_says_what_was_expected(variant: str, value: Any) -> None:
    error = define(returning(TaskResult(**{variant: value}))).call().unwrap_err()

    assert error.error_code is ContractCode.RETURN_TYPE_MISMATCH
    assert error.data["variant"] == variant
    assert error.data["expected_type"] == ("int" if variant == "ok" else "TaskError")
    assert error.data["actual_value"] == value
    assert error.data["validation_errors"]


@pytest.mark.parametrize(("value", "text"), [(None, "None"), (3, "int"), (Ok(3), "Ok")])
def test_anything_but_a_task_result_is_a_task_exception(value: Any, text: str) -> None:
    error = define(returning(value)).call().unwrap_err()

    assert error.error_code is OperationalErrorCode.TASK_EXCEPTION
    assert text in error.message


@pytest.mark.seed("S24", "S62")
@pytest.mark.parametrize(
    "error", [ValueError("bad hay"), SystemExit(3), GeneratorExit(), BaseException("odd")], ids=repr
)
def test_whatever_leaves_the_function_is_an_unhandled_exception(error: BaseException) -> None:
    found = define(raising(error)).call().unwrap_err()

    assert found.error_code is OperationalErrorCode.UNHANDLED_EXCEPTION
    assert "stable.feed" in found.message
    assert type(error).__name__ in found.message
    assert str(error) in found.message
    assert found.data == {"exception_type": type(error).__name__}
    assert found.exception is error


def test_keyboard_interrupt_propagates() -> None:
    with pytest.raises(KeyboardInterrupt):
        define(raising(KeyboardInterrupt())).call()


class ChildError(KeyError): ...


@pytest.mark.parametrize(
    ("error", "options", "app", "code"),
    [
        (KeyError(), {"exception_mapper": {KeyError: "TASK_MAP"}}, {KeyError: "APP"}, "TASK_MAP"),
        (KeyError(), {}, {KeyError: "APP"}, "APP"),
        (ChildError(), {"exception_mapper": {KeyError: "TASK_MAP"}}, {}, "UNHANDLED_EXCEPTION"),
        (ChildError(), {"default_unhandled_error_code": "MINE"}, {KeyError: "APP"}, "MINE"),
        (KeyError(), {"exception_mapper": {KeyError: "TASK_TIMEOUT"}}, {}, "TASK_TIMEOUT"),
    ],
)
def test_the_mapper_goes_by_the_exact_class_task_before_app(
    error: BaseException, options: dict[str, Any], app: dict[Any, str], code: str
) -> None:
    config = AppConfig(broker=BROKER, exception_mapper=app)
    task = define_task(raising(error), "x", config=config, **options)

    found = task.call().unwrap_err().error_code

    assert found == code
    assert isinstance(found, OperationalErrorCode | OutcomeCode) is (
        code in {"UNHANDLED_EXCEPTION", "TASK_TIMEOUT"}
    )


def test_a_returned_error_is_never_mapped() -> None:
    result: Any = TaskResult(err=TaskError(error_code="MINE", exception=KeyError("k")))
    task = define(returning(result), exception_mapper={KeyError: "OTHER"})

    assert task.call() is result


async def test_coroutine_tasks_are_awaited_and_judged_alike() -> None:
    async def f(n: int) -> TaskResult[int, TaskError]:
        if n == 0:
            raise ValueError("zero")
        return TaskResult(ok=n)

    task = define(f)

    assert task.is_coroutine
    assert await task.call_async(3) == TaskResult(ok=3)
    error = (await task.call_async(0)).unwrap_err()
    assert error.error_code is OperationalErrorCode.UNHANDLED_EXCEPTION


async def test_cancellation_of_a_coroutine_task_propagates() -> None:
    started = asyncio.Event()

    async def f() -> TaskResult[int, TaskError]:
        started.set()
        await asyncio.Event().wait()
        return TaskResult(ok=1)

    running = asyncio.ensure_future(define(f).call_async())
    await started.wait()
    running.cancel()

    with pytest.raises(asyncio.CancelledError):
        await running


def test_plain_returns_are_successes_when_allowed() -> None:
    def stall(n: int) -> int | None:
        return None if n == 0 else n if n < 5 else TaskResult(err=TaskError())  # type: ignore[return-value]

    task = define_task(stall, "x", config=PLAIN)

    assert task.call(3) == TaskResult(ok=3)
    assert task.call(0) == TaskResult(ok=None)
    assert task.call(9).is_err()
    assert task.err_type is TaskError


@pytest.mark.parametrize(
    ("function", "code"), [(unannotated, "HRS-100"), (bare, "HRS-101"), (halved, "HRS-101")]
)
def test_plain_returns_still_need_a_usable_annotation(function: Any, code: str) -> None:
    with pytest.raises(TaskDefinitionError) as caught:
        define_task(function, "x", config=PLAIN)

    assert caught.value.code == ErrorCode(code)


def test_plain_returns_of_a_task_that_declares_a_result_stay_an_error() -> None:
    error = define_task(returning(3), "x", config=PLAIN).call().unwrap_err()

    assert error.error_code is OperationalErrorCode.TASK_EXCEPTION


@pytest.mark.seed("S133")
def test_stored_arguments_that_do_not_fit_are_a_task_error() -> None:
    result = define().decode_arguments('["x"]', None)

    assert isinstance(result, Err)
    assert result.err_value.error_code is OperationalErrorCode.WORKER_SERIALIZATION_ERROR
    assert result.err_value.data == {"task_name": "stable.feed"}
    assert "parameter 'n'" in (result.err_value.message or "")


def test_results_are_written_and_read_by_the_declared_type() -> None:
    def f() -> TaskResult[list[Horse], TaskError]:
        return TaskResult(ok=[Horse(name="a", age=1)])

    task = define(f)

    assert task.decode_result(task.settle_result(task.call())[0]) == f()


def test_a_result_over_the_limit_becomes_an_error() -> None:
    config = AppConfig(broker=BROKER, payload_max_bytes=60)
    task = define_task(plain_text, "x", config=config)

    assert task.settle_result(TaskResult(ok="a"))[1] == TaskResult(ok="a")
    text, written = task.settle_result(TaskResult(ok="é" * 20))

    assert written.unwrap_err().error_code is OperationalErrorCode.WORKER_SERIALIZATION_ERROR
    assert "too large" in written.unwrap_err().message
    assert task.decode_result(text) == written


def plain_text() -> TaskResult[str, TaskError]:
    return TaskResult(ok="")


class DeclinedError(OSError):
    """An exception with a subclass of its own."""


def test_a_raised_failure_ends_the_attempt_with_its_code() -> None:
    def pay() -> TaskResult[int, TaskError]:
        raise TaskFailed("CARD_DECLINED", "no money left", data={"cents": 1})

    error = define(pay).call().err_value

    assert (error.error_code, error.message, error.data) == (
        "CARD_DECLINED",
        "no money left",
        {"cents": 1},
    )


def test_a_raised_failure_cannot_use_a_reserved_code() -> None:
    def pay() -> TaskResult[int, TaskError]:
        raise TaskFailed("WAIT_TIMEOUT")

    assert "reserved built-in error code" in str(define(pay).call().err_value.message)


def test_exceptions_say_whether_they_ask_for_a_retry() -> None:
    policy = RetryPolicy.fixed([1], retry_on=[OSError])
    definition = define(retry_policy=policy)

    assert definition.retry_wish(Retry(after=0.2)) == 0.2
    assert definition.retry_wish(Retry()) == BY_POLICY
    assert definition.retry_wish(DeclinedError()) == BY_POLICY
    assert definition.retry_wish(KeyError()) is None
    assert define().retry_wish(DeclinedError()) is None


def test_an_exception_is_named_as_its_module_names_it() -> None:
    namespace: dict[str, Any] = {"__name__": "horsies_tasks_shop_0123456789ab"}
    exec("class DeclinedError(Exception): ...", namespace)

    message = define().judge_exception(namespace["DeclinedError"]("no")).err_value.message

    assert message == "task 'stable.feed' raised shop.DeclinedError: no"


@pytest.mark.parametrize(
    ("policy", "codes", "waits"),
    [
        (None, ["WORKER_CRASHED"], [1, 5, 30]),
        (RetryPolicy.fixed([7], auto_retry_for=["BUSY"]), ["BUSY", "WORKER_CRASHED"], [7]),
        (RetryPolicy.fixed([7], auto_retry_for=["WORKER_CRASHED"]), ["WORKER_CRASHED"], [7]),
    ],
    ids=["no policy", "another policy", "the same"],
)
def test_idempotent_task_is_retried_after_a_crash_and_may_be_interrupted(
    policy: RetryPolicy | None, codes: list[str], waits: list[int]
) -> None:
    made = define_task(good, "good", config=CONFIG, retry_policy=policy, idempotent=True)

    stored = made.options.retry_policy
    assert stored is not None
    assert [str(code) for code in stored.auto_retry_for] == codes
    assert stored.intervals == waits
    assert made.interruptible


def test_task_is_not_retried_after_a_crash_unless_it_says_so() -> None:
    made = define_task(good, "good", config=CONFIG)

    assert made.options.retry_policy is None
    assert not made.interruptible
