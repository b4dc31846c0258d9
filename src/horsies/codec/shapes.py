"""Write values without a usable annotation as JSON: plain where possible, else with a tag.

A tag names a class; it is looked up only in modules that this process has already imported.
"""

import dataclasses
import json
import math
import sys
from collections.abc import Mapping, Sequence
from datetime import date, datetime, time
from enum import Enum
from typing import Any, TypeAlias, cast

from pydantic import BaseModel
from pydantic_core import PydanticSerializationError, from_json, to_json

from horsies.result import TaskError, TaskResult
from horsies.result.task import dump_code, dump_exception
from horsies.result.workflow import SubWorkflowError

JsonObject: TypeAlias = dict[str, Any]  # parsed JSON
Json: TypeAlias = JsonObject | list[Any] | str | int | float | bool | None

RESULT_TAG = "__task_result__"
ERROR_TAG = "__task_error__"
MODEL_TAG = "__pydantic_model__"
DATACLASS_TAG = "__dataclass__"
INJECTED_RESULT_TAG = "__horsies_taskresult__"
_TIME_TYPES: dict[str, type[datetime | date | time]] = {
    "__datetime__": datetime,
    "__date__": date,
    "__time__": time,
}
_TAGS = frozenset({RESULT_TAG, MODEL_TAG, DATACLASS_TAG, INJECTED_RESULT_TAG, *_TIME_TYPES})


class SerializationError(ValueError):
    """A value cannot be written as JSON, or JSON cannot be read as the requested type."""


@dataclasses.dataclass(slots=True)
class TagCount:
    """How many tags we wrote; any others in the text come from keys in the user's data."""

    written: int = 0


def dumps(shape: Json) -> str:
    """Write compact text; NaN and infinities were rejected before, non-ASCII characters stay."""
    try:
        return to_json(shape).decode()
    except PydanticSerializationError as error:
        raise SerializationError(f"cannot be written as JSON: {error}") from error


def loads(text: str) -> Json:
    """Read JSON text."""
    try:
        return cast("Json", from_json(text))
    except ValueError as error:
        raise SerializationError(f"not JSON: {error}") from error


def refuse_constants(text: str) -> None:
    """Raise if the text contains NaN or an infinity, which are not JSON."""
    if "NaN" in text or "Infinity" in text:
        json.loads(text, parse_constant=_refuse_constant)


def _refuse_constant(name: str) -> None:
    raise SerializationError(f"{name} is not a JSON number")


def to_shape(value: object, tags: TagCount) -> Json:  # noqa: PLR0911  # one return per shape
    """Convert a value to JSON values; raise SerializationError if there is no shape for it."""
    if value is None or isinstance(value, (bool, int, float, str)):
        return _scalar_shape(value)
    if isinstance(value, (datetime, date, time)):
        tags.written += 1
        tag = next(tag for tag, cls in _TIME_TYPES.items() if isinstance(value, cls))
        return {tag: True, "value": value.isoformat()}
    if isinstance(value, BaseModel):
        return class_shape(value, tags)
    if isinstance(value, TaskResult):
        return result_shape(value, tags)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return class_shape(value, tags)
    if isinstance(value, Mapping):
        return _object_shape(cast("Mapping[object, object]", value), tags)
    if isinstance(value, Sequence) and not isinstance(value, (bytes, bytearray, memoryview)):
        return [to_shape(item, tags) for item in cast("Sequence[object]", value)]
    raise SerializationError(
        f"{type(value).__name__} has no JSON shape without an annotation that names its type"
    )


def _scalar_shape(value: float | str | None) -> Json:
    if isinstance(value, Enum):
        raise SerializationError(f"{type(value).__name__} needs an annotation that names its type")
    if isinstance(value, float) and not math.isfinite(value):
        raise SerializationError(f"{value} is not a JSON number")
    return value


def _object_shape(value: Mapping[object, object], tags: TagCount) -> Json:
    shape = {str(key): to_shape(item, tags) for key, item in value.items()}
    if len(shape) < len(value):
        raise SerializationError("two keys of a mapping are the same as text")
    if not _TAGS.isdisjoint(shape):
        raise SerializationError(f"reserved key {min(_TAGS & shape.keys())!r} in a mapping")
    return shape


def class_shape(value: object, tags: TagCount) -> Json:
    """Write a model or dataclass instance under a tag that names its class."""
    cls = type(value)
    if cls.__module__ == "__main__" or "<locals>" in cls.__qualname__:
        raise SerializationError(
            f"{cls.__qualname__} is defined in __main__ or inside a function, so "
            "no other process can find it; annotate the parameter or move the class to a module"
        )
    if find_class(cls.__module__, cls.__qualname__) is not cls:
        raise SerializationError(f"{cls.__module__}.{cls.__qualname__} does not name its class")
    tags.written += 1
    if isinstance(value, BaseModel):
        tag, data = MODEL_TAG, cast("Json", value.model_dump(mode="json", warnings="error"))
        if has_tag(data):
            raise SerializationError(f"reserved key inside {cls.__qualname__}")
    else:
        fields = dataclasses.fields(cast("Any", value))
        tag, data = (
            DATACLASS_TAG,
            {field.name: to_shape(getattr(value, field.name), tags) for field in fields},
        )
    return {tag: True, "module": cls.__module__, "qualname": cls.__qualname__, "data": data}


