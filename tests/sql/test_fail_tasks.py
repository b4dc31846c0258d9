"""horsies_fail_tasks: RUNNING -> FAILED, or -> PENDING for a retry, with the attempt row."""

import json
from typing import Any

import pytest

from support.database import FAILURE, Database, at, retry_options


def raised(traceback: str) -> str:
    """The stored result of a task that raised."""
    error = {"error_code": "BROKEN", "exception": {"type": "KeyError", "traceback": traceback}}
    return json.dumps({"ok": None, "err": error}, ensure_ascii=False, separators=(",", ":"))


@pytest.mark.seed("S5", "S22", "S23", "S26", "S47", "S99", "S100")
def test_failure_stores_error_and_time_and_keeps_the_worker(db: Database) -> None:
    claim = db.running()
    db.set_now(7)

    receipt = db.fail(claim, failed_reason="why")

    row = db.task(claim.task_id)
    assert (receipt.outcome, receipt.retry_after_s) == ("failed", None)
    assert (row["status"], row["result"]) == ("FAILED", FAILURE)
    assert (row["error_code"], row["failed_reason"]) == ("BROKEN", "why")
    assert row["failed_at"] == row["updated_at"] == at(7)
    assert row["completed_at"] is None
    assert (row["claimed_by_worker_id"], row["worker_pid"]) == ("worker-a", 2001)
    assert (row["claimed_at"], row["started_at"]) == (at(0), at(0))


@pytest.mark.seed("S117", "S119", "S120", "S121")
@pytest.mark.parametrize("outcome", ["FAILED", "WORKER_FAILURE"])
def test_failure_writes_the_attempt(db: Database, outcome: str) -> None:
    claim = db.running(retry_count=1)
    db.set_now(7)

    db.fail(claim, attempt_outcome=outcome, failed_reason="exit code 1")

    (attempt,) = db.attempts(claim.task_id)
    assert (attempt["attempt"], attempt["outcome"], attempt["will_retry"]) == (2, outcome, False)
    assert (attempt["started_at"], attempt["finished_at"]) == (at(0), at(7))
    assert (attempt["error_code"], attempt["error_message"]) == ("BROKEN", "broke")
    assert attempt["failed_reason"] == "exit code 1"
    assert (attempt["worker_id"], attempt["worker_pid"]) == ("worker-a", 2001)


@pytest.mark.parametrize("delay_s", [None, 10.0], ids=["failed", "retried"])
def test_the_attempt_keeps_the_traceback(db: Database, delay_s: float | None) -> None:
    claim = db.running(max_retries=1)

    db.fail(claim, result=raised('File "a.py", line 3\nKeyError: 7'), retry_delay_s=delay_s)

    (attempt,) = db.attempts(claim.task_id)
    assert attempt["traceback"] == 'File "a.py", line 3\nKeyError: 7'


@pytest.mark.parametrize(
    ("result", "kept"),
    [
        pytest.param("a\x00b\x00\x00", "a\ufffdb\ufffd\ufffd", id="nul"),
        pytest.param("\\u0000 \\\x00", "\\u0000 \\\ufffd", id="backslashes"),
        pytest.param("é😀", "é😀", id="not ascii"),
        pytest.param("", "", id="empty"),
        pytest.param("x" * 16_000, "x" * 16_000, id="as long as may be"),
    ],
)
def test_a_traceback_is_text_that_can_be_stored(db: Database, result: str, kept: str) -> None:
    claim = db.running()

    db.fail(claim, result=raised(result))

    assert db.attempts(claim.task_id)[0]["traceback"] == kept


def test_a_long_traceback_loses_its_middle(db: Database) -> None:
    claim = db.running()

    db.fail(claim, result=raised("begin" + "x" * 100_000 + "end"))

    kept = db.attempts(claim.task_id)[0]["traceback"]
    assert kept.startswith("beginxxx")
    assert kept.endswith("xxxend")
    assert "\n... 84008 characters left out ...\n" in kept
    assert len(kept) < 16_100


@pytest.mark.parametrize(
    "result",
    [
        '"traceback":',
        '{"err":["traceback",{"traceback":1}]}',
        '{"err":{"exception":{"traceback":null}}}',
    ],
)
def test_a_result_that_is_none_of_ours_has_no_traceback(db: Database, result: str) -> None:
    claim = db.running()

    receipt = db.fail(claim, result=result)

    assert receipt.outcome == "failed"
    assert db.attempts(claim.task_id)[0]["traceback"] is None


