"""The codec as functions that return Ok or Err (docs/contract/tasks.md §11)."""

from collections.abc import Mapping
from typing import Any, TypeAlias, TypeVar

from horsies.codec.annotated import codec_for
from horsies.codec.results import AnyResult, ResultCodec, serialize_error_payload
from horsies.codec.shapes import Json, SerializationError, loads
from horsies.result import Err, Ok, Result, TaskError

T = TypeVar("T")
SerdeResult: TypeAlias = Result[T, SerializationError]

__all__ = [
    "Json",
    "SerdeResult",
    "SerializationError",
    "args_to_json",
    "dumps_json",
    "json_to_args",
    "json_to_kwargs",
    "kwargs_to_json",
    "loads_json",
    "rehydrate_value",
    "serialize_error_payload",
    "task_result_from_json",
    "to_jsonable",
]


def to_jsonable(value: object, annotation: object = Any) -> SerdeResult[Json]:
    """Convert a value to JSON values by its annotation, or to tagged shapes."""
    return _written(value, annotation).map(loads)


def rehydrate_value(json: Json, annotation: object = Any) -> SerdeResult[Any]:
    """Convert JSON values back by the annotation or their tags."""
    try:
        return Ok(codec_for(annotation).from_shape(json))
    except Exception as error:  # noqa: BLE001  # user code: validators and constructors
        return Err(_as_serialization_error(error))


def dumps_json(value: object) -> SerdeResult[str]:
    """Write a value as compact, tagged text."""
    return _written(value, Any)


def args_to_json(args: tuple[object, ...]) -> SerdeResult[str]:
    """Write positional arguments as an array."""
    return _written(list(args), Any)


def kwargs_to_json(kwargs: Mapping[str, object]) -> SerdeResult[str]:
    """Write keyword arguments as an object."""
    return _written(kwargs, Any)


def loads_json(text: str | None) -> SerdeResult[Json]:
    """Parse text; None and the empty text give None."""
    try:
        return Ok(loads(text) if text else None)
    except SerializationError as error:
        return Err(error)


def json_to_args(json: Json) -> SerdeResult[list[Any]]:
    """Read positional arguments without annotations."""
    if json is not None and not isinstance(json, list):
        return Err(SerializationError("args is not a JSON array"))
    return rehydrate_value(json or [])


def json_to_kwargs(json: Json) -> SerdeResult[dict[str, Any]]:
    """Read keyword arguments without annotations."""
    if json is not None and not isinstance(json, dict):
        return Err(SerializationError("kwargs is not a JSON object"))
    return rehydrate_value(json or {})


def task_result_from_json(json: Json, ok_type: object = Any) -> SerdeResult[AnyResult]:
    """Read a result; an ok value that does not match its type becomes an error result."""
    try:
        return Ok(ResultCodec(ok_type, TaskError).from_shape(json))
    except SerializationError as error:
        return Err(error)


def _written(value: object, annotation: object) -> SerdeResult[str]:
    try:
        return Ok(codec_for(annotation).encode(value))
    except Exception as error:  # noqa: BLE001  # user code: validators and serializers
        return Err(_as_serialization_error(error))


def _as_serialization_error(error: Exception) -> SerializationError:
    if isinstance(error, SerializationError):
        return error
    wrapped = SerializationError(f"{type(error).__name__}: {error}")
    wrapped.__cause__ = error
    return wrapped
