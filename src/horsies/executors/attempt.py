"""Run one call: decode, call the function, judge, encode. All three executors share this code."""

import os
import traceback
from asyncio import CancelledError
from collections.abc import Callable
from enum import Enum
from functools import partial
from typing import Any

from horsies.clock import monotonic
from horsies.codec.results import serialize_error_payload
from horsies.codec.text import storable
from horsies.executors.base import Call, Crashed, Delivered, Interrupted
from horsies.executors.current import CurrentTask, Running, enter, leave
from horsies.executors.host import Host
from horsies.executors.soft_limit import with_soft_limit
from horsies.result import Err, OperationalErrorCode, TaskError, TaskResult
from horsies.tasks.definition import TaskDefinition


def run_alone(definition: TaskDefinition | None, call: Call, host: Host) -> Delivered:
    """Run a call that no executor follows."""
    return run(definition, Running(call), host)


async def run_alone_async(definition: TaskDefinition | None, call: Call, host: Host) -> Delivered:
    """Run a call of a coroutine function that no executor follows."""
    return await run_async(definition, Running(call), host)


def run(definition: TaskDefinition | None, running: Running, host: Host) -> Delivered:
    """Run a plain function in this thread; Interrupted and KeyboardInterrupt propagate.

    A copy of this process that the function has forked ends here.
    """
    is_ok = False
    started_at = running.begun_at = monotonic()
    token = enter(running, host.worker_id)
    try:
        delivered = _run(definition, running, host, started_at)
        is_ok = delivered.is_ok
        return delivered
    finally:
        leave(token)
        if host.is_copy:
            os._exit(0 if is_ok else 1)


def _run(
    definition: TaskDefinition | None, running: Running, host: Host, started_at: float
) -> Delivered:
    call = running.call
    if definition is None:
        return _unresolved(call, started_at)
    try:
        decoded = definition.decode_arguments(call.args, call.kwargs)
        if isinstance(decoded, Err):
            return _delivered(definition, TaskResult(err=decoded.err_value), started_at)
        args, kwargs = decoded.ok_value
        if host.begun is not None:
            host.begun.begin(call.slot)
        span = host.begin_span(call, started_at)
        try:
            if call.soft_timeout_ms is not None:
                running.start_soft_limit()
            value = _called(definition, host, running, args, kwargs)
            if span is not None:
                span.returned(value)
        except BaseException as error:
            if span is not None:
                span.raised(error)
            raise
        finally:
            host.left(span)
        result = definition.judge(value)
    except (Interrupted, KeyboardInterrupt):
        raise
    except BaseException as error:  # noqa: BLE001 - user code: SystemExit is a task error too
        return _raised(definition, error, started_at)
    return _delivered(definition, result, started_at)


async def run_async(definition: TaskDefinition | None, running: Running, host: Host) -> Delivered:
    """Run a coroutine function.

    CancelledError propagates, because only the caller knows who cancelled. KeyboardInterrupt
    propagates as well, because it is not an error of the task. A copy of this process that the
    coroutine has forked ends here, or at its next await: see `end_forked_copies_of`.
    """
    is_ok = False
    started_at = running.begun_at = monotonic()
    token = enter(running, host.worker_id)
    try:
        delivered = await _run_async(definition, running, host, started_at)
        is_ok = delivered.is_ok
        return delivered
    finally:
        leave(token)
        if host.is_copy:
            os._exit(0 if is_ok else 1)