@pytest.mark.seed("S27", "S28", "S29", "S44", "S48", "S102")
def test_retry_goes_back_to_pending_and_clears_the_run(db: Database) -> None:
    claim = db.running(max_retries=3, retry_count=1, task_options=retry_options())
    db.execute("update horsies_tasks set finalizing_at = now(), finalizing_by_worker_id = 'x'")
    db.set_now(7)

    receipt = db.fail(claim, retry_delay_s=10.0)

    row = db.task(claim.task_id)
    assert (receipt.outcome, receipt.retry_after_s) == ("retried", 10.0)
    assert (row["status"], row["retry_count"], row["claimed"]) == ("PENDING", 2, False)
    assert row["next_retry_at"] == row["enqueued_at"] == at(17)
    assert row["updated_at"] == at(7)
    cleared = (
        "claimed_at", "claimed_by_worker_id", "claim_expires_at", "started_at", "worker_pid",
        "worker_hostname", "worker_process_name", "finalizing_at", "finalizing_by_worker_id",
        "result", "error_code", "failed_reason", "failed_at",
    )  # fmt: skip
    assert {name: row[name] for name in cleared} == dict.fromkeys(cleared)
    (attempt,) = db.attempts(claim.task_id)
    assert (attempt["attempt"], attempt["will_retry"]) == (2, True)
    assert attempt["error_code"] == "BROKEN"


@pytest.mark.seed("S27", "S56")
@pytest.mark.parametrize(
    ("columns", "delay_s", "outcome"),
    [
        pytest.param({"max_retries": 1}, 10.0, "retried", id="one left"),
        pytest.param({"max_retries": 1, "retry_count": 1}, 10.0, "failed", id="none left"),
        pytest.param({"max_retries": 1}, None, "failed", id="not wanted"),
        pytest.param({"max_retries": 1, "good_until": at(11)}, 10.0, "retried", id="in time"),
        pytest.param({"max_retries": 1, "good_until": at(10)}, 10.0, "failed", id="at the end"),
        pytest.param({"max_retries": 1, "good_until": at(5)}, 10.0, "failed", id="too late"),
    ],
)
def test_retry_needs_retries_and_time(
    db: Database, columns: dict[str, Any], delay_s: float | None, outcome: str
) -> None:
    claim = db.running(**columns)

    receipt = db.fail(claim, retry_delay_s=delay_s)

    row = db.task(claim.task_id)
    assert receipt.outcome == outcome
    if outcome == "failed":
        assert row["retry_count"] == columns.get("retry_count", 0)
        assert (row["status"], row["result"], row["error_code"]) == ("FAILED", FAILURE, "BROKEN")


@pytest.mark.parametrize(
    ("change", "owner"),
    [
        pytest.param({}, "worker-b", id="another owner"),
        pytest.param({"claimed_at": at(1)}, "worker-a", id="claimed again later"),
        pytest.param({"retry_count": 1}, "worker-a", id="another attempt"),
        pytest.param({"status": "PENDING"}, "worker-a", id="requeued"),
        pytest.param({"status": "COMPLETED"}, "worker-a", id="already completed"),
    ],
)
def test_lost_claim_changes_nothing(db: Database, change: dict[str, Any], owner: str) -> None:
    claim = db.running()
    for column, value in change.items():
        db.execute(f"update horsies_tasks set {column} = %s", value)
    before = db.task(claim.task_id)

    receipt = db.fail(claim, owner=owner, retry_delay_s=1.0)

    assert receipt.outcome == "claim_lost"
    assert db.task(claim.task_id) == before
    assert db.attempts(claim.task_id) == []


def test_task_of_a_cancelled_workflow_is_not_retried(db: Database) -> None:
    claim = db.running(max_retries=3, is_workflow_task=True)
    db.execute("insert into horsies_workflows (id, name, status) values ('w', 'w', 'CANCELLED')")
    db.execute(
        "insert into horsies_workflow_tasks (id, workflow_id, task_index, task_name, task_id) "
        "values ('n', 'w', 0, 'job', %s)",
        claim.task_id,
    )

    assert db.fail(claim, retry_delay_s=10.0).outcome == "failed"
