"""The span of an attempt; only apps that trace import this module, which needs OpenTelemetry.

Most attempts of a busy system are not recorded, so what those cost is kept small: decision 0023.
"""

import logging
import random
from contextlib import suppress
from contextvars import Token
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

_logger = logging.getLogger("horsies.traces")
# The last digit of a traceparent says whether the sender records: the lowest bit of its flags.
_UNRECORDED = frozenset("02468ace")


class SpanLimit:
    """How many attempts of this process may be recorded in a second; its threads share it."""

    __slots__ = ("_is_told", "_left", "_per_second", "_renewed_at")

    def __init__(self, per_second: int | None) -> None:
        self._per_second = per_second
        self._renewed_at = self._left = 0.0
        self._is_told = False

    def is_reached(self, now: float) -> bool:
        if self._per_second is None:
            return False
        if now - self._renewed_at >= 1.0:
            self._renewed_at, self._left = now, self._per_second
        if self._left > 0:
            return False
        if not self._is_told:
            self._is_told = True
            _logger.info(
                "more than %d attempts in a second: traces leave out the others, "
                "see max_attempts_per_second of enable_tracing",
                self._per_second,
            )
        return True

    def count(self) -> None:
        self._left -= 1


class AttemptSpan:
    """Makes itself the current span when it is made."""

    __slots__ = ("_recorded", "_token")

    def __init__(
        self, tracer: Tracer, call: "TracedCall", worker_id: str, limit: SpanLimit
    ) -> None:
        self._recorded: Span | None = None
        traceparent = call.traceparent
        if traceparent is not None and traceparent[-1] in _UNRECORDED:
            # What the sender does not record, its attempts do not.
            self._token = context.attach(set_span_in_context(SenderSpan(traceparent)))
            return
        parent = (
            context.Context()  # not below what may be current here: a trace of its own
            if traceparent is None
            else set_span_in_context(SenderSpan(traceparent))
        )
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
            limit.count()
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


class LeftOut(AttemptSpan):
    """An attempt beyond the limit: neither it nor what is below it is recorded."""

    __slots__ = ()

    def __init__(self) -> None:
        self._recorded = None
        self._token = leave_out()


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


def leave_out() -> "Token[context.Context]":
    """Record nothing from here on in this context, until a span is made current."""
    return context.attach(_UNTRACED)


# A place in no trace, below which nothing is recorded; an id is never 0.
_UNTRACED = set_span_in_context(
    NonRecordingSpan(
        SpanContext(random.getrandbits(128) | 1, random.getrandbits(64) | 1, is_remote=False)
    ),
    context.Context(),
)


def _read(traceparent: str) -> SpanContext:
    try:
        trace_id, span_id = int(traceparent[3:35], 16), int(traceparent[36:52], 16)
        flags = TraceFlags(int(traceparent[53:55], 16))
    except ValueError:  # written by hand: a trace begins here
        return INVALID_SPAN_CONTEXT
    return SpanContext(trace_id, span_id, is_remote=True, trace_flags=flags)