def result_shape(result: TaskResult[object, object], tags: TagCount) -> Json:
    """Write the envelope of a result whose types are unknown."""
    tags.written += 1
    if result.is_ok():
        return {RESULT_TAG: True, "ok": to_shape(result.ok, tags), "err": None}
    return {RESULT_TAG: True, "ok": None, "err": error_shape(result.err, tags)}


def error_shape(error: object, tags: TagCount) -> Json:
    """Write a TaskError or an instance of a subclass; write any other value by its shape."""
    if not isinstance(error, TaskError):
        return to_shape(error, tags)
    own = error.model_dump(mode="json", exclude=set(TaskError.model_fields), warnings="error")
    shape: JsonObject = {
        ERROR_TAG: True,
        "error_code": dump_code(error.error_code),
        "message": _writable(error.message),
        "data": to_shape(error.data, tags),
        **own,
    }
    if error.exception is not None:
        described = dump_exception(error.exception) or {}
        shape["exception"] = {key: _writable(value) for key, value in described.items()}
    return shape


def _writable(value: object) -> object:
    """Replace lone surrogates, which have no encoding, by `?`: every error must be stored."""
    if isinstance(value, str) and not value.isascii():
        return value.encode("utf-8", "replace").decode()
    return value


def has_tag(shape: Json) -> bool:
    """Whether the value contains a tagged object."""
    return count_tags(shape) > 0


def count_tags(shape: Json) -> int:
    """Count the tagged objects in a value."""
    if isinstance(shape, dict):
        own = any(shape.get(tag) is True for tag in _TAGS)
        return own + sum(count_tags(item) for item in shape.values())
    if isinstance(shape, list):
        return sum(count_tags(item) for item in shape)
    return 0


def resolve_tags(shape: Json) -> object:
    """Convert tagged objects back to values, at any depth; everything else stays as it is."""
    if isinstance(shape, list):
        return [resolve_tags(item) for item in shape]
    if not isinstance(shape, dict):
        return shape
    tag = next((tag for tag in _TAGS if shape.get(tag) is True), None)
    if tag is None:
        return {key: resolve_tags(item) for key, item in shape.items()}
    if tag == RESULT_TAG:
        return _read_result(shape)
    if tag == INJECTED_RESULT_TAG:
        raise SerializationError("a result of another node can only be an argument")
    if tag in _TIME_TYPES:
        return _TIME_TYPES[tag].fromisoformat(shape["value"])
    cls = find_class(shape.get("module"), shape.get("qualname"))
    return _read_model(cls, shape) if tag == MODEL_TAG else _read_dataclass(cls, shape)


def read_error(shape: Json, error_type: type[TaskError] = TaskError) -> object:
    """Read the err part of an envelope: a TaskError if it is tagged, else the resolved value."""
    if not (isinstance(shape, dict) and (ERROR_TAG in shape or "error_code" in shape)):
        return resolve_tags(shape)
    fields = {key: value for key, value in shape.items() if key != ERROR_TAG}
    if "sub_workflow_id" in fields and "sub_workflow_summary" in fields:
        error_type = SubWorkflowError
    return error_type.model_validate({**fields, "data": resolve_tags(shape.get("data"))})


def _read_result(shape: JsonObject) -> TaskResult[object, object]:
    if shape.get("err") is not None:
        return TaskResult(err=read_error(shape["err"]))
    return TaskResult(ok=resolve_tags(shape.get("ok")))


def find_class(module_name: object, qualname: object) -> type | None:
    """Find a class by name without importing or calling the `__getattr__` of a module."""
    if not (isinstance(module_name, str) and isinstance(qualname, str)):
        return None
    found: object = sys.modules.get(module_name)
    for part in qualname.split("."):
        found = getattr(found, "__dict__", {}).get(part)
    return found if isinstance(found, type) else None


def _read_model(cls: type | None, shape: JsonObject) -> BaseModel:
    if cls is None or not issubclass(cls, BaseModel):
        raise SerializationError(f"unknown model class {_class_name(shape)}")
    data: Json = shape.get("data")
    if has_tag(data):
        return cls.model_validate(resolve_tags(data))
    # JSON mode: strict models then accept text for types that JSON does not have.
    return cls.model_validate_json(to_json(data))


def _read_dataclass(cls: type | None, shape: JsonObject) -> object:
    data = shape.get("data")
    if cls is None or not dataclasses.is_dataclass(cls) or not isinstance(data, dict):
        raise SerializationError(f"unknown dataclass {_class_name(shape)}")
    stored = {name: resolve_tags(item) for name, item in cast("dict[str, Json]", data).items()}
    fields = {field.name: field for field in dataclasses.fields(cls) if field.name in stored}
    value = cls(**{name: stored[name] for name, field in fields.items() if field.init})
    for name, field in fields.items():
        if not field.init:
            object.__setattr__(value, name, stored[name])  # works for frozen dataclasses too
    return value


def _class_name(shape: JsonObject) -> str:
    return f"{shape.get('module')}.{shape.get('qualname')}"
