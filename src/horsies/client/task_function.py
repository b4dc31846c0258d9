"""What `@app.task` returns: the function, and all the ways to send it."""

import functools
from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import replace
from typing import Any, Generic, ParamSpec, TypeVar, Unpack

from horsies.client.handle import TaskHandle
from horsies.client.options import SendChanges, SendOptions
from horsies.client.plan import is_unchanged, row_of
from horsies.client.send import Arguments, PlanResult, Sender
from horsies.client.types import (
    TaskSendError,
    TaskSendErrorCode,
    TaskSendPayload,
    TaskSendResult,
)
from horsies.result import Err, TaskError, TaskResult
from horsies.tasks.definition import TaskDefinition

P = ParamSpec("P")
T = TypeVar("T")


class TaskFunction(ABC, Generic[P, T]):
    """A registered task. Call it to run it here and now; send it to run it in a worker."""

    task_name: str
    task_ok_type: Any

    @abstractmethod
    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> TaskResult[T, TaskError]: ...
    @abstractmethod
    def send(self, *args: P.args, **kwargs: P.kwargs) -> TaskSendResult[TaskHandle[T]]: ...
    @abstractmethod
    async def send_async(
        self, *args: P.args, **kwargs: P.kwargs
    ) -> TaskSendResult[TaskHandle[T]]: ...
    @abstractmethod
    def schedule(
        self, delay: int, *args: P.args, **kwargs: P.kwargs
    ) -> TaskSendResult[TaskHandle[T]]: ...
    @abstractmethod
    def with_options(self, **changes: Unpack[SendChanges]) -> "TaskSendOptions[P, T]": ...
    @abstractmethod
    def retry_send(self, error: TaskSendError) -> TaskSendResult[TaskHandle[T]]: ...
    @abstractmethod
    async def retry_send_async(self, error: TaskSendError) -> TaskSendResult[TaskHandle[T]]: ...
    @abstractmethod
    def retry_schedule(self, error: TaskSendError) -> TaskSendResult[TaskHandle[T]]: ...


class TaskSendOptions(Generic[P, T]):
    """A task with the options of one send, as `with_options` gives it."""

    def __init__(self, definition: TaskDefinition, sender: Sender, options: SendOptions) -> None:
        self._definition = definition
        self._sender = sender
        self._options = options
        self._plan = sender.plan(definition, options)

    def send(self, *args: P.args, **kwargs: P.kwargs) -> TaskSendResult[TaskHandle[T]]:
        """Store the task; a worker runs it as soon as one is free."""
        return self._sender.send(self._plan, args, kwargs)

    async def send_async(self, *args: P.args, **kwargs: P.kwargs) -> TaskSendResult[TaskHandle[T]]:
        """The awaitable twin of `send`; concurrent calls share statements."""
        return await self._sender.send_async(self._plan, args, kwargs)

    def schedule(
        self, delay: int, *args: P.args, **kwargs: P.kwargs
    ) -> TaskSendResult[TaskHandle[T]]:
        """Store the task to run `delay` seconds from now, by the database's clock."""
        return self._sender.send(self._delayed(delay), args, kwargs)

    async def schedule_async(
        self, delay: int, *args: P.args, **kwargs: P.kwargs
    ) -> TaskSendResult[TaskHandle[T]]:
        return await self._sender.send_async(self._delayed(delay), args, kwargs)

    def _delayed(self, delay: int) -> PlanResult:
        return self._sender.plan(self._definition, replace(self._options, delay=delay))

    def send_many(self, calls: Iterable[Arguments]) -> TaskSendResult[list[TaskHandle[T]]]:
        """Store many tasks at once, all or none; each call is a tuple or a mapping of arguments.

        >>> app.tasks["thumbnail"].send_many([(1,), (2,), {"image_id": 3}])  # doctest: +SKIP
        """
        return self._sender.send_many(self._plan, calls)

    async def send_many_async(
        self, calls: Iterable[Arguments]
    ) -> TaskSendResult[list[TaskHandle[T]]]:
        return await self._sender.send_many_async(self._plan, calls)


