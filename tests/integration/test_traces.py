"""Traces by OpenTelemetry: from the send through each attempt, workflows as one trace."""

import sys
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from horsies import (
    ConfigurationError,
    Horsies,
    RetryPolicy,
    SubWorkflowNode,
    TaskError,
    TaskFailed,
    TaskResult,
    TaskSendError,
    WorkflowDefinition,
)
from horsies.codes import TaskSendErrorCode
from horsies.observability.trace_context import with_traceparent
from horsies.sending.errors import TaskSendPayload
from horsies.sending.resend import is_unchanged
from support.apps import bad, good, make_app, working
from support.database import Database

NewApp = Callable[..., Horsies]
LONG_AGO = "2026-01-01T00:00:00Z"


class Spans:
    """The spans of an app."""

    def __init__(self) -> None:
        self.exporter = InMemorySpanExporter()
        self.provider = TracerProvider()
        self.provider.add_span_processor(SimpleSpanProcessor(self.exporter))

    def named(self, name: str) -> list[ReadableSpan]:
        return [span for span in self.exporter.get_finished_spans() if span.name == name]

    def one(self, name: str) -> ReadableSpan:
        (span,) = self.named(name)
        return span


@pytest.fixture
def spans() -> Iterator[Spans]:
    made = Spans()
    yield made
    made.provider.shutdown()


def ids(span: ReadableSpan) -> tuple[int, int]:
    context = span.get_span_context()
    assert context is not None
    return context.trace_id, context.span_id


def is_child(span: ReadableSpan, of: ReadableSpan) -> bool:
    return span.parent is not None and (span.parent.trace_id, span.parent.span_id) == ids(of)


def look_inside(spans: Spans) -> bool:
    """Whether a span that a task makes is recorded."""
    with spans.provider.get_tracer("shop").start_as_current_span("inside") as span:
        return span.get_span_context().trace_flags.sampled


async def test_each_attempt_continues_the_trace_of_its_send(
    new_app: NewApp, spans: Spans, db: Database
) -> None:
    app = new_app(allow_plain_returns=True)
    app.enable_tracing(spans.provider)
    app.enable_tracing(spans.provider)  # once is enough
    policy = RetryPolicy.fixed([1], auto_retry_for=["BUSY"], jitter=False)
    tracer = spans.provider.get_tracer("shop")

    @app.task("pay", retry_policy=policy)
    async def pay() -> None:
        with tracer.start_as_current_span("ask the bank"):
            raise TaskFailed("BUSY", "the bank does not answer")

    @app.task("refuse", execution="blocking")
    def refuse() -> TaskResult[int, TaskError]:
        return TaskResult(err=TaskError(error_code="REFUSED", message="no"))

    with tracer.start_as_current_span("checkout") as checkout:
        handles = [good(await pay.send_async()), good(await refuse.send_async())]
    async with working(app):
        for handle in handles:
            await handle.get_async(20_000)

    send, attempts = spans.one("send pay"), spans.named("run pay")
    assert is_child(send, of=checkout)  # type: ignore[arg-type]
    assert len(attempts) == 2
    assert all(is_child(attempt, of=send) for attempt in attempts)
    assert [dict(one.attributes or {})["horsies.task.attempt"] for one in attempts] == [1, 2]
    assert is_child(spans.named("ask the bank")[0], of=attempts[0])
    assert attempts[0].events[0].name == "exception"
    refused = spans.one("run refuse")
    assert dict(refused.attributes or {})["error.type"] == "REFUSED"
    assert {one.status.status_code for one in (refused, *attempts)} == {trace.StatusCode.ERROR}


async def test_what_the_sender_does_not_record_its_attempts_do_not(
    new_app: NewApp, spans: Spans, db: Database
) -> None:
    app = new_app(allow_plain_returns=True)
    app.enable_tracing(spans.provider)
    seen: list[int] = []

    @app.task("look")
    async def look() -> None:
        with spans.provider.get_tracer("shop").start_as_current_span("inside") as span:
            seen.append(span.get_span_context().trace_id)

    unsampled = trace.SpanContext(7, 8, is_remote=False, trace_flags=trace.TraceFlags(0))
    with trace.use_span(trace.NonRecordingSpan(unsampled)):
        sent = good(await look.send_async())
    by_hand = db.insert(
        task_name="look", task_options=with_traceparent(None, "x" * 55), enqueued_at=LONG_AGO
    )
    async with working(app):
        await sent.get_async(20_000)
        await app.handle(by_hand).get_async(20_000)

    assert 7 in seen
    assert [span.name for span in spans.exporter.get_finished_spans()] == ["inside", "run look"]


