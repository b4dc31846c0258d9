"""Traces by OpenTelemetry (extra `otel`): a span for each send and one for each attempt.

The sender's span travels in the row, see trace_context.py and decision 0023.
"""

from collections.abc import Awaitable, Callable
from contextlib import AbstractContextManager, suppress
from typing import TYPE_CHECKING, Any, Protocol, Self

from horsies.errors import ConfigurationError
from horsies.observability.trace_context import with_traceparent
from horsies.result import TaskResult

if TYPE_CHECKING:
    from opentelemetry.trace import Span

_HEADER = "traceparent"
_FLUSH_MS = 5_000


class TracedTask(Protocol):
    """What a span says of an attempt."""

    @property
    def id(self) -> str: ...
    @property
    def name(self) -> str: ...
    @property
    def queue(self) -> str: ...
    @property
    def attempt(self) -> int: ...
    @property
    def worker_id(self) -> str: ...
    @property
    def traceparent(self) -> str | None: ...


class Tracing:
    """Makes spans with the given provider, or with the one that is set globally."""

    def __init__(self, tracer_provider: Any = None) -> None:
        try:
            from opentelemetry import context, trace
            from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator
        except ImportError as error:
            raise ConfigurationError(
                "traces need the library opentelemetry-api",
                help_text="pip install 'horsies[otel]'",
            ) from error
        from horsies.version import __version__

        self._trace = trace
        self._context = context
        self._provider = tracer_provider
        self._tracer = trace.get_tracer("horsies", __version__, tracer_provider)
        self._propagator = TraceContextTextMapPropagator()

    def carried(self, task_options: str | None) -> str | None:
        """The options of a row with the current span, if there is one."""
        carrier: dict[str, str] = {}
        self._propagator.inject(carrier)
        traceparent = carrier.get(_HEADER)
        return with_traceparent(task_options, traceparent) if traceparent else task_options

    def sending(self, what: str, queue_name: str | None = None) -> AbstractContextManager[object]:
        """A span around a send: `send pay`, `start workflow order`."""
        attributes = {"messaging.system": "horsies", "messaging.operation.type": "send"}
        if queue_name is not None:
            attributes["messaging.destination.name"] = queue_name
        kind = self._trace.SpanKind.PRODUCER
        return self._tracer.start_as_current_span(what, kind=kind, attributes=attributes)

    def plain_layer(self, task: TracedTask, call_next: Callable[[], Any]) -> Any:
        """Middleware: a span around an attempt."""
        with _AttemptSpan(self, task) as attempt:
            return attempt.returned(call_next())

    async def async_layer(self, task: TracedTask, call_next: Callable[[], Awaitable[Any]]) -> Any:
        """The same for coroutines."""
        with _AttemptSpan(self, task) as attempt:
            return attempt.returned(await call_next())

    def flush(self) -> None:
        """Hand over the spans that a batch of the provider still holds."""
        provider = self._provider or self._trace.get_tracer_provider()
        flush = getattr(provider, "force_flush", None)
        if flush is not None:
            flush(_FLUSH_MS)

    def begin(self, task: TracedTask) -> tuple["Span", Any]:
        """Make the span of an attempt the current one; the token leads back."""
        # By hand: start_as_current_span and the propagator double what a span costs.
        trace, parent = self._trace, None
        if task.traceparent is not None:
            parent = self._parent(task.traceparent)
        if parent is not None and not parent.get_span_context().trace_flags.sampled:
            # What the sender does not record, its attempts do not: most pass here.
            return parent, self._context.attach(trace.set_span_in_context(parent))
        context = None if parent is None else trace.set_span_in_context(parent)
        span = self._tracer.start_span(f"run {task.name}", context, trace.SpanKind.CONSUMER)
        if span.is_recording():
            span.set_attributes(
                {
                    "messaging.system": "horsies",
                    "messaging.destination.name": task.queue,
                    "messaging.message.id": task.id,
                    "horsies.task.name": task.name,
                    "horsies.task.attempt": task.attempt,
                    "horsies.worker.id": task.worker_id,
                }
            )
        return span, self._context.attach(trace.set_span_in_context(span))

    def end(self, span: "Span", token: Any) -> None:
        self._context.detach(token)
        span.end()

    def fail(self, span: "Span", error_type: str) -> None:
        span.set_attribute("error.type", error_type)
        span.set_status(self._trace.Status(self._trace.StatusCode.ERROR, error_type))

    def _parent(self, traceparent: str) -> "Span | None":
        """The span that a row carries: `00-<trace id>-<span id>-<flags>`."""
        trace = self._trace
        try:
            trace_id, span_id = int(traceparent[3:35], 16), int(traceparent[36:52], 16)
            flags = trace.TraceFlags(int(traceparent[53:55], 16))
        except ValueError:  # written by hand
            return None
        context = trace.SpanContext(trace_id, span_id, is_remote=True, trace_flags=flags)
        return trace.NonRecordingSpan(context) if context.is_valid else None


class _AttemptSpan:
    """The span of one attempt, for the length of a `with` block."""

    __slots__ = ("_span", "_task", "_token", "_tracing")

    def __init__(self, tracing: Tracing, task: TracedTask) -> None:
        self._tracing = tracing
        self._task = task

    def __enter__(self) -> Self:
        self._span, self._token = self._tracing.begin(self._task)
        return self

    def returned(self, value: Any) -> Any:
        """Note a returned error: such a task has failed, too."""
        if self._span.is_recording() and isinstance(value, TaskResult) and value.is_err():
            code: object = getattr(value.err, "error_code", None)
            self._tracing.fail(self._span, str(getattr(code, "value", code)))
        return value

    def __exit__(self, _kind: object, error: BaseException | None, _place: object) -> None:
        if error is not None and self._span.is_recording():
            self._tracing.fail(self._span, type(error).__name__)
            with suppress(Exception):  # user code: the exception's own methods
                self._span.record_exception(error)
        self._tracing.end(self._span, self._token)