async def _run_async(
    definition: TaskDefinition | None, running: Running, host: Host, started_at: float
) -> Delivered:
    call = running.call
    if definition is None:
        return _unresolved(call, started_at)
    try:
        decoded = definition.decode_arguments(call.args, call.kwargs)
        if isinstance(decoded, Err):
            return _delivered(definition, TaskResult(err=decoded.err_value), started_at)
        args, kwargs = decoded.ok_value
        if host.begun is not None:
            host.begun.begin(call.slot)
        span = host.begin_span(call, started_at)
        try:
            coroutine = _called(definition, host, running, args, kwargs)
            if call.soft_timeout_ms is not None:
                coroutine = with_soft_limit(coroutine, call.soft_timeout_ms / 1000)
            value = await coroutine
            if span is not None:
                span.returned(value)
        except BaseException as error:
            if span is not None:
                span.raised(error)
            raise
        finally:
            host.left(span)
        result = definition.judge(value)
    except (CancelledError, Interrupted, KeyboardInterrupt):
        raise
    except BaseException as error:  # noqa: BLE001 - user code: SystemExit is a task error too
        return _raised(definition, error, started_at)
    return _delivered(definition, result, started_at)


def _called(
    definition: TaskDefinition,
    host: Host,
    running: Running,
    args: tuple[object, ...],
    kwargs: dict[str, object],
) -> Any:
    """Call the function, with the app's middleware around it."""
    layers = host.middleware.async_layers if definition.is_coroutine else host.middleware.layers
    if not layers:
        return definition.function(*args, **kwargs)
    call: Callable[[], Any] = partial(definition.function, *args, **kwargs)
    task = CurrentTask(running)
    for layer in reversed(layers):
        call = partial(layer, task, call)
    return call()


def from_exception(
    definition: TaskDefinition | None, call: Call, error: BaseException
) -> Delivered:
    """Return the outcome of a call that `error` ended outside `run` and `run_async`."""
    started_at = monotonic()
    if definition is None:
        return _unresolved(call, started_at)
    return _raised(definition, error, started_at)


def crashed_by(error: BaseException) -> Crashed:
    """Report what is not an error of a task as a crash, so that it does not end the worker."""
    reason = f"the task raised {type(error).__name__}"
    return Crashed(f"Worker process crashed: {reason}", reason, None, None)


def _raised(definition: TaskDefinition, error: BaseException, started_at: float) -> Delivered:
    delivered = _delivered(definition, _judge_exception(definition, error), started_at)
    return delivered._replace(retry_wish=definition.retry_wish(error))


def _judge_exception(
    definition: TaskDefinition, error: BaseException
) -> TaskResult[object, object]:
    try:
        return definition.judge_exception(error)
    except Interrupted:
        raise
    except BaseException as failure:  # noqa: BLE001 - user code: the exception's own methods
        name, cause = type(error).__name__, type(failure).__name__
        return TaskResult(
            err=TaskError(
                error_code=OperationalErrorCode.UNHANDLED_EXCEPTION,
                message=f"task {definition.name!r} raised {name}; describing it raised {cause}",
                data={"exception_type": name},
            )
        )


def _unresolved(call: Call, started_at: float) -> Delivered:
    error = TaskError(
        error_code=OperationalErrorCode.WORKER_RESOLUTION_ERROR,
        message=f"task {call.task_name!r} is not registered in this worker",
        data={"task_name": call.task_name},
    )
    text = serialize_error_payload(TaskResult(err=error))
    return _failed(text, error, monotonic() - started_at)


def _delivered(
    definition: TaskDefinition, result: TaskResult[object, object], started_at: float
) -> Delivered:
    try:
        text, written = definition.settle_result(result)
    except Interrupted:
        raise
    except BaseException as error:  # noqa: BLE001 - user serializers: every call needs an answer
        written = _unwritable(definition, error)
        text = serialize_error_payload(written)
    duration_s = monotonic() - started_at
    if written.is_ok():
        return Delivered(text, True, None, None, duration_s)
    return _failed(text, written.err, duration_s)


def _unwritable(definition: TaskDefinition, error: BaseException) -> TaskResult[object, TaskError]:
    return TaskResult(
        err=TaskError(
            error_code=OperationalErrorCode.WORKER_SERIALIZATION_ERROR,
            message=f"result of task {definition.name!r} cannot be written: {_shown(error)}",
            data={"task_name": definition.name},
        )
    )


def _shown(error: BaseException) -> str:
    return "".join(traceback.format_exception_only(error)).strip()  # also if its __str__ raises


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
