"""Re-exports: the codec as functions."""

from horsies.codec.serde import (
    Json,
    SerdeResult,
    SerializationError,
    args_to_json,
    dumps_json,
    json_to_args,
    json_to_kwargs,
    kwargs_to_json,
    loads_json,
    rehydrate_value,
    serialize_error_payload,
    task_result_from_json,
    to_jsonable,
)

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
