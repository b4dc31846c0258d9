"""Write a TaskResult as JSON text: a fixed envelope, with the ok value by its annotation."""

import dataclasses
from typing import Any, TypeAlias

from typing_extensions import TypeIs

from horsies.codec.annotated import TypeCodec, codec_for, unwritable_path
from horsies.codec.shapes import (
    ERROR_TAG,
    RESULT_TAG,
    Json,
    SerializationError,
    TagCount,
    dumps,
    error_shape,
    loads,
    read_error,
)
from horsies.result import ContractCode, OperationalErrorCode, TaskError, TaskResult

AnyResult: TypeAlias = TaskResult[Any, Any]  # its values are the user's

_OK_START = '{"__task_result__":true,"ok":'
_OK_END = ',"err":null}'
_LAST_RESORT = (
    '{"__task_result__":true,"ok":null,"err":{"__task_error__":true,'
    '"error_code":{"__builtin_task_code__":"WORKER_SERIALIZATION_ERROR"},'
    '"message":"the result and its error could not be serialized","data":null}}'
)


@dataclasses.dataclass(frozen=True, slots=True)
class ResultCodec:
    """Writes and reads the results of one task."""

    ok_type: object
    error_type: object = TaskError

    @property
    def ok(self) -> TypeCodec:
        # Built on first use: at definition, forward references of the type may be unresolved.
        return codec_for(self.ok_type)

    def encode(self, result: AnyResult) -> str:
        """Write a result; raise SerializationError."""
        try:
            if result.is_ok():
                return f"{_OK_START}{self.ok.encode_unchecked(result.ok)}{_OK_END}"
            return _envelope(error=self._error_text(result.err))
        except SerializationError:
            raise
        except Exception as error:  # user code: serializers
            raise SerializationError(f"{type(error).__name__}: {error}") from error

    def encode_always(self, result: AnyResult) -> tuple[str, AnyResult]:
        """Write a result, or an error if it cannot be written; return also what was written."""
        try:
            return self.encode(result), result
        except SerializationError as error:
            failure = TaskResult[object, TaskError](
                err=TaskError(
                    error_code=OperationalErrorCode.WORKER_SERIALIZATION_ERROR,
                    message=f"the result cannot be serialized: {_located(result, error)}",
                )
            )
            return serialize_error_payload(failure), failure

    def decode(self, text: str) -> AnyResult:
        """Read a result; raise SerializationError if the text is not one."""
        if text.startswith(_OK_START) and text.endswith(_OK_END):
            ok_text = text[len(_OK_START) : -len(_OK_END)]
            if '"__' not in ok_text:
                return self._decode_ok(ok_text)
        return self.from_shape(loads(text))

    def from_shape(self, shape: Json) -> AnyResult:
        """Read a result from parsed JSON: tagged, or an object with only ok and err."""
        if not isinstance(shape, dict) or not ("ok" in shape or "err" in shape):
            raise SerializationError("not a task result")
        if RESULT_TAG not in shape and not shape.keys() <= {"ok", "err"}:
            raise SerializationError("not a task result")
        if shape.get("err") is not None:
            return TaskResult(err=self._read_error(shape["err"]))
        return self._read_ok(shape.get("ok"))

    def _decode_ok(self, text: str) -> AnyResult:
        try:
            return TaskResult(ok=self.ok.decode(text))
        except Exception as error:  # noqa: BLE001  # user code: validators
            return _hydration_error(error)

    def _read_ok(self, shape: Json) -> AnyResult:
        try:
            return TaskResult(ok=self.ok.from_shape(shape))
        except Exception as error:  # noqa: BLE001  # user code: validators and constructors
            return _hydration_error(error)

    def _error_text(self, error: object) -> str:
        if isinstance(error, TaskError):
            return dumps(error_shape(error, TagCount()))
        return codec_for(self.error_type).encode_unchecked(error)

    def _read_error(self, shape: Json) -> object:
        try:
            if isinstance(shape, dict) and ERROR_TAG in shape:
                declared = self.error_type
                # The engine's own errors are plain TaskErrors, whatever type the task declares.
                is_built_in = isinstance(shape.get("error_code"), dict)
                if not is_built_in and _is_error_class(declared):
                    return read_error(shape, declared)
                return read_error(shape)
            if isinstance(shape, dict) and "error_code" in shape:
                return read_error(shape)
            return codec_for(self.error_type).from_shape(shape)
        except Exception as error:  # user code: constructors
            raise SerializationError(f"unreadable error: {error}") from error


UNTYPED = ResultCodec(Any, Any)


def read_result(text: str, codec: ResultCodec = UNTYPED) -> AnyResult:
    """Read a stored result; return an error result if it cannot be read."""
    try:
        return codec.decode(text)
    except SerializationError as error:
        return TaskResult(
            err=TaskError(
                error_code=OperationalErrorCode.RESULT_DESERIALIZATION_ERROR,
                message=f"the stored result cannot be read: {error}",
                exception=error,
            )
        )


def serialize_error_payload(result: AnyResult) -> str:
    """Write an error result; return a constant text if even that fails."""
    try:
        return UNTYPED.encode(result)
    except SerializationError:
        return _LAST_RESORT


def _located(result: AnyResult, error: SerializationError) -> str:
    """What cannot be written of a result, by its path: result.items[3].price."""
    path = unwritable_path(result.ok) if result.is_ok() else ""
    return f"result{path}: {error}" if path else str(error)


def _is_error_class(declared: object) -> TypeIs[type[TaskError]]:
    return isinstance(declared, type) and issubclass(declared, TaskError)


def _envelope(error: str) -> str:
    return f'{_OK_START}null,"err":{error}}}'


def _hydration_error(error: Exception) -> AnyResult:
    return TaskResult(
        err=TaskError(
            error_code=ContractCode.PYDANTIC_HYDRATION_ERROR,
            message=f"the stored value does not fit its type: {error}",
            exception=error,
        )
    )
