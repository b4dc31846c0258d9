"""An app that is watched: hooks, middleware and logs of tasks of every kind.

What hooks and middleware see goes into the file OBSERVED, one JSON array a line.
"""

import json
import logging
import os
import time
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any

from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter, SpanExportResult

from horsies import (
    CurrentTask,
    EnqueuedEvent,
    FailedEvent,
    Horsies,
    SucceededEvent,
    WorkerStartedEvent,
    WorkerStoppingEvent,
    current_task,
)
from horsies.config import AppConfig, PostgresConfig

URL = os.environ["HORSIES_TEST_APP_URL"]
OBSERVED = Path(os.environ["HORSIES_TEST_OBSERVED"])

app = Horsies(
    AppConfig(broker=PostgresConfig(database_url=URL, pool_size=5), allow_plain_returns=True)
)
logger = logging.getLogger("shop")


def observe(*words: object) -> None:
    with OBSERVED.open("a") as file:
        file.write(json.dumps([*words, os.getpid()]) + "\n")


class SpanFile(SpanExporter):
    """Writes spans where everything that is seen goes."""

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        for span in spans:
            context, parent = span.get_span_context(), span.parent
            assert context is not None
            observe("span", span.name, context.trace_id, context.span_id, parent and parent.span_id)
        return SpanExportResult.SUCCESS


provider = TracerProvider()
provider.add_span_processor(BatchSpanProcessor(SpanFile(), schedule_delay_millis=60_000))
app.enable_tracing(provider)


def work(how: str) -> str:
    logger.warning("working %s", how, extra={"task_id": "of the user"} if how == "extra" else None)
    if how == "block":
        time.sleep(3)
    if how == "fail":
        raise LookupError("no horse here")
    current_task().progress(1, 1)
    return current_task().name


@app.task("child")
def child(how: str) -> str:
    return work(how)


@app.task("thread", execution="blocking")
def thread(how: str) -> str:
    return work(how)


@app.task("loop")
async def loop(how: str) -> str:
    return work(how)


@app.middleware
def outer(task: CurrentTask, call_next: Callable[[], Any]) -> Any:
    observe("outer", task.name)
    try:
        return call_next()
    except LookupError as error:
        observe("caught", task.name, task.id, str(error))
        raise


@app.middleware
def inner(task: CurrentTask, call_next: Callable[[], Any]) -> Any:
    observe("inner", task.name)
    return call_next()


@app.middleware
async def around_coroutines(task: CurrentTask, call_next: Callable[[], Awaitable[Any]]) -> Any:
    observe("around", task.name)
    return await call_next()


@app.on("enqueued")
def on_enqueued(event: EnqueuedEvent) -> None:
    observe("enqueued", event.task_name)


@app.on("succeeded")
def broken(event: SucceededEvent) -> None:
    raise RuntimeError("hooks may break")


@app.on("succeeded")
async def on_succeeded(event: SucceededEvent) -> None:
    observe("succeeded", event.task_name, event.task_id)


@app.on("failed")
def on_failed(event: FailedEvent) -> None:
    exception = event.error.exception
    assert isinstance(exception, dict)
    observe("failed", event.task_name, event.task_id, exception["type"])


@app.on("worker_started")
def on_worker_started(event: WorkerStartedEvent) -> None:
    observe("worker_started", list(event.queue_names))


@app.on("worker_stopping")
async def on_worker_stopping(event: WorkerStoppingEvent) -> None:
    observe("worker_stopping", event.running_count)
