"""TaskDefinition: a named function, checked once, and everything that follows from its signature.

It decides how arguments and results are written and how a returned value or an exception is
judged. It does not know the database.
"""

import inspect
import re
import reprlib
import traceback
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any, Literal

from pydantic import ValidationError

from horsies.codec.annotated import codec_for, describe
from horsies.codec.results import AnyResult, ResultCodec, read_result, serialize_error_payload
from horsies.codec.signature import ArgumentsError, EncodedArguments, SignatureCodec, byte_count
from horsies.config import AppConfig
from horsies.errors import SourceLocation, TaskDefinitionError
from horsies.result import (
    BUILTIN_CODE_REGISTRY,
    BuiltInTaskCode,
    ContractCode,
    Err,
    OperationalErrorCode,
    Result,
    TaskError,
    TaskResult,
)
from horsies.result.raising import RETRY_CODE, Retry, TaskFailed
from horsies.result.workflow import WorkflowContextMissingIdError
from horsies.tasks import checks
from horsies.tasks.annotations import Annotations
from horsies.tasks.discovery import SYNTHETIC_PREFIX
from horsies.tasks.options import StoredOptions, write_task_options
from horsies.tasks.queues import resolve_queue
from horsies.tasks.retry import BY_POLICY, RetryPolicy, retried_after_crash

