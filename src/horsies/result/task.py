"""TaskResult and TaskError: what a task returns and what a caller reads back."""

import os
import traceback
from collections.abc import Mapping
from enum import Enum
from pathlib import Path
from types import GenericAlias, TracebackType
from typing import (
    TYPE_CHECKING,
    Annotated,
    Any,
    Generic,
    TypeAlias,
    TypeVar,
    cast,
    final,
    get_args,
    overload,
)

from pydantic import BaseModel, ConfigDict, GetCoreSchemaHandler, PlainSerializer, PlainValidator
from pydantic_core import CoreSchema, core_schema

from horsies.codes import BUILTIN_CODE_FAMILIES, BUILTIN_CODE_REGISTRY, BuiltInTaskCode

T_co = TypeVar("T_co", covariant=True)
E_co = TypeVar("E_co", covariant=True)

BUILTIN_CODE_TAG = "__builtin_task_code__"
# What calls user code. The demo's tasks live in this package too, so it is not the whole of it.
_CALLERS = tuple(
    f"{Path(__file__).parents[1] / name}{os.sep}"
    for name in ("contrib", "executors", "observability", "tasks", "testing")
)


def _read_code(value: object) -> BuiltInTaskCode | str | None:
    if value is None or isinstance(value, BUILTIN_CODE_FAMILIES):
        return value
    if isinstance(value, dict):
        name = cast("dict[str, object]", value).get(BUILTIN_CODE_TAG)
        if isinstance(name, str) and name in BUILTIN_CODE_REGISTRY:
            return BUILTIN_CODE_REGISTRY[name]
        raise ValueError(f"unknown built-in error code: {value!r}")
    if not isinstance(value, str) or isinstance(value, Enum):
        raise ValueError(f"User error codes must be plain str, not {type(value).__name__}")  # noqa: TRY004
    if value in BUILTIN_CODE_REGISTRY:
        raise ValueError(f"{value!r} is a reserved built-in error code; use the enum member")
    return value


def dump_code(code: BuiltInTaskCode | str | None) -> dict[str, str] | str | None:
    """Write a code so that reading it returns the same member or text."""
    return {BUILTIN_CODE_TAG: code.value} if isinstance(code, BUILTIN_CODE_FAMILIES) else code


def _read_exception(value: object) -> BaseException | dict[str, Any] | None:
    if value is None or isinstance(value, (BaseException, dict)):
        return cast("BaseException | dict[str, Any] | None", value)
    raise ValueError(f"exception must be an exception or a dict, not {type(value).__name__}")


def dump_exception(error: BaseException | dict[str, Any] | None) -> dict[str, Any] | None:
    """Describe an exception in plain JSON values; leave an existing description unchanged."""
    if not isinstance(error, BaseException):
        return error
    try:
        message = str(error)
    except (Exception, SystemExit, KeyboardInterrupt):  # noqa: BLE001  # __str__ is user code
        message = "<exception without text>"
    lines = traceback.format_exception(type(error), error, _from_user_code(error.__traceback__))
    return {"type": type(error).__name__, "message": message, "traceback": "".join(lines)}


def _from_user_code(whole: TracebackType | None) -> TracebackType | None:
    """Leave out the frames of ours that led to user code; keep all if there is nothing else."""
    first = whole
    while first is not None and first.tb_frame.f_code.co_filename.startswith(_CALLERS):
        first = first.tb_next
    return first or whole


# Plain functions are faster than unions of pydantic schemas, and every failed attempt builds an
# error.
_Code: TypeAlias = Annotated[
    BuiltInTaskCode | str | None, PlainValidator(_read_code), PlainSerializer(dump_code)
]
_Exception: TypeAlias = Annotated[
    BaseException | dict[str, Any] | None,
    PlainValidator(_read_exception),
    PlainSerializer(dump_exception, when_used="json"),
]


