"""The span of an attempt; only apps that trace import this module, which needs OpenTelemetry.

Most attempts of a busy system are not recorded, so what those cost is kept small: decision 0023.
"""

from contextlib import suppress
from typing import TYPE_CHECKING

from opentelemetry import context
from opentelemetry.trace import (
    INVALID_SPAN_CONTEXT,
    NonRecordingSpan,
    Span,
    SpanContext,
    SpanKind,
    Status,
    StatusCode,
    TraceFlags,
    Tracer,
    set_span_in_context,
)

from horsies.result import TaskResult

if TYPE_CHECKING:
    from horsies.observability.traces import TracedCall

# The last digit of a traceparent says whether the sender records: the lowest bit of its flags.
_UNRECORDED = frozenset("02468ace")


class AttemptSpan:
    """Makes itself the current span when it is made."""

    __slots__ = ("_recorded", "_token")

    def __init__(self, tracer: Tracer, call: "TracedCall", worker_id: str) -> None:
        self._recorded: Span | None = None
        traceparent = call.traceparent
        if traceparent is not None and traceparent[-1] in _UNRECORDED:
            # What the sender does not record, its attempts do not: most pass here.
            self._token = context.attach(set_span_in_context(SenderSpan(traceparent)))
            return
        parent = None if traceparent is None else set_span_in_context(SenderSpan(traceparent))
        # By hand: start_as_current_span doubles what a span costs.
        span = tracer.start_span(
            f"run {call.task_name}",
            parent,
            SpanKind.CONSUMER,
            {
                "messaging.system": "horsies",
                "messaging.destination.name": call.queue_name,
                "messaging.message.id": call.task_id,
                "horsies.task.name": call.task_name,
                "horsies.task.attempt": call.attempt,
                "horsies.worker.id": worker_id,
            },
        )
        if span.is_recording():
            self._recorded = span
        self._token = context.attach(set_span_in_context(span))

    def returned(self, value: object) -> None:
        """Note a returned error: such a task has failed, too."""
        if self._recorded is not None and isinstance(value, TaskResult) and value.is_err():
            code: object = getattr(value.err, "error_code", None)
            self._fail(self._recorded, str(getattr(code, "value", code)))

    def raised(self, error: BaseException) -> None:
        if self._recorded is not None:
            self._fail(self._recorded, type(error).__name__)
            with suppress(Exception):  # user code: the exception's own methods
                self._recorded.record_exception(error)

    def end(self) -> None:
        context.detach(self._token)
        if self._recorded is not None:
            self._recorded.end()

    def _fail(self, span: Span, error_type: str) -> None:
        span.set_attribute("error.type", error_type)
        span.set_status(Status(StatusCode.ERROR, error_type))


class SenderSpan(NonRecordingSpan):
    """The span that a row carries, `00-<trace id>-<span id>-<flags>`: read once someone asks."""

    _context = INVALID_SPAN_CONTEXT  # of the class: one is made for every attempt
    _read: SpanContext | None = None

    def __init__(self, traceparent: str) -> None:
        self._traceparent = traceparent

    def get_span_context(self) -> SpanContext:
        if self._read is None:
            self._read = _read(self._traceparent)
        return self._read


def _read(traceparent: str) -> SpanContext:
    try:
        trace_id, span_id = int(traceparent[3:35], 16), int(traceparent[36:52], 16)
        flags = TraceFlags(int(traceparent[53:55], 16))
    except ValueError:  # written by hand: a trace begins here
        return INVALID_SPAN_CONTEXT
    return SpanContext(trace_id, span_id, is_remote=True, trace_flags=flags)
