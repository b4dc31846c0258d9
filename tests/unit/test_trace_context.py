"""The sender's span in the options of a row."""

import json

import pytest

from horsies.observability.trace_context import (
    traceparent_of,
    with_traceparent,
    without_traceparent,
)
from horsies.tasks.options import StoredOptions, parse_task_options, write_task_options
from horsies.tasks.retry import RetryPolicy

SPAN = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
OPTIONS = write_task_options(
    StoredOptions(retry_policy=RetryPolicy.fixed([1], auto_retry_for=["BUSY"]), timeout_ms=500)
)


@pytest.mark.parametrize("options", [None, OPTIONS, write_task_options(StoredOptions())])
def test_options_and_span_come_apart_again(options: str | None) -> None:
    carried = with_traceparent(options, SPAN)

    assert json.loads(carried)["traceparent"] == SPAN
    assert traceparent_of(carried) == SPAN
    assert parse_task_options(carried) == parse_task_options(options)
    assert without_traceparent(carried) == options


@pytest.mark.parametrize("options", [None, "", "{}", "not json", OPTIONS, '"traceparent":"00-"}'])
def test_options_without_a_span_stay_as_they_are(options: str | None) -> None:
    assert traceparent_of(options) is None
    assert without_traceparent(options) == options
