"""Ok and Err, TaskResult and TaskError."""

import pickle
from enum import Enum
from typing import Any

import pytest
from pydantic import BaseModel, TypeAdapter, ValidationError

from horsies.codes import (
    BrokerErrorCode,
    HandleErrorCode,
    TaskSendErrorCode,
    WorkflowStartErrorCode,
)
from horsies.result import (
    BUILTIN_CODE_REGISTRY,
    ContractCode,
    Err,
    Ok,
    OperationalErrorCode,
    OutcomeCode,
    Result,
    RetrievalCode,
    TaskError,
    TaskResult,
    UnwrapError,
    is_err,
    is_ok,
)
from horsies.result.broker import BrokerOperationError
from horsies.sending.errors import TaskSendError
from horsies.workflows.errors import HandleOperationError, WorkflowStartError


def double(value: int) -> int:
    return value * 2


def test_ok_gives_its_value_everywhere() -> None:
    result: Result[int, str] = Ok(3)

    assert (result.is_ok(), result.is_err(), is_ok(result), is_err(result)) == (
        True,
        False,
        True,
        False,
    )
    assert (result.ok(), result.err()) == (3, None)
    assert (result.unwrap(), result.expect("x"), result.unwrap_or(9)) == (3, 3, 3)
    assert result.unwrap_or_else(lambda _: 9) == 3
    assert result.unwrap_or_raise(RuntimeError) == 3
    assert result.map(double) == Ok(6)
    assert result.map_err(str.upper) is result
    assert (result.map_or(0, double), result.map_or_else(lambda: 0, double)) == (6, 6)
    assert result.and_then(lambda v: Ok(v + 1)) == Ok(4)
    assert result.or_else(lambda _: Ok(0)) is result
    assert list(Ok(3)) == [3]


def test_err_gives_its_error_everywhere() -> None:
    result: Result[int, str] = Err("x")

    assert (result.is_ok(), result.is_err()) == (False, True)
    assert (result.ok(), result.err()) == (None, "x")
    assert (result.unwrap_err(), result.expect_err("m"), result.unwrap_or(9)) == ("x", "x", 9)
    assert result.unwrap_or_else(len) == 1
    assert result.map(double) is result
    assert result.map_err(str.upper) == Err("X")
    assert (result.map_or(0, double), result.map_or_else(lambda: 5, double)) == (0, 5)
    assert result.and_then(lambda v: Ok(v + 1)) is result
    assert result.or_else(lambda e: Ok(len(e))) == Ok(1)
    with pytest.raises(RuntimeError, match="x"):
        result.unwrap_or_raise(RuntimeError)


def test_inspect_sees_only_its_own_variant() -> None:
    seen: list[Any] = []

    Ok(1).inspect(seen.append).inspect_err(seen.append)
    Err("e").inspect(seen.append).inspect_err(seen.append)

    assert seen == [1, "e"]


def test_the_other_variants_attribute_does_not_exist() -> None:
    assert not hasattr(Ok(1), "err_value")
    assert not hasattr(Err(1), "ok_value")
    assert (Ok(1).ok_value, Err(2).err_value) == (1, 2)


def test_unwrapping_the_wrong_variant_raises_a_value_error() -> None:
    with pytest.raises(UnwrapError, match="reading"):
        Err("gone").expect("reading")
    with pytest.raises(ValueError, match="unwrap_err"):
        Ok(1).unwrap_err()


def test_unwrap_error_is_caused_by_the_exception_inside() -> None:
    cause = KeyError("k")

    with pytest.raises(UnwrapError) as caught:
        Err(cause).unwrap()

    assert caught.value.__cause__ is cause


def test_results_match_by_position() -> None:
    match Ok(5):
        case Ok(value):
            found = value
        case _:
            found = None

    assert found == 5


def test_results_are_equal_by_variant_and_value_and_hashable() -> None:
    assert Ok(1) == Ok(1)
    assert Ok(1) != Err(1)
    assert Ok(1) != 1
    assert len({Ok(1), Ok(1), Err(1)}) == 2
    assert (repr(Ok(123)), repr(Err("x"))) == ("Ok(123)", "Err('x')")


def test_results_take_no_attributes() -> None:
    with pytest.raises(AttributeError):
        Ok(1).extra = 2  # type: ignore[attr-defined]
    with pytest.raises(AttributeError):
        Err(1)._error = 2


def test_results_survive_pickling() -> None:
    assert pickle.loads(pickle.dumps([Ok(1), Err("x")])) == [Ok(1), Err("x")]


def test_json_form_names_the_variant() -> None:
    assert Ok(1).__json__() == {"_tag": "Ok", "value": 1}
    assert Err(2).__json__() == {"_tag": "Err", "error": "2"}
    assert Err(ValueError("bad")).__json__() == {
        "_tag": "Err",
        "error": {"exception_type": "ValueError", "message": "bad"},
    }


async def test_async_forms_await_the_function() -> None:
    async def add(value: int) -> int:
        return value + 1

    async def check(value: int) -> Result[int, str]:
        return Err("big") if value > 1 else Ok(value)

    assert await Ok(1).map_async(add) == Ok(2)
    assert await Ok(2).and_then_async(check) == Err("big")
    assert await Err("e").map_async(add) == Err("e")
    assert await Err("e").and_then_async(check) == Err("e")


def test_task_result_is_success_also_with_none() -> None:
    result: TaskResult[None, TaskError] = TaskResult(ok=None)

    assert result.is_ok()
    assert not result.is_err()
    assert (result.ok, result.err, result.unwrap()) == (None, None, None)
    with pytest.raises(ValueError, match="no error"):
        _ = result.err_value


