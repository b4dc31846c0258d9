"""What a worker tells of ended tasks, and how it keeps to some hundred lines a second."""

import json
import logging
from typing import Any

import pytest

from horsies.codec.results import serialize_error_payload
from horsies.observability.logs import JsonFormatter
from horsies.result import TaskError, TaskResult
from horsies.worker.completer import Recorded
from horsies.worker.held_task import Completion, HeldTask
from horsies.worker.task_log import LoggedTasks, TaskLog, what_is_left

ID = "01a1e7d1-4c32-7038-9104-4ac4ee55cff5"


def task(name: str = "shop.pay") -> HeldTask:
    return HeldTask(ID, "mail", 1, 1, name, None, None, 2, "now", "now", None, False, 1)


def good() -> Recorded:
    return Recorded(Completion(task(), "", duration_s=0.012), "completed", None)


def failed(outcome: str = "failed", code: str = "DECLINED") -> Recorded:
    try:
        raise OSError("no line")
    except OSError as error:
        told = TaskError(error_code=code, message="no money", exception=error)
    result = serialize_error_payload(TaskResult(err=told))
    ended = Completion(
        task(), result, "fail", error_code=code, error_message="no money", duration_s=2.5
    )
    return Recorded(ended, outcome, 60.0 if outcome == "retried" else None)


@pytest.fixture
def log(caplog: pytest.LogCaptureFixture) -> pytest.LogCaptureFixture:
    caplog.set_level(logging.INFO, "horsies.tasks")
    return caplog


def test_a_good_end_is_one_line(log: pytest.LogCaptureFixture) -> None:
    TaskLog("all").record([good()])

    (record,) = log.records
    expected = "shop.pay ee55cff5 completed in 12 ms (attempt 2, queue mail)"
    assert (record.levelname, record.getMessage()) == ("INFO", expected)


def test_a_failure_has_code_message_traceback_and_the_next_try(
    log: pytest.LogCaptureFixture,
) -> None:
    TaskLog("failures").record([good(), failed("retried")])

    (record,) = log.records
    first, *rest = record.getMessage().splitlines()
    assert record.levelname == "WARNING"
    assert first == (
        f"shop.pay {ID} failed in 2.50 s (attempt 2, queue mail): DECLINED: no money; "
        "it is tried again in 60 s"
    )
    assert rest[0] == "Traceback (most recent call last):"
    assert rest[-1] == "OSError: no line"


@pytest.mark.parametrize(("wanted", "count"), [("all", 2), ("failures", 1), ("none", 0)])
def test_one_may_choose_what_is_told(
    log: pytest.LogCaptureFixture, wanted: LoggedTasks, count: int
) -> None:
    TaskLog(wanted).record([good(), failed()])

    assert len(log.records) == count


def test_rows_that_a_signature_cannot_read_are_always_told_with_their_ids(
    log: pytest.LogCaptureFixture,
) -> None:
    TaskLog("none").record([failed(code="SHOP_CLOSED"), _unreadable()])

    (record,) = log.records
    assert ID in record.getMessage()


def _unreadable() -> Recorded:
    one = failed(code="SHOP_CLOSED")
    ended = one.completion._replace(error_code="WORKER_SERIALIZATION_ERROR")
    return one._replace(completion=ended)


async def test_many_ends_are_summed_up(log: pytest.LogCaptureFixture) -> None:
    told = TaskLog("all")

    told.record([good()] * 150)
    told.record([good()] * 1_000 + [failed()] * 3)
    told.sum_up()
    told.sum_up()

    assert len(log.records) == 201
    expected = "and more than 200 lines a second: 950 completed, 3 failed"
    assert log.records[-1].getMessage() == expected


def test_json_lines_carry_the_facts(log: pytest.LogCaptureFixture) -> None:
    TaskLog("all").record([good()])

    line: dict[str, Any] = json.loads(JsonFormatter().format(log.records[0]))

    assert line["task_name"] == "shop.pay"
    assert (line["task_id"], line["outcome"], line["queue"]) == (ID, "completed", "mail")
    assert (line["attempt"], line["duration_s"], line["level"]) == (2, 0.012, "INFO")


def test_a_stopping_worker_says_what_it_waits_for() -> None:
    said = what_is_left(3, [task("a")] * 6)

    assert said.startswith(f"3 claims handed back; 6 tasks to finish (a {ID}, ")
    assert said.endswith(" and 1 more); a second signal ends them")