_OUR_MODULE_NAME = re.compile(rf"^{SYNTHETIC_PREFIX}(\w+)_[0-9a-f]{{12}}\.")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class TaskDefinition:
    """What `@app.task` makes of a function; `define_task` builds it."""

    name: str
    function: Callable[..., Any]
    config: AppConfig
    location: SourceLocation | None
    is_coroutine: bool
    queue_name: str
    priority: int
    execution: checks.Execution
    options: StoredOptions
    task_options_json: str
    interruptible: bool
    exception_mapper: Mapping[type[BaseException], str] | None
    default_unhandled_error_code: str | None
    returns: checks.ReturnType
    # What a send takes from the task when it does not say otherwise: priority, tags, delay.
    send_defaults: Mapping[str, Any]
    unique_key_of: Callable[..., object] | None
    annotations: Annotations
    signature: SignatureCodec
    results: ResultCodec

    @property
    def ok_type(self) -> object:
        return self.returns.ok

    @property
    def err_type(self) -> object:
        return self.returns.err

    @property
    def retry_policy(self) -> RetryPolicy | None:
        return self.options.retry_policy

    @property
    def max_retries(self) -> int:
        return self.options.max_retries

    @property
    def timeout_ms(self) -> int | None:
        return self.options.timeout_ms

    @property
    def soft_timeout_ms(self) -> int | None:
        return self.options.soft_timeout_ms

    def problems(self) -> list[TaskDefinitionError]:
        """What of the annotations cannot be used, now that all modules have been imported."""
        self._settle()
        return self.annotations.problems(f"task {self.name!r}", self.location, self.ok_type)

    def _settle(self) -> None:
        if self.annotations.resolve_again():
            self.signature.forget()

    def encode_arguments(
        self, args: tuple[object, ...], kwargs: dict[str, object]
    ) -> Result[EncodedArguments, ArgumentsError]:
        """Check arguments against the signature and write them."""
        return self.signature.encode(args, kwargs)

    def decode_arguments(
        self, args_json: str | None, kwargs_json: str | None
    ) -> Result[tuple[tuple[object, ...], dict[str, object]], TaskError]:
        """Read stored arguments, ready to be passed to the function."""
        if not self.annotations.is_settled:
            self._settle()
        decoded = self.signature.decode(args_json, kwargs_json)
        if isinstance(decoded, Err):
            return Err(
                TaskError(
                    error_code=OperationalErrorCode.WORKER_SERIALIZATION_ERROR,
                    message=f"arguments of task {self.name!r} cannot be used: {decoded.err_value}",
                    data={"task_name": self.name},
                )
            )
        return decoded

    def judge(self, value: object) -> AnyResult:
        """Turn the returned value into a result; a value of the wrong type becomes an error."""
        if isinstance(value, TaskResult):
            return self._judge_result(value)
        if self.returns.is_plain:
            return self._judge_result(TaskResult(ok=value))
        kind = "None" if value is None else type(value).__name__
        return _failure(
            OperationalErrorCode.TASK_EXCEPTION,
            f"task {self.name!r} returned {kind} instead of a TaskResult",
        )

    def judge_exception(self, error: BaseException) -> AnyResult:
        """Turn an exception of the function into an error result, by the exception mappers."""
        if issubclass(type(error), TaskFailed) and isinstance(error, TaskFailed):
            return self._judge_result(
                TaskResult(err=error.error.model_copy(update={"exception": error}))
            )
        if issubclass(type(error), Retry):
            told = TaskError(error_code=RETRY_CODE, message=str(error), exception=error)
            return TaskResult(err=told)
        text = "".join(traceback.format_exception_only(error)).strip()
        # A class of a file that no import finds has a name of ours; the user knows it by the file.
        text = _OUR_MODULE_NAME.sub(r"\1.", text)
        return TaskResult(
            err=TaskError(
                error_code=self._code_for(type(error)),
                message=f"task {self.name!r} raised {text}",
                data={"exception_type": type(error).__name__},
                exception=error,
            )
        )

    def retry_wish(self, error: BaseException) -> float | None:
        """What an exception asks for: seconds until a retry, the policy's wait, or nothing."""
        cls = type(error)  # isinstance would ask the exception itself, which may be hostile
        if issubclass(cls, Retry):
            after = vars(error).get("after")
            return after if isinstance(after, (int, float)) else BY_POLICY
        policy = self.retry_policy
        if policy is not None and issubclass(cls, tuple(policy.retry_on)):
            return BY_POLICY
        return None

    def call(self, *args: object, **kwargs: object) -> AnyResult:
        """Run the function now, in this thread."""
        try:
            value = self.function(*args, **kwargs)
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # noqa: BLE001  # user code: SystemExit is a task error too
            return self.judge_exception(error)
        return self.judge(value)

    async def call_async(self, *args: object, **kwargs: object) -> AnyResult:
        """Run the coroutine function now, in this event loop."""
        try:
            value = await self.function(*args, **kwargs)
        except (KeyboardInterrupt, GeneratorExit):
            raise
        except BaseException as error:  # user code: SystemExit is a task error too
            if _is_cancellation(error):
                raise
            return self.judge_exception(error)
        return self.judge(value)

    def settle_result(self, result: AnyResult) -> tuple[str, AnyResult]:
        """Write a result; return the text and what it contains: the result or an error instead."""
        text, written = self.results.encode_always(result)
        limit = self.config.payload_max_bytes
        if limit is None or (size := byte_count(text)) <= limit:
            return text, written
        refused = _failure(
            OperationalErrorCode.WORKER_SERIALIZATION_ERROR,
            f"result of task {self.name!r} is too large: {size} bytes, payload_max_bytes={limit}",
        )
        return serialize_error_payload(refused), refused

    def decode_result(self, text: str) -> AnyResult:
        """Read a stored result; return an error result if it cannot be read."""
        return read_result(text, self.results)

    def options_json(self, **changes: Any) -> str:
        """Write the options of one send: those of the definition with `changes`."""
        return write_task_options(replace(self.options, **changes))

    def _judge_result(self, result: AnyResult) -> AnyResult:
        variant: Literal["ok", "err"] = "ok" if result.is_ok() else "err"
        declared = self.ok_type if variant == "ok" else self.err_type
        value = result.ok if variant == "ok" else result.err
        codec = codec_for(declared)
        if type(value) is codec.exact:
            return result
        try:
            codec.adapter.validate_python(value)
        except ValidationError as error:
            return _failure(
                ContractCode.RETURN_TYPE_MISMATCH,
                f"task {self.name!r} returned {variant} that is not {_type_name(declared)}: "
                f"{describe(error)}",
                {
                    "variant": variant,
                    "expected_type": _type_name(declared),
                    "actual_value": _shown(value),
                    "validation_errors": [
                        {"loc": list(item["loc"]), "msg": item["msg"], "type": item["type"]}
                        for item in error.errors(include_url=False, include_context=False)
                    ],
                },
            )
        except Exception as error:  # noqa: BLE001  # user code: validators
            return self.judge_exception(error)
        return result

    def _code_for(self, cls: type[BaseException]) -> BuiltInTaskCode | str:
        if issubclass(cls, WorkflowContextMissingIdError):
            return ContractCode.WORKFLOW_CTX_MISSING_ID
        code = (
            (self.exception_mapper or {}).get(cls)
            or self.config.exception_mapper.get(cls)
            or self.default_unhandled_error_code
            or self.config.default_unhandled_error_code
        )
        return BUILTIN_CODE_REGISTRY.get(code, code)


