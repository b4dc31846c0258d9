"""Keyword arguments that a workflow adds to a stored call (docs/contract/tasks.md §11.5).

A result of another node travels as text inside a tagged object; context and metadata travel
under reserved keys.
"""

from collections.abc import Container
from functools import lru_cache
from typing import get_args, get_origin

from typing_extensions import TypeIs

from horsies.codec.results import UNTYPED, AnyResult, ResultCodec, read_result
from horsies.codec.shapes import INJECTED_RESULT_TAG, Json, JsonObject
from horsies.codec.unions import members, unwrapped
from horsies.result import OperationalErrorCode, TaskError, TaskResult

CONTEXT_KEY = "__horsies_workflow_ctx__"
META_KEY = "__horsies_workflow_meta__"
INJECTED_PARAMETERS = {CONTEXT_KEY: "workflow_ctx", META_KEY: "workflow_meta"}


def injected_result(text: str) -> JsonObject:
    """Return the stored form of a parameter that receives another node's result."""
    return {INJECTED_RESULT_TAG: True, "data": text}


def place_injected(stored: JsonObject, parameters: Container[str]) -> JsonObject:
    """Rename reserved keys to the parameters they are for; drop those nobody declares."""
    if INJECTED_PARAMETERS.keys().isdisjoint(stored):
        return stored
    placed = {key: value for key, value in stored.items() if key not in INJECTED_PARAMETERS}
    for key, name in INJECTED_PARAMETERS.items():
        if key in stored and name in parameters:
            placed[name] = stored[key]
    return placed


def is_injected_result(shape: Json) -> TypeIs[JsonObject]:
    """Whether a stored argument is the result of another node."""
    return isinstance(shape, dict) and shape.get(INJECTED_RESULT_TAG) is True


def read_injected_result(shape: JsonObject, annotation: object) -> AnyResult:
    """Read a node's result by the parameter's annotation; unreadable text is an error result."""
    text = shape.get("data")
    if not isinstance(text, str):
        return TaskResult(
            err=TaskError(
                error_code=OperationalErrorCode.RESULT_DESERIALIZATION_ERROR,
                message="the stored result is not a text",
            )
        )
    try:
        codec = _result_codec(annotation)
    except TypeError:  # the annotation is unhashable
        codec = _find_codec(annotation)
    return read_result(text, codec)


@lru_cache(maxsize=1024)
def _result_codec(annotation: object) -> ResultCodec:
    return _find_codec(annotation)


def _find_codec(annotation: object) -> ResultCodec:
    for member in members(annotation):
        declared = unwrapped(member)
        if get_origin(declared) is TaskResult:
            arguments = get_args(declared)
            return ResultCodec(arguments[0], arguments[1] if len(arguments) > 1 else TaskError)
    return UNTYPED
