"""Run one call: decode, call the function, judge, encode. Shared by all three executors."""

from asyncio import CancelledError
from enum import Enum
from typing import Any

from pydantic_core import to_json

from horsies.clock import monotonic
from horsies.executors.base import Call, Definition, Delivered, Interrupted
from horsies.executors.output import storable
from horsies.executors.soft_limit import with_soft_limit
from horsies.result import Err, OperationalErrorCode, TaskResult


def run(definition: Definition | None, call: Call) -> Delivered:
    """Run a plain function here and now; only Interrupted leaves this function."""
    started_at = monotonic()
    if definition is None:
        return _unresolved(call, started_at)
    try:
        decoded = definition.decode_arguments(call.args, call.kwargs)
        if isinstance(decoded, Err):
            return _delivered(definition, TaskResult(err=decoded.err_value), started_at)
        args, kwargs = decoded.ok_value
        result = definition.judge(definition.function(*args, **kwargs))
    except Interrupted:
        raise
    except BaseException as error:  # noqa: BLE001 - SystemExit in user code is one of its errors
        result = definition.judge_exception(error)
    return _delivered(definition, result, started_at)


async def run_async(definition: Definition | None, call: Call) -> Delivered:
    """Run a coroutine function; CancelledError leaves it: only the caller knows whose it is."""
    started_at = monotonic()
    if definition is None:
        return _unresolved(call, started_at)
    try:
        decoded = definition.decode_arguments(call.args, call.kwargs)
        if isinstance(decoded, Err):
            return _delivered(definition, TaskResult(err=decoded.err_value), started_at)
        args, kwargs = decoded.ok_value
        coroutine = definition.function(*args, **kwargs)
        if call.soft_timeout_ms is not None:
            coroutine = with_soft_limit(coroutine, call.soft_timeout_ms / 1000)
        result = definition.judge(await coroutine)
    except (CancelledError, Interrupted):
        raise
    except BaseException as error:  # noqa: BLE001 - SystemExit in user code is one of its errors
        result = definition.judge_exception(error)
    return _delivered(definition, result, started_at)


def raised(definition: Definition | None, call: Call, error: BaseException) -> Delivered:
    """The outcome of a call that ended by `error` outside the two functions above."""
    started_at = monotonic()
    if definition is None:
        return _unresolved(call, started_at)
    return _delivered(definition, definition.judge_exception(error), started_at)


def _delivered(
    definition: Definition, result: TaskResult[Any, Any], started_at: float
) -> Delivered:
    text = definition.encode_result(result)
    duration_s = monotonic() - started_at
    if result.is_ok():
        return Delivered(text, True, None, None, duration_s)
    return _failed(text, result.unwrap_err(), duration_s)


def _unresolved(call: Call, started_at: float) -> Delivered:
    code = OperationalErrorCode.WORKER_RESOLUTION_ERROR.value
    message = f"task {call.task_name!r} is not registered in this worker"
    error = {
        "__task_error__": True,
        "error_code": {"__builtin_task_code__": code},
        "message": message,
        "data": {"task_name": call.task_name},
    }
    text = to_json({"__task_result__": True, "ok": None, "err": error}).decode()
    return Delivered(text, False, code, message, monotonic() - started_at)


def _failed(text: str, error: object, duration_s: float) -> Delivered:
    code: object = getattr(error, "error_code", None)
    message: object = getattr(error, "message", None)
    return Delivered(
        text,
        False,
        None if code is None else str(code.value if isinstance(code, Enum) else code),
        None if message is None else storable(str(message)),
        duration_s,
    )
