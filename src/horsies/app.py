"""Horsies: joins configuration, task registry and broker for user code."""

import logging
import os
from collections.abc import Awaitable, Callable, Generator, Iterable, Sequence
from contextlib import contextmanager
from datetime import timedelta
from functools import cached_property
from typing import (
    TYPE_CHECKING,
    Any,
    Literal,
    ParamSpec,
    Protocol,
    Self,
    TypedDict,
    TypeVar,
    Unpack,
    cast,
    overload,
)

from horsies import checking
from horsies.broker.postgres import PostgresBroker
from horsies.codes import ErrorCode
from horsies.config import AppConfig, ExceptionMapper
from horsies.config.sources import make_config
from horsies.errors import HorsiesError, SourceLocation
from horsies.executors.middleware import Middleware
from horsies.locks import ForkSafeLock
from horsies.observability.events import FailedEvent
from horsies.observability.hooks import EventHooks
from horsies.observability.traces import Tracing
from horsies.operations.health import DatabasePing, WorkerPong
from horsies.result import TaskError, TaskResult
from horsies.result.broker import BrokerResult
from horsies.results.handle import TaskHandle
from horsies.results.reading import AnyResult, decode_untyped
from horsies.sending.task_function import AsyncRegisteredTask, RegisteredTask
from horsies.tasks import discovery
from horsies.tasks.checks import Execution, nameless
from horsies.tasks.definition import TaskDefinition, define_task
from horsies.tasks.mistakes import refused_task
from horsies.tasks.queues import resolve_queue, valid_queue_names
from horsies.tasks.registry import TaskRegistry
from horsies.tasks.retry import RetryPolicy
from horsies.workflows.builders import F, WorkflowBuilder, make_spec
from horsies.workflows.definition import WorkflowDefinition
from horsies.workflows.errors import WorkflowStartResult
from horsies.workflows.events import Event, EventRegistry
from horsies.workflows.handle import WorkflowHandle
from horsies.workflows.nodes import AnyNode, Node, OnError, SuccessPolicy
from horsies.workflows.sending_events import send_event, send_event_async
from horsies.workflows.spec import WorkflowSpec
from horsies.workflows.start import start_many, start_many_async

if TYPE_CHECKING:
    from horsies.operations.operations import Operations
    from horsies.scheduling.schedules import Schedules

P = ParamSpec("P")
T = TypeVar("T")
E = TypeVar("E")
AnyTask = RegisteredTask[Any, Any]
ChildProcessStartHook = Callable[[], None]
Resolver = Callable[[str], TaskDefinition | None]
WorkerHook = Callable[[], object]  # a function or a coroutine function
_SUPPRESS_VARIABLES = ("HORSIES_SUPPRESS_SENDS", "TASKLIB_SUPPRESS_SENDS")


class FailureHook(Protocol):
    """Called in the worker once per terminal failure, after it is committed."""

    def __call__(
        self, *, task_id: str, task_name: str, attempt: int, error: TaskError
    ) -> object: ...


class TaskOptions(TypedDict, total=False):
    """What `@app.task` takes besides the name."""

    queue_name: str | None
    retry_policy: RetryPolicy | None
    exception_mapper: ExceptionMapper | None
    default_unhandled_error_code: str | None
    execution: Execution | None
    timeout_ms: int | None
    soft_timeout_ms: int | None
    interruptible: bool
    idempotent: bool
    priority: int | None
    tags: Iterable[str]
    unique_key: Callable[..., str] | None
    delay: float | timedelta | None


class TaskDecorator(Protocol):
    """The result of `@app.task("name", ...)`: keeps the function's parameters and result type."""

    @overload
    def __call__(
        self, function: Callable[P, Awaitable[TaskResult[T, E]]], /
    ) -> AsyncRegisteredTask[P, T]: ...
    @overload
    def __call__(self, function: Callable[P, TaskResult[T, E]], /) -> RegisteredTask[P, T]: ...
    @overload
    def __call__(self, function: Callable[P, Awaitable[T]], /) -> AsyncRegisteredTask[P, T]: ...
    @overload
    def __call__(self, function: Callable[P, T], /) -> RegisteredTask[P, T]: ...