class RegisteredTask(TaskFunction[P, T]):
    """The task function behind `@app.task`."""

    def __init__(self, definition: TaskDefinition, sender: Sender) -> None:
        self.definition = definition
        self.task_name = definition.name
        self.task_queue_name = definition.queue_name
        self.task_ok_type = definition.ok_type
        self.task_options_json = definition.task_options_json
        self.exception_mapper = definition.exception_mapper
        self.default_unhandled_error_code = definition.default_unhandled_error_code
        self._sender = sender
        self._plain: TaskSendOptions[P, T] = TaskSendOptions(definition, sender, SendOptions())
        functools.update_wrapper(self, definition.function)
        vars(self).pop("__wrapped__")  # a wrapper is refused as a task; this is not one

    def __repr__(self) -> str:
        return f"<task {self.task_name!r}>"

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> TaskResult[T, TaskError]:
        """Run here and now, through the same judgement as in a worker."""
        return self.definition.call(*args, **kwargs)

    def send(self, *args: P.args, **kwargs: P.kwargs) -> TaskSendResult[TaskHandle[T]]:
        return self._plain.send(*args, **kwargs)

    async def send_async(self, *args: P.args, **kwargs: P.kwargs) -> TaskSendResult[TaskHandle[T]]:
        return await self._plain.send_async(*args, **kwargs)

    def schedule(
        self, delay: int, *args: P.args, **kwargs: P.kwargs
    ) -> TaskSendResult[TaskHandle[T]]:
        return self._plain.schedule(delay, *args, **kwargs)

    async def schedule_async(
        self, delay: int, *args: P.args, **kwargs: P.kwargs
    ) -> TaskSendResult[TaskHandle[T]]:
        return await self._plain.schedule_async(delay, *args, **kwargs)

    def send_many(self, calls: Iterable[Arguments]) -> TaskSendResult[list[TaskHandle[T]]]:
        return self._plain.send_many(calls)

    async def send_many_async(
        self, calls: Iterable[Arguments]
    ) -> TaskSendResult[list[TaskHandle[T]]]:
        return await self._plain.send_many_async(calls)

    def with_options(self, **changes: Unpack[SendChanges]) -> TaskSendOptions[P, T]:
        """Options for the sends that follow: deadline, unique key, place, time, transaction.

        `good_until`, `unique_key`, `unique_scope`, `priority`, `queue_name`, `run_at`, `delay`,
        `tags`, `timeout_ms`, `soft_timeout_ms`, `connection`.
        """
        return TaskSendOptions(self.definition, self._sender, SendOptions(**changes))

    def retry_send(self, error: TaskSendError) -> TaskSendResult[TaskHandle[T]]:
        """Send again what a failed `send` would have stored, under the same id."""
        replay = self._replay(error, is_delayed=False)
        if isinstance(replay, Err):
            return replay
        return self._sender.enqueue(row_of(*replay))

    async def retry_send_async(self, error: TaskSendError) -> TaskSendResult[TaskHandle[T]]:
        replay = self._replay(error, is_delayed=False)
        if isinstance(replay, Err):
            return replay
        return await self._sender.enqueue_async(row_of(*replay))

    def retry_schedule(self, error: TaskSendError) -> TaskSendResult[TaskHandle[T]]:
        """Send again what a failed `schedule` would have stored."""
        replay = self._replay(error, is_delayed=True)
        if isinstance(replay, Err):
            return replay
        return self._sender.enqueue(row_of(*replay))

    async def retry_schedule_async(self, error: TaskSendError) -> TaskSendResult[TaskHandle[T]]:
        replay = self._replay(error, is_delayed=True)
        if isinstance(replay, Err):
            return replay
        return await self._sender.enqueue_async(row_of(*replay))

    def _replay(
        self, error: TaskSendError, *, is_delayed: bool
    ) -> tuple[str, TaskSendPayload] | Err[TaskSendError]:
        code, payload, task_id = TaskSendErrorCode.VALIDATION_FAILED, error.payload, error.task_id
        message = None
        if self._sender.is_suppressed:
            code, message = TaskSendErrorCode.SEND_SUPPRESSED, "sends are suppressed here"
        elif error.code is not TaskSendErrorCode.ENQUEUE_FAILED:
            message = f"only ENQUEUE_FAILED can be sent again, not {error.code.value}"
        elif payload is None or task_id is None:
            message = "the error carries no payload to send again"
        elif payload.task_name != self.task_name:
            message = f"the payload belongs to task {payload.task_name!r}"
        elif (payload.enqueue_delay_seconds is not None) is not is_delayed:
            right = "retry_schedule" if payload.enqueue_delay_seconds is not None else "retry_send"
            message = f"use {right} for this payload"
        elif not is_unchanged(payload):
            code, message = (
                TaskSendErrorCode.PAYLOAD_MISMATCH,
                "the payload was changed after the send",
            )
        if message is not None or payload is None or task_id is None:
            keep = code is TaskSendErrorCode.PAYLOAD_MISMATCH
            return Err(
                TaskSendError(
                    code,
                    message or "",
                    retryable=False,
                    task_id=task_id if keep else None,
                    payload=payload if keep else None,
                )
            )
        return task_id, payload


class AsyncRegisteredTask(RegisteredTask[P, T]):
    """A coroutine task: a direct call is awaited."""

    async def __call__(  # type: ignore[override]  # pyright: ignore[reportIncompatibleMethodOverride] # the function's own colour
        self, *args: P.args, **kwargs: P.kwargs
    ) -> TaskResult[T, TaskError]:
        return await self.definition.call_async(*args, **kwargs)