class TaskError(BaseModel):
    """Why a task failed. `error_code` is a built-in member or your own text.

    >>> TaskError(error_code="OUT_OF_STOCK", message="no horses left").error_code
    'OUT_OF_STOCK'
    """

    model_config = ConfigDict(arbitrary_types_allowed=True)

    error_code: _Code = None
    message: str | None = None
    data: Any = None
    exception: _Exception = None

    def __str__(self) -> str:
        """`CODE: message`, the way people read an error."""
        return ": ".join(str(part) for part in (self.error_code, self.message) if part) or repr(
            self
        )


class _Missing(Enum):
    MISSING = 0


_MISSING = _Missing.MISSING


@final
class TaskResult(Generic[T_co, E_co]):
    """The result of a task: `TaskResult(ok=value)` or `TaskResult(err=error)`.

    >>> TaskResult(ok=3).unwrap()
    3
    """

    __slots__ = ("_err", "_ok")
    _ok: T_co | _Missing
    _err: E_co | _Missing

    if not TYPE_CHECKING:  # type checkers check the number of parameters themselves

        def __class_getitem__(cls, parameters: object) -> object:
            # The task decorator rejects a wrong number, because it knows the place and the cure.
            if isinstance(parameters, tuple) and len(parameters) == 2:
                return super().__class_getitem__(parameters)
            return GenericAlias(cls, parameters)

    @overload
    def __init__(self, *, ok: T_co) -> None: ...
    @overload
    def __init__(self, *, err: E_co) -> None: ...
    def __init__(self, *, ok: T_co | _Missing = _MISSING, err: E_co | _Missing = _MISSING) -> None:
        if (ok is _MISSING) is (err is _MISSING):
            raise ValueError("TaskResult takes exactly one of ok and err")
        self._ok = ok
        self._err = err

    def __repr__(self) -> str:
        if self._err is _MISSING:
            return f"TaskResult(ok={self._ok!r})"
        return f"TaskResult(err={self._err!r})"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, TaskResult):
            return NotImplemented
        return bool(self._ok == other._ok) and bool(self._err == other._err)

    __hash__ = None  # type: ignore[assignment]  # equality is by value, and values may be unhashable

    def is_ok(self) -> bool:
        return self._err is _MISSING

    def is_err(self) -> bool:
        return self._err is not _MISSING

    @property
    def ok(self) -> T_co | None:
        return None if isinstance(self._ok, _Missing) else self._ok

    @property
    def err(self) -> E_co | None:
        return None if isinstance(self._err, _Missing) else self._err

    @property
    def ok_value(self) -> T_co:
        if isinstance(self._ok, _Missing):
            raise ValueError(f"this result is an error: {self._err}")  # noqa: TRY004
        return self._ok

    @property
    def err_value(self) -> E_co:
        if isinstance(self._err, _Missing):
            raise ValueError("this result is a success and has no error")  # noqa: TRY004
        return self._err

    def unwrap(self) -> T_co:
        return self.ok_value

    def unwrap_err(self) -> E_co:
        return self.err_value

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        """Python input is checked by class only; JSON input is the envelope."""
        arguments = get_args(source)
        ok, err = (
            (handler.generate_schema(arguments[0]), handler.generate_schema(arguments[1]))
            if len(arguments) == 2
            else (core_schema.any_schema(), handler.generate_schema(TaskError))
        )
        envelope = core_schema.typed_dict_schema(
            {
                "ok": core_schema.typed_dict_field(core_schema.nullable_schema(ok)),
                "err": core_schema.typed_dict_field(core_schema.nullable_schema(err)),
            },
            extra_behavior="ignore",
        )
        return core_schema.json_or_python_schema(
            json_schema=core_schema.no_info_after_validator_function(_from_envelope, envelope),
            python_schema=core_schema.is_instance_schema(cls),
            serialization=core_schema.plain_serializer_function_ser_schema(
                _to_envelope, when_used="json"
            ),
        )


def _from_envelope(envelope: Mapping[str, object]) -> "TaskResult[object, object]":
    if envelope["err"] is not None:
        return TaskResult(err=envelope["err"])
    return TaskResult(ok=envelope["ok"])


def _to_envelope(result: "TaskResult[object, object]") -> dict[str, object]:
    return {"__task_result__": True, "ok": result.ok, "err": result.err}
