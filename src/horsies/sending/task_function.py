"""What `@app.task` returns: the function, and all the ways to send it."""

import asyncio
import functools
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any, Generic, ParamSpec, TypeVar, Unpack, overload

from horsies.result import Err, Result, TaskError, TaskResult
from horsies.results.handle import TaskHandle
from horsies.sending.bulk import Arguments, BoundCall, resend_many, send_many, send_many_async
from horsies.sending.errors import SendFailed, TaskSendError, TaskSendResult
from horsies.sending.options import SendChanges, SendOptions, default_options
from horsies.sending.prepared import (
    PreparedSend,
    SendingApp,
    enqueue,
    enqueue_async,
    suppression,
)
from horsies.sending.resend import row_to_resend
from horsies.sending.rows import NewTask
from horsies.sending.signatures import show_signature
from horsies.tasks.definition import TaskDefinition
from horsies.workflows.factory import EachNodeFactory, NodeFactory, NodeOptions, node_factory

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
    @overload
    @abstractmethod
    def node(self, **options: Unpack[NodeOptions]) -> NodeFactory[P, T]: ...
    @overload
    @abstractmethod
    def node(
        self,
        *,
        each: TaskResult[Sequence[Any], TaskError],
        each_as: str | None = None,
        max_in_flight: int = 100,
        **options: Unpack[NodeOptions],
    ) -> EachNodeFactory[T]: ...
    @abstractmethod
    def node(self, **options: Any) -> NodeFactory[P, T] | EachNodeFactory[T]: ...


class TaskSendOptions(Generic[P, T]):
    """A task with the options of one send, as `with_options` gives it."""

    def __init__(self, app: SendingApp, definition: TaskDefinition, options: SendOptions) -> None:
        self._app = app
        self._definition = definition
        self._options = options
        self._prepared = PreparedSend(app, definition, options)

    def send(self, *args: P.args, **kwargs: P.kwargs) -> TaskSendResult[TaskHandle[T]]:
        """Store the task; a worker runs it as soon as one is free."""
        return self._prepared.send(args, kwargs)

    async def send_async(self, *args: P.args, **kwargs: P.kwargs) -> TaskSendResult[TaskHandle[T]]:
        """The awaitable twin of `send`; concurrent calls share statements."""
        return await self._prepared.send_async(args, kwargs)

    def send_or_raise(self, *args: P.args, **kwargs: P.kwargs) -> TaskHandle[T]:
        """Store the task and give its handle; raise `SendFailed` if it cannot be stored."""
        return _sent(self.send(*args, **kwargs))

    async def send_or_raise_async(self, *args: P.args, **kwargs: P.kwargs) -> TaskHandle[T]:
        """The awaitable twin of `send_or_raise`."""
        return _sent(await self.send_async(*args, **kwargs))

    def schedule(
        self, delay: int, *args: P.args, **kwargs: P.kwargs
    ) -> TaskSendResult[TaskHandle[T]]:
        """Store the task to run `delay` seconds from now, by the database's clock."""
        return self._delayed(delay).send(args, kwargs)

    async def schedule_async(
        self, delay: int, *args: P.args, **kwargs: P.kwargs
    ) -> TaskSendResult[TaskHandle[T]]:
        """The awaitable twin of `schedule`."""
        return await self._delayed(delay).send_async(args, kwargs)

    def _delayed(self, delay: int) -> PreparedSend:
        return PreparedSend(self._app, self._definition, replace(self._options, delay=delay))

    def send_many(
        self, calls: Iterable[BoundCall[P] | Arguments]
    ) -> TaskSendResult[list[TaskHandle[T]]]:
        """Store many tasks at once, all or none.

        Each call is `task.bind(...)`, which type checkers see, or a tuple or mapping of arguments.

        >>> app.tasks["thumbnail"].send_many([(1,), (2,), {"image_id": 3}])  # doctest: +SKIP
        """
        return send_many(self._prepared, calls)

    async def send_many_async(
        self, calls: Iterable[BoundCall[P] | Arguments]
    ) -> TaskSendResult[list[TaskHandle[T]]]:
        """The awaitable twin of `send_many`."""
        return await send_many_async(self._prepared, calls)