@pytest.mark.parametrize("name", ["in the loop", "in threads"])
async def test_beyond_its_limit_a_process_records_neither_attempts_nor_what_is_below_them(
    new_app: NewApp, spans: Spans, db: Database, name: str
) -> None:
    app = new_app(allow_plain_returns=True)
    app.enable_tracing(spans.provider, max_attempts_per_second=1)
    below: list[bool] = []

    @app.task("in the loop")
    async def in_loop(_number: int) -> None:
        below.append(look_inside(spans))

    @app.task("in threads", execution="blocking")
    def in_threads(_number: int) -> None:
        below.append(look_inside(spans))

    task = app.tasks[name]
    with spans.provider.get_tracer("shop").start_as_current_span("checkout"):
        sent = good(await task.send_many_async((number,) for number in range(100)))
    unsent = [db.insert(task_name=name, args="[1]", enqueued_at=LONG_AGO) for _ in range(100)]
    async with working(app):
        for task_id in (*(handle.task_id for handle in sent), *unsent):
            await app.handle(task_id).get_async(20_000)

    recorded = len(spans.named(f"run {name}"))
    assert 1 <= recorded < 50  # one, and one more for each second that this took
    assert len(spans.named("inside")) == below.count(True) == recorded
    assert len(below) == 200


def test_a_limit_of_attempts_is_positive(spans: Spans) -> None:
    app = make_app("postgresql://nowhere/none")

    with pytest.raises(ConfigurationError, match="max_attempts_per_second must be at least 1"):
        app.enable_tracing(spans.provider, max_attempts_per_second=0)


async def test_a_workflow_is_one_trace(new_app: NewApp, spans: Spans, db: Database) -> None:
    app = new_app(allow_plain_returns=True)
    app.enable_tracing(spans.provider)

    @app.task("step")
    async def step(number: int) -> int:
        return number

    class Inner(WorkflowDefinition[int]):
        name = "inner"
        definition_key = "test_traces.inner"

        @classmethod
        def build_with(cls, app: Any) -> Any:
            return app.workflow(
                "inner", [step.node()(number=3)], definition_key="test_traces.inner"
            )

    first = step.node(node_id="first")(number=1)
    second = step.node(node_id="second", waits_for=[first])(number=2)
    inner = SubWorkflowNode(workflow_def=Inner, node_id="inner", waits_for=[first])
    order = app.workflow("order", [first, second, inner], definition_key="test_traces.order")
    handle = good(await order.start_async())
    async with working(app):
        assert (await handle.get_async(20_000)).is_ok()

    start, steps = spans.one("start workflow order"), spans.named("run step")
    assert len(steps) == 3
    assert all(is_child(one, of=start) for one in steps)


async def test_many_sends_share_one_span(new_app: NewApp, spans: Spans, db: Database) -> None:
    app = new_app(allow_plain_returns=True)
    app.enable_tracing(spans.provider)

    @app.task("pack")
    async def pack(order: int) -> None: ...

    good(pack.send_many([(1,), (2,), (3,)]))
    good(pack.send_many([(n,) for n in range(100)]))

    options = {row["task_options"] for row in db.execute("select task_options from horsies_tasks")}
    assert len(spans.named("send pack")) == len(options) == 2


def test_a_span_is_not_part_of_what_was_sent(spans: Spans) -> None:
    """A send that failed is sent again as itself, whatever spans are around."""
    app = make_app("postgresql://127.0.0.1:1/none", allow_plain_returns=True)
    app.enable_tracing(spans.provider)

    @app.task("pack")
    async def pack(order: int) -> None: ...

    error: TaskSendError = bad(pack.send(1))

    payload = error.payload
    assert isinstance(payload, TaskSendPayload)
    assert error.code is TaskSendErrorCode.ENQUEUE_FAILED
    assert '"traceparent":"00-' in (payload.task_options or "")
    assert is_unchanged(payload)
    assert bad(pack.retry_send(error)).code is TaskSendErrorCode.ENQUEUE_FAILED
    app.close()


def test_without_the_library_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "opentelemetry", None)
    app = make_app("postgresql://nowhere/none")

    with pytest.raises(ConfigurationError, match="traces need the library") as refused:
        app.enable_tracing()

    assert "pip install 'horsies[otel]'" in str(refused.value)
    assert app.tracing is None