class Horsies:
    """One app: define tasks on it, send them, run `horsies worker` with it.

    `Horsies("postgresql://…", allow_plain_returns=True)` takes a URL and the fields of `AppConfig`;
    what it does not name comes from HORSIES_… variables, then from `[tool.horsies]` in
    pyproject.toml. Without any URL it uses DATABASE_URL, else an embedded PostgreSQL.
    """

    def __init__(self, config: AppConfig | str | None = None, **settings: Any) -> None:
        self.config, self.config_sources = make_config(config, settings)
        self.logger = logging.getLogger("horsies")
        self.tasks: TaskRegistry[AnyTask] = TaskRegistry()
        self.role = "producer"
        self.mistakes: list[HorsiesError] = []  # of the module that defines the app
        self.on = EventHooks()  # @app.on("failed")
        self.middleware = Middleware()  # @app.middleware
        self.tracing: Tracing | None = None
        self.start_hooks: list[ChildProcessStartHook] = []
        # Integrations whose tasks are known to another framework resolve the other names here.
        self.resolver: Resolver | None = None
        self.worker_start_hooks: list[WorkerHook] = []
        self.worker_stop_hooks: list[WorkerHook] = []
        self._broker: PostgresBroker | None = None
        self._broker_lock = ForkSafeLock()
        self._modules: list[str] = []
        self._is_suppressed = False
        self._workflow_builders: list[WorkflowBuilder] = []
        self.events = EventRegistry()

    @overload
    def task(
        self, task_name: str, func: None = None, **options: Unpack[TaskOptions]
    ) -> TaskDecorator: ...
    @overload
    def task(
        self,
        task_name: str,
        func: Callable[P, Awaitable[TaskResult[T, E]]],
        **options: Unpack[TaskOptions],
    ) -> AsyncRegisteredTask[P, T]: ...
    @overload
    def task(
        self,
        task_name: str,
        func: Callable[P, TaskResult[T, E]],
        **options: Unpack[TaskOptions],
    ) -> RegisteredTask[P, T]: ...
    @overload
    def task(
        self, task_name: str, func: Callable[P, Awaitable[T]], **options: Unpack[TaskOptions]
    ) -> AsyncRegisteredTask[P, T]: ...
    @overload
    def task(
        self, task_name: str, func: Callable[P, T], **options: Unpack[TaskOptions]
    ) -> RegisteredTask[P, T]: ...
    def task(
        self,
        task_name: str | Callable[..., Any] | None = None,
        func: Callable[..., Any] | None = None,
        **options: Any,
    ) -> Any:
        """Register a function as a task, as a decorator or directly.

        Options: `queue_name`, `retry_policy`, `exception_mapper`, `default_unhandled_error_code`,
        `execution` ("process", "async", "blocking"), `timeout_ms`, `soft_timeout_ms`,
        `interruptible`, `idempotent` (running twice is harmless: interrupted by a stop, and retried
        after a crash); and what a send takes when it does not say otherwise: `priority`, `tags`,
        `delay`, `unique_key` (a function of the arguments).
        """

        if callable(task_name):  # @app.task without parentheses
            return refused_task(nameless(task_name))

        def register(function: Callable[..., Any]) -> AnyTask:
            try:
                if task_name is None:
                    raise nameless(function)
                definition = define_task(function, task_name, config=self.config, **options)
                kind = AsyncRegisteredTask if definition.is_coroutine else RegisteredTask
                made: AnyTask = kind(self, definition)
                return self.tasks.register(task_name, made, definition.location)
            except HorsiesError as error:
                return cast("AnyTask", refused_task(error))

        return register if func is None else register(func)

    @overload
    def workflow(
        self,
        name: str,
        tasks: Sequence[AnyNode],
        on_error: OnError | Literal["fail", "pause"] = OnError.FAIL,
        *,
        success_policy: SuccessPolicy | None = None,
        definition_key: str | None = None,
        workflow_def_cls: type[WorkflowDefinition[Any]] | None = None,
    ) -> WorkflowSpec[dict[str, TaskResult[Any, TaskError] | None]]: ...
    @overload
    def workflow(
        self,
        name: str,
        tasks: Sequence[AnyNode],
        on_error: OnError | Literal["fail", "pause"] = OnError.FAIL,
        output: Node[T] | None = None,
        success_policy: SuccessPolicy | None = None,
        *,
        definition_key: str | None = None,
        workflow_def_cls: type[WorkflowDefinition[Any]] | None = None,
    ) -> WorkflowSpec[T]: ...
    def workflow(
        self,
        name: str,
        tasks: Sequence[AnyNode],
        on_error: OnError | Literal["fail", "pause"] = OnError.FAIL,
        output: Node[Any] | None = None,
        success_policy: SuccessPolicy | None = None,
        *,
        definition_key: str | None = None,
        workflow_def_cls: type[WorkflowDefinition[Any]] | None = None,
    ) -> WorkflowSpec[Any]:
        """A workflow of nodes, checked, with queues, priorities and this app's broker."""
        return make_spec(
            self,
            name=name,
            tasks=tasks,
            on_error=on_error,
            output=output,
            success_policy=success_policy,
            definition_key=definition_key,
            workflow_def_cls=workflow_def_cls,
        )

    def workflow_builder(self, *, cases: list[dict[str, Any]] | None = None) -> Callable[[F], F]:
        """Have `check` run a function that returns a `WorkflowSpec`, once per case."""

        def register(function: F) -> F:
            location = SourceLocation.from_function(function)
            self._workflow_builders.append(WorkflowBuilder(function, cases, location))
            return function

        return register

    def get_workflow_builders(self) -> list[WorkflowBuilder]:
        return list(self._workflow_builders)

    def event(self, name: str, payload_type: type[T]) -> Event[T]:
        """An event that workflows can wait for: `paid = app.event("paid", Payment)`."""
        return self.events.register(name, payload_type)

    def workflow_handle(self, workflow_id: str) -> WorkflowHandle[Any]:
        """A handle on a stored workflow, by its id."""
        return WorkflowHandle(workflow_id, self.get_broker())

    def start_many(
        self, specs: Sequence[WorkflowSpec[T]], *, connection: Any = None
    ) -> WorkflowStartResult[list[WorkflowHandle[T]]]:
        """Start many workflows in one transaction, all or none."""
        return start_many(specs, self.get_broker(), connection=connection)

    async def start_many_async(
        self, specs: Sequence[WorkflowSpec[T]], *, connection: Any = None
    ) -> WorkflowStartResult[list[WorkflowHandle[T]]]:
        return await start_many_async(specs, self.get_broker(), connection=connection)

    def send_event(
        self, name: str, key: str, payload: object = None, *, connection: Any = None
    ) -> BrokerResult[None]:
        """Send an event to the workflow nodes that wait for it, now or later.

        The payload must fit the type that `app.event(name, type)` declared.
        """
        return send_event(self, name, key, payload, connection=connection)

    async def send_event_async(
        self, name: str, key: str, payload: object = None, *, connection: Any = None
    ) -> BrokerResult[None]:
        return await send_event_async(self, name, key, payload, connection=connection)

    @cached_property
    def schedules(self) -> "Schedules":
        """See and steer the schedules of this app."""
        from horsies.scheduling.schedules import Schedules  # most apps have none

        return Schedules(self)

    @cached_property
    def operations(self) -> "Operations":
        """See, explain and steer the running system."""
        from horsies.operations.operations import Operations  # most processes only send

        return Operations(self)

    def handle(self, task_id: str) -> TaskHandle[Any]:
        """A handle on a stored task, by its id."""
        return TaskHandle(task_id, self, broker_mode=True, created=False)

    def definition(self, task_name: str) -> TaskDefinition | None:
        """The definition behind a name, or `None`: names resolve only here, never by importing."""
        task = self.tasks.find(task_name)
        if task is not None:
            return task.definition
        return None if self.resolver is None else self.resolver(task_name)

    def get_broker(self) -> PostgresBroker:
        """The app's one broker, made at the first use."""
        with self._broker_lock:
            if self._broker is None:
                try:
                    self._broker = PostgresBroker(self.config.broker)
                except HorsiesError:
                    raise
                except Exception as error:  # user code: settings of a class of its own
                    raise HorsiesError(
                        f"the broker could not be set up: {error}",
                        code=ErrorCode.BROKER_INIT_FAILED,
                    ) from error
            if self._broker.app is None:
                self._broker.app = self
                self._broker.decode = self._decode_result
                self._broker.hooks = self.on
            return self._broker

    def _decode_result(self, task_name: str, text: str) -> AnyResult:
        """By the registered task's type when this process knows the task, else as plain values."""
        definition = self.definition(task_name)
        if definition is None:
            return decode_untyped(task_name, text)
        return definition.decode_result(text)

    def check(self, *, live: bool = False) -> list[HorsiesError]:
        """Validate without starting; an empty list means all is well."""
        with self.suppressed_sends():
            return checking.check(self, live=live)

    def discover_tasks(self, modules: list[str]) -> None:
        """Record the modules that define tasks; worker, scheduler and check import them."""
        discovery.refuse_text(modules)
        if self._modules:
            self.logger.warning("discover_tasks called again: the earlier list is replaced")
        self._modules = list(modules)

    def get_discovered_task_modules(self) -> list[str]:
        return list(self._modules)

    def expand_module_globs(
        self, patterns: Sequence[str], exclude: Sequence[str] | None = None
    ) -> list[str]:
        """Expand globs and paths to files; dotted names pass through."""
        return discovery.expand_module_globs(patterns, exclude)

    def import_task_modules(self, modules: Sequence[str] | None = None) -> list[str]:
        """Import the recorded (or given) modules; a missing file is only warned about."""
        with self.suppressed_sends():
            return discovery.import_task_modules(self._modules if modules is None else modules)

    def list_tasks(self) -> list[str]:
        return list(self.tasks)

    def get_valid_queue_names(self) -> list[str]:
        return valid_queue_names(self.config)

    def validate_queue_name(self, name: str | None) -> str:
        """The queue a task with this `queue_name` goes to, or a `ConfigurationError`."""
        return resolve_queue(self.config, name).name

    def suppress_sends(self, value: bool = True) -> None:
        """Make sends of this process return `SEND_SUPPRESSED` instead of storing anything."""
        self._is_suppressed = value

    def are_sends_suppressed(self) -> bool:
        return self._is_suppressed or any(os.environ.get(v) == "1" for v in _SUPPRESS_VARIABLES)

    @contextmanager
    def suppressed_sends(self) -> Generator[None, None, None]:
        """Suppress sends inside a `with` block."""
        before, self._is_suppressed = self._is_suppressed, True
        try:
            yield
        finally:
            self._is_suppressed = before

    def set_role(self, role: Literal["producer", "worker", "scheduler"]) -> None:
        """Set how this process names itself in its logs."""
        self.role = role

    def on_failure(self, callback: FailureHook) -> FailureHook:
        """Have the worker call `callback` once for each terminal failure, after its commit.

        `on("failed")` tells more.
        """

        def tell(event: FailedEvent) -> object:
            return callback(
                task_id=event.task_id,
                task_name=event.task_name,
                attempt=event.attempt,
                error=event.error,
            )

        self.on("failed")(tell)
        return callback

    def enable_tracing(
        self, tracer_provider: Any = None, *, max_attempts_per_second: int | None = 100
    ) -> None:
        """Make OpenTelemetry spans of sends and attempts; needs the extra `otel`.

        Call it where the app is defined, so that every process of it has it. Without a provider,
        spans go to the one that is set globally. A process that runs more attempts in a second
        than this leaves the others out; None for no limit.
        """
        if self.tracing is None:
            tracing = Tracing(tracer_provider, max_attempts_per_second)
            self.tracing = self.middleware.tracing = tracing

    def on_child_process_start(self, hook: ChildProcessStartHook) -> ChildProcessStartHook:
        """Run `hook()` in every child before its first task: open connections, load models."""
        self.start_hooks.append(hook)
        return hook

    def on_worker_start(self, hook: WorkerHook) -> WorkerHook:
        """Run `hook()` in the worker's own process before its first task; it may be a coroutine.

        If it raises, the worker does not start.
        """
        self.worker_start_hooks.append(hook)
        return hook

    def on_worker_stop(self, hook: WorkerHook) -> WorkerHook:
        """Run `hook()` in the worker's own process after its last task; it may be a coroutine."""
        self.worker_stop_hooks.append(hook)
        return hook

    def close(self) -> None:
        """Close the connections of this app; a later use opens new ones."""
        with self._broker_lock:
            broker = self._broker
        if broker is not None:
            broker.close()

    async def close_async(self) -> None:
        """The awaitable twin of `close`."""
        with self._broker_lock:
            broker = self._broker
        if broker is not None:
            await broker.close_async()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close_async()

    def ping_database(self, timeout_ms: int = 2_000) -> BrokerResult[DatabasePing]:
        return self.get_broker().ping(timeout_ms)

    async def ping_database_async(self, timeout_ms: int = 2_000) -> BrokerResult[DatabasePing]:
        return await self.get_broker().ping_async(timeout_ms)

    def ping_workers(self, timeout_ms: int = 1_000) -> BrokerResult[list[WorkerPong]]:
        return self.get_broker().ping_workers(timeout_ms)

    async def ping_workers_async(self, timeout_ms: int = 1_000) -> BrokerResult[list[WorkerPong]]:
        return await self.get_broker().ping_workers_async(timeout_ms)