def define_task(
    function: Callable[..., Any], name: str, *, config: AppConfig, **options: Any
) -> TaskDefinition:
    """Check a function and its options for `@app.task`; raise an error for the first problem."""
    location = SourceLocation.from_function(function)
    checks.refuse_decorated(function)
    checks.refuse_unusable(function, location)
    annotations = Annotations(function)
    returns = checks.read_return_type(
        function, annotations.resolved, location, allow_plain_returns=config.allow_plain_returns
    )
    checks.check_name(name, location)
    checks.check_options(options, location)
    queue = resolve_queue(config, options.get("queue_name"), location)
    checks.check_error_codes(options, name, location)
    is_coroutine = inspect.iscoroutinefunction(function)
    execution = checks.read_execution(options.get("execution"), location, is_coroutine=is_coroutine)
    checks.check_time_limits(options, location)
    checks.check_unique_key(options.get("unique_key"), location)
    is_idempotent = bool(options.get("idempotent"))
    policy = options.get("retry_policy")
    stored = StoredOptions(
        retry_policy=retried_after_crash(policy) if is_idempotent else policy,
        timeout_ms=options.get("timeout_ms"),
        soft_timeout_ms=options.get("soft_timeout_ms"),
    )
    mapper = options.get("exception_mapper")
    return TaskDefinition(
        name=name,
        function=function,
        config=config,
        location=location,
        is_coroutine=is_coroutine,
        queue_name=queue.name,
        priority=queue.priority,
        execution=execution,
        options=stored,
        task_options_json=write_task_options(stored),
        interruptible=is_idempotent or bool(options.get("interruptible")),
        exception_mapper=None if mapper is None else MappingProxyType(dict(mapper)),
        default_unhandled_error_code=options.get("default_unhandled_error_code"),
        returns=returns,
        send_defaults={
            name: options[name]
            for name in ("priority", "tags", "delay")
            if options.get(name) is not None
        },
        unique_key_of=options.get("unique_key"),
        annotations=annotations,
        signature=SignatureCodec(function, annotations.resolved),
        results=ResultCodec(returns.ok, returns.err),
    )


def _failure(code: BuiltInTaskCode, message: str, data: object = None) -> AnyResult:
    return TaskResult(err=TaskError(error_code=code, message=message, data=data))


def _is_cancellation(error: BaseException) -> bool:
    # By name: this package must not import asyncio. Other CancelledErrors are Exceptions.
    return type(error).__name__ == "CancelledError" and not isinstance(error, Exception)


def _shown(value: object) -> object:
    # Simple values stay as they are; others are shortened to a form that can always be stored.
    return value if isinstance(value, (bool, int, str, type(None))) else reprlib.repr(value)


def _type_name(annotation: object) -> str:
    return annotation.__name__ if isinstance(annotation, type) else str(annotation)
