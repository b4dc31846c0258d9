"""Traces by OpenTelemetry (extra `otel`): a span for each send and one for each attempt.

The sender's span travels in the row, see trace_context.py and decision 0023.
"""

from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, Protocol

from horsies.errors import ConfigurationError
from horsies.observability.trace_context import with_traceparent

if TYPE_CHECKING:
    from horsies.observability.spans import AttemptSpan

_HEADER = "traceparent"
_FLUSH_MS = 5_000


class TracedCall(Protocol):
    """What a span says of an attempt."""

    @property
    def task_id(self) -> str: ...
    @property
    def task_name(self) -> str: ...
    @property
    def queue_name(self) -> str: ...
    @property
    def attempt(self) -> int: ...
    @property
    def traceparent(self) -> str | None: ...


class Tracing:
    """Makes spans with the given provider, or with the one that is set globally."""

    def __init__(self, tracer_provider: Any, max_attempts_per_second: int | None) -> None:
        if max_attempts_per_second is not None and max_attempts_per_second < 1:
            raise ConfigurationError(
                f"max_attempts_per_second must be at least 1, not {max_attempts_per_second}",
                help_text="None records every attempt whose sender is recorded",
            )
        try:
            from opentelemetry import trace
            from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

            from horsies.observability import spans
        except ImportError as error:
            raise ConfigurationError(
                "traces need the library opentelemetry-api",
                help_text="pip install 'horsies[otel]'",
            ) from error
        from horsies.version import __version__

        self._trace = trace
        self._spans = spans
        self._limit = spans.SpanLimit(max_attempts_per_second)
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

    def begin(
        self, call: TracedCall, worker_id: str, now: float, *, is_left_out: bool
    ) -> "AttemptSpan | None":
        """Make the span of an attempt the current one, until its `end`.

        Beyond the limit none, where all that no span is made for `is_left_out` anyway.
        """
        if self._limit.is_reached(now):
            return None if is_left_out else self._spans.LeftOut()
        return self._spans.AttemptSpan(self._tracer, call, worker_id, self._limit)

    def leave_out(self) -> None:
        """Record nothing in this context but attempts and what is below them."""
        self._spans.leave_out()

    def flush(self) -> None:
        """Hand over the spans that a batch of the provider still holds."""
        provider = self._provider or self._trace.get_tracer_provider()
        flush = getattr(provider, "force_flush", None)
        if flush is not None:
            flush(_FLUSH_MS)