class RegisteredTask(TaskFunction[P, T]):
    """The task function behind `@app.task`."""

    def __init__(self, app: SendingApp, definition: TaskDefinition) -> None:
        self.definition = definition
        self.task_name = definition.name
        self.task_queue_name = definition.queue_name
        self.task_ok_type = definition.ok_type
        self.task_options_json = definition.task_options_json
        self.exception_mapper = definition.exception_mapper
        self.default_unhandled_error_code = definition.default_unhandled_error_code
        self._app = app
        # The sends of a task without options are those of one with the default options.
        plain: TaskSendOptions[P, T] = TaskSendOptions(app, definition, default_options(definition))
        self._plain = plain
        functools.update_wrapper(self, definition.function)
        vars(self).pop("__wrapped__")  # a wrapper is refused as a task; this is not one
        show_signature(self, plain, definition.function)

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

    def send_or_raise(self, *args: P.args, **kwargs: P.kwargs) -> TaskHandle[T]:
        """Store the task and give its handle; raise `SendFailed` if it cannot be stored."""
        return self._plain.send_or_raise(*args, **kwargs)

    async def send_or_raise_async(self, *args: P.args, **kwargs: P.kwargs) -> TaskHandle[T]:
        """The awaitable twin of `send_or_raise`."""
        return await self._plain.send_or_raise_async(*args, **kwargs)

    def bind(self, *args: P.args, **kwargs: P.kwargs) -> BoundCall[P]:
        """The arguments of one call, for `send_many`."""
        return BoundCall(args, kwargs)

    def send_many(
        self, calls: Iterable[BoundCall[P] | Arguments]
    ) -> TaskSendResult[list[TaskHandle[T]]]:
        return self._plain.send_many(calls)

    async def send_many_async(
        self, calls: Iterable[BoundCall[P] | Arguments]
    ) -> TaskSendResult[list[TaskHandle[T]]]:
        return await self._plain.send_many_async(calls)

    def with_options(self, **changes: Unpack[SendChanges]) -> TaskSendOptions[P, T]:
        """Options for the sends that follow: deadline, unique key, place, time, transaction.

        `good_until`, `unique_key`, `unique_scope`, `priority`, `queue_name`, `run_at`, `delay`,
        `tags`, `timeout_ms`, `soft_timeout_ms`, `connection`.
        """
        options: SendChanges = {**self.definition.send_defaults, **changes}  # type: ignore[typeddict-item]
        return TaskSendOptions(self._app, self.definition, SendOptions(**options))

    def retry_send(self, error: TaskSendError) -> TaskSendResult[TaskHandle[T]]:
        """Send again what a failed `send` would have stored, under the same id."""
        return self._resend(error, is_delayed=False)

    async def retry_send_async(self, error: TaskSendError) -> TaskSendResult[TaskHandle[T]]:
        """The awaitable twin of `retry_send`."""
        return await self._resend_async(error, is_delayed=False)

    def retry_schedule(self, error: TaskSendError) -> TaskSendResult[TaskHandle[T]]:
        """Send again what a failed `schedule` would have stored."""
        return self._resend(error, is_delayed=True)

    async def retry_schedule_async(self, error: TaskSendError) -> TaskSendResult[TaskHandle[T]]:
        """The awaitable twin of `retry_schedule`."""
        return await self._resend_async(error, is_delayed=True)

    def retry_send_many(self, error: TaskSendError) -> TaskSendResult[list[TaskHandle[T]]]:
        """Send again what a failed `send_many` would have stored, under the same ids.

        What was stored although its answer was lost is not stored twice.
        """
        return resend_many(self._app, self.task_name, error)

    async def retry_send_many_async(
        self, error: TaskSendError
    ) -> TaskSendResult[list[TaskHandle[T]]]:
        """The awaitable twin of `retry_send_many`."""
        return await asyncio.to_thread(self.retry_send_many, error)

    @overload
    def node(self, **options: Unpack[NodeOptions]) -> NodeFactory[P, T]: ...
    @overload
    def node(
        self,
        *,
        each: TaskResult[Sequence[Any], TaskError],
        each_as: str | None = None,
        max_in_flight: int = 100,
        **options: Unpack[NodeOptions],
    ) -> EachNodeFactory[T]: ...
    def node(
        self,
        *,
        each: object = None,
        each_as: str | None = None,
        max_in_flight: int = 100,
        **options: Unpack[NodeOptions],
    ) -> NodeFactory[P, T] | EachNodeFactory[T]:
        """Make a workflow node: `task.node(...)(...)`, the task's arguments in the second call.

        `waits_for`, `args_from`, `workflow_ctx_from`, `node_id`, `queue`, `priority`,
        `allow_failed_deps`, `join`, `min_success`, `good_until`. With `each=from_node(producer)`
        the task runs once per element of the producer's list, `max_in_flight` at a time.
        """
        return node_factory(self, options, each=each, each_as=each_as, max_in_flight=max_in_flight)

    def _resend(self, error: TaskSendError, *, is_delayed: bool) -> TaskSendResult[TaskHandle[T]]:
        row = self._row_to_resend(error, is_delayed=is_delayed)
        return row if isinstance(row, Err) else enqueue(self._app, row.ok_value)

    async def _resend_async(
        self, error: TaskSendError, *, is_delayed: bool
    ) -> TaskSendResult[TaskHandle[T]]:
        row = self._row_to_resend(error, is_delayed=is_delayed)
        return row if isinstance(row, Err) else await enqueue_async(self._app, row.ok_value)

    def _row_to_resend(
        self, error: TaskSendError, *, is_delayed: bool
    ) -> Result[NewTask, TaskSendError]:
        if (suppressed := suppression(self._app)) is not None:
            return suppressed
        return row_to_resend(self.task_name, error, is_delayed=is_delayed)


class AsyncRegisteredTask(RegisteredTask[P, T]):
    """A coroutine task: a direct call is awaited."""

    async def __call__(  # type: ignore[override]  # pyright: ignore[reportIncompatibleMethodOverride] # the function's own colour
        self, *args: P.args, **kwargs: P.kwargs
    ) -> TaskResult[T, TaskError]:
        return await self.definition.call_async(*args, **kwargs)


def _sent(result: TaskSendResult[TaskHandle[T]]) -> TaskHandle[T]:
    if isinstance(result, Err):
        raise SendFailed(result.err_value)
    return result.ok_value
