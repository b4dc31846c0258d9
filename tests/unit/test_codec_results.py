"""The envelope of results: what is stored, and what is read from it."""

import datetime as dt
import json
from typing import Any

import pytest

from horsies.codec.results import ResultCodec, read_result, serialize_error_payload
from horsies.codec.serde import task_result_from_json
from horsies.codec.shapes import SerializationError
from horsies.result import (
    ContractCode,
    Err,
    OperationalErrorCode,
    OutcomeCode,
    TaskError,
    TaskResult,
)
from support.codec_models import Horse, RaceHorse

MOMENT = dt.datetime(2024, 2, 3, tzinfo=dt.UTC)


class StableError(TaskError):
    stall: int


@pytest.mark.parametrize(
    ("ok_type", "value", "stored"),
    [
        (int, 3, "3"),
        (type(None), None, "null"),
        (list[dt.date], [dt.date(2024, 1, 2)], '["2024-01-02"]'),
        (Horse, Horse(name="é", age=1), '{"name":"é","age":1}'),
        (Any, [1, "x"], '[1,"x"]'),
    ],
)
def test_success_is_always_the_same_envelope(ok_type: Any, value: Any, stored: str) -> None:
    codec = ResultCodec(ok_type)

    text = codec.encode(TaskResult(ok=value))

    assert text == f'{{"__task_result__":true,"ok":{stored},"err":null}}'
    assert codec.decode(text) == TaskResult(ok=value)


def test_a_subclass_in_the_result_keeps_its_type() -> None:
    codec = ResultCodec(Horse)
    horse = RaceHorse(name="a", age=1, wins=2)

    assert codec.decode(codec.encode(TaskResult(ok=horse))).unwrap() == horse


def test_error_envelope_tags_built_in_codes_and_describes_the_exception() -> None:
    error = TaskError(
        error_code=OutcomeCode.TASK_TIMEOUT,
        message="slow",
        data={"at": MOMENT},
        exception=ValueError("x"),
    )

    stored = json.loads(ResultCodec(int).encode(TaskResult(err=error)))

    exception = stored["err"].pop("exception")
    assert exception.keys() == {"type", "message", "traceback"}
    assert stored == {
        "__task_result__": True,
        "ok": None,
        "err": {
            "__task_error__": True,
            "error_code": {"__builtin_task_code__": "TASK_TIMEOUT"},
            "message": "slow",
            "data": {"at": {"__datetime__": True, "value": MOMENT.isoformat()}},
        },
    }


@pytest.mark.parametrize(
    ("err_type", "error"),
    [
        (TaskError, TaskError(error_code="MINE", data={"a": [MOMENT]})),
        (TaskError, TaskError(error_code=OutcomeCode.TASK_EXPIRED)),
        (StableError, StableError(error_code="X", stall=3)),
        (int, 404),
        (Horse, Horse(name="a", age=1)),
    ],
)
def test_errors_of_any_declared_type_round_trip(err_type: Any, error: Any) -> None:
    codec = ResultCodec(int, err_type)

    read = codec.decode(codec.encode(TaskResult(err=error))).unwrap_err()

    assert read == error
    assert type(read) is type(error)


def test_the_engines_errors_are_read_whatever_error_type_is_declared() -> None:
    failure: TaskResult[Any, TaskError] = TaskResult(
        err=TaskError(error_code=OperationalErrorCode.WORKER_CRASHED)
    )

    assert ResultCodec(int, StableError).decode(serialize_error_payload(failure)) == failure
    assert ResultCodec(int, int).decode(serialize_error_payload(failure)) == failure


@pytest.mark.parametrize("value", [object(), float("nan"), {1, 2}], ids=["object", "nan", "set"])
def test_an_unwritable_result_becomes_a_serialization_error(value: Any) -> None:
    text, written = ResultCodec(Any).encode_always(TaskResult(ok=value))

    code = OperationalErrorCode.WORKER_SERIALIZATION_ERROR
    assert written.unwrap_err().error_code is code
    assert read_result(text).unwrap_err().error_code is code


def test_an_error_that_cannot_be_written_is_stored_as_a_constant() -> None:
    failure: TaskResult[Any, TaskError] = TaskResult(err=TaskError(data=object()))

    error = read_result(serialize_error_payload(failure)).unwrap_err()

    assert error.error_code is OperationalErrorCode.WORKER_SERIALIZATION_ERROR
    assert error.message
    assert error.data is None


@pytest.mark.parametrize("text", ["", "{", "[]", "3", '{"a":1}', '{"__task_result__":true}'])
def test_text_that_is_no_result_is_an_error_result(text: str) -> None:
    error = read_result(text).unwrap_err()

    assert error.error_code is OperationalErrorCode.RESULT_DESERIALIZATION_ERROR
    with pytest.raises(SerializationError):
        ResultCodec(int).decode(text)


@pytest.mark.parametrize(
    "ok",
    [
        "x",
        None,
        {"__pydantic_model__": True, "module": "gone", "qualname": "Gone", "data": {}},
    ],
)
def test_an_ok_value_that_no_longer_fits_is_a_hydration_error(ok: Any) -> None:
    text = json.dumps({"__task_result__": True, "ok": ok, "err": None}, separators=(",", ":"))

    error = ResultCodec(int).decode(text).unwrap_err()

    assert error.error_code is ContractCode.PYDANTIC_HYDRATION_ERROR


def test_results_without_the_tag_are_accepted() -> None:
    assert task_result_from_json({"ok": 3}, int).unwrap() == TaskResult(ok=3)
    read = task_result_from_json({"err": {"error_code": "X"}}).unwrap()
    assert read == TaskResult(err=TaskError(error_code="X"))
    assert isinstance(task_result_from_json({"ok": 1, "other": 2}), Err)
    assert isinstance(task_result_from_json([]), Err)


def test_an_exception_with_lone_surrogates_is_still_told() -> None:
    error = TaskError(error_code="X", message="a\ud800", exception=ValueError("b\ud800"))

    written = serialize_error_payload(TaskResult(err=error))

    assert '"error_code":"X"' in written
    assert '"message":"a?"' in written
    assert '"message":"b?"' in written