def test_task_result_error_has_no_value() -> None:
    error = TaskError(error_code="OUT_OF_HAY")
    result: TaskResult[int, TaskError] = TaskResult(err=error)

    assert result.is_err()
    assert (result.ok, result.err) == (None, error)
    assert result.unwrap_err() is error
    with pytest.raises(ValueError, match="OUT_OF_HAY"):
        result.unwrap()


@pytest.mark.parametrize("arguments", [{}, {"ok": 1, "err": 2}, {"ok": None, "err": None}])
def test_task_result_takes_exactly_one_variant(arguments: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="exactly one"):
        TaskResult(**arguments)


def test_nested_task_results_round_trip_through_pydantic_json() -> None:
    adapter = TypeAdapter(list[TaskResult[int, TaskError]])
    results = [TaskResult(ok=1), TaskResult(err=TaskError(error_code=OutcomeCode.TASK_EXPIRED))]

    text = adapter.dump_json(results)  # type: ignore[arg-type]

    assert adapter.validate_json(text) == results


def test_code_families_are_disjoint_and_complete() -> None:
    families = (OperationalErrorCode, ContractCode, RetrievalCode, OutcomeCode)

    members = [member for family in families for member in family]

    assert len(members) == len(BUILTIN_CODE_REGISTRY) == 26
    assert all(BUILTIN_CODE_REGISTRY[member.value] is member for member in members)
    assert all(member.value == member.name for member in members)


class Wrapper(BaseModel):
    error: TaskError


@pytest.mark.parametrize(
    "code", [*BUILTIN_CODE_REGISTRY.values(), "MY_CODE", "lower", None], ids=str
)
def test_codes_round_trip_to_the_identical_member_in_every_mode(code: Any) -> None:
    error = TaskError(error_code=code)
    wrapped = Wrapper(error=error)

    for dumped in (error.model_dump(), error.model_dump(mode="json")):
        assert TaskError.model_validate(dumped).error_code is error.error_code
    assert TaskError.model_validate_json(error.model_dump_json()) == error
    assert Wrapper.model_validate_json(wrapped.model_dump_json()) == wrapped


class Foreign(str, Enum):  # noqa: UP042  # a user's enum of the older kind
    MINE = "MINE"


@pytest.mark.parametrize(
    ("code", "text"),
    [
        ("TASK_EXPIRED", "reserved built-in error code"),
        (Foreign.MINE, "User error codes must be plain str"),
        ({"__builtin_task_code__": "NO_SUCH"}, "unknown built-in"),
        ({"other": 1}, "unknown built-in"),
        (7, "User error codes must be plain str"),
    ],
)
def test_codes_that_could_be_mistaken_are_refused(code: Any, text: str) -> None:
    with pytest.raises(ValidationError, match=text):
        TaskError(error_code=code)


def test_tagged_code_becomes_the_member() -> None:
    error = TaskError(error_code={"__builtin_task_code__": "WORKER_CRASHED"})  # type: ignore[arg-type]

    assert error.error_code is OperationalErrorCode.WORKER_CRASHED


def test_an_exception_is_described_when_dumped_as_json() -> None:
    error = TaskError(exception=ValueError("bad"))

    described = error.model_dump(mode="json")["exception"]

    assert (described["type"], described["message"]) == ("ValueError", "bad")
    assert "ValueError: bad" in described["traceback"]
    assert isinstance(error.model_dump()["exception"], ValueError)


@pytest.mark.parametrize(
    ("error", "shown"),
    [
        (
            TaskSendError(TaskSendErrorCode.VALIDATION_FAILED, "no such queue", retryable=False),
            "VALIDATION_FAILED: no such queue",
        ),
        (
            BrokerOperationError(BrokerErrorCode.NO_BROKER, "no broker here", retryable=False),
            "NO_BROKER: no broker here",
        ),
        (
            WorkflowStartError(
                WorkflowStartErrorCode.ENQUEUE_FAILED, "server gone", True, "daily", "id"
            ),
            "ENQUEUE_FAILED: server gone",
        ),
        (
            HandleOperationError(HandleErrorCode.WORKFLOW_NOT_FOUND, "no such one", False, "id"),
            "WORKFLOW_NOT_FOUND: no such one",
        ),
    ],
    ids=lambda value: type(value).__name__,
)
def test_an_error_tells_its_message_by_str_and_unwrap(error: object, shown: str) -> None:
    assert str(error) == shown
    with pytest.raises(UnwrapError, match=f"^unwrap.. on Err: {shown}$"):
        Err(error).unwrap()
    with pytest.raises(UnwrapError, match=f"^sending: {shown}$"):
        Err(error).expect("sending")


def test_a_failed_send_never_shows_the_row_of_the_servers_answer() -> None:
    message = (
        "CheckViolation: new row violates a constraint\nDETAIL:  Failing row contains (secret)"
    )
    error = TaskSendError(TaskSendErrorCode.ENQUEUE_FAILED, message, retryable=False)

    assert str(error) == "ENQUEUE_FAILED: CheckViolation: new row violates a constraint"
    assert "secret" not in repr(error)


def test_a_task_error_tells_its_message_by_str_and_unwrap() -> None:
    error = TaskError(error_code="OUT_OF_STOCK", message="no horses left")

    assert str(error) == "OUT_OF_STOCK: no horses left"
    with pytest.raises(ValueError, match="this result is an error: OUT_OF_STOCK: no horses left"):
        TaskResult(err=error).unwrap()


def test_an_unwrapped_error_is_caused_by_the_exception_it_carries() -> None:
    cause = OSError("refused")
    code = TaskSendErrorCode.ENQUEUE_FAILED

    with pytest.raises(UnwrapError) as caught:
        Err(TaskSendError(code, "gone", retryable=True, exception=cause)).unwrap()

    assert caught.value.__cause__ is cause
