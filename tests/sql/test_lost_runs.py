"""horsies_lost_runs and horsies_fail_lost_runs: giving up runs whose executor is gone."""

from datetime import timedelta

import psycopg
import pytest

from horsies.recovery.lost_runs import judge_lost
from horsies.recovery.statements import LostRun, fail_lost_runs, lost_runs
from support.database import Database, at, retry_options

THRESHOLD = timedelta(seconds=100)


def stale(db: Database) -> list[LostRun]:
    return db.run(lost_runs(THRESHOLD))


def give_up(db: Database, runs: list[LostRun]) -> list[str]:
    lost = [judge_lost(run, THRESHOLD) for run in runs]
    return [receipt.outcome for receipt in db.run(fail_lost_runs(THRESHOLD, lost))]


@pytest.mark.seed("S25", "S26", "S51")
def test_run_without_a_sign_of_life_fails_as_crashed(db: Database) -> None:
    claim = db.running()
    db.set_now(101)

    outcomes = give_up(db, stale(db))

    row = db.task(claim.task_id)
    error = db.error_of(claim.task_id)
    assert outcomes == ["failed"]
    assert (row["status"], row["error_code"]) == ("FAILED", "WORKER_CRASHED")
    assert row["failed_at"] == row["updated_at"] == at(101)
    assert row["failed_reason"]
    assert "Worker process crashed" in error["message"]
    assert set(error["data"]) == {
        "stale_threshold_ms", "worker_pid", "worker_hostname", "worker_id", "started_at",
        "detected_at",
    }  # fmt: skip
    assert (error["data"]["worker_id"], error["data"]["worker_pid"]) == ("worker-a", 2001)
    (attempt,) = db.attempts(claim.task_id)
    assert (attempt["outcome"], attempt["will_retry"]) == ("FAILED", False)
    assert (attempt["error_code"], attempt["attempt"]) == ("WORKER_CRASHED", 1)
    assert attempt["failed_reason"]
    assert (attempt["started_at"], attempt["finished_at"]) == (at(0), at(101))
    assert (attempt["worker_id"], attempt["worker_pid"]) == ("worker-a", 2001)


@pytest.mark.seed("S12", "S28", "S51")
def test_lost_run_is_retried_when_its_policy_lists_the_crash(db: Database) -> None:
    claim = db.running(max_retries=2, task_options=retry_options(2, ["WORKER_CRASHED"]))
    db.set_now(101)

    outcomes = give_up(db, stale(db))

    row = db.task(claim.task_id)
    assert outcomes == ["retried"]
    assert (row["status"], row["retry_count"]) == ("PENDING", 1)
    assert row["next_retry_at"] == row["enqueued_at"] == at(111)
    assert (row["started_at"], row["claimed_by_worker_id"], row["worker_pid"]) == (None, None, None)
    assert (row["result"], row["error_code"], row["failed_reason"]) == (None, None, None)
    (attempt,) = db.attempts(claim.task_id)
    assert attempt["will_retry"] is True


@pytest.mark.parametrize(
    ("columns", "codes"),
    [
        ({"max_retries": 2}, ["OTHER"]),
        ({"max_retries": 2, "retry_count": 2}, ["WORKER_CRASHED"]),
        ({"max_retries": 2, "good_until": at(105)}, ["WORKER_CRASHED"]),
    ],
    ids=["not listed", "no retries left", "past the deadline"],
)
def test_lost_run_that_may_not_be_retried_fails(
    db: Database, columns: dict[str, object], codes: list[str]
) -> None:
    claim = db.running(task_options=retry_options(2, codes), **columns)
    db.set_now(101)

    assert give_up(db, stale(db)) == ["failed"]
    assert db.task(claim.task_id)["retry_count"] == columns.get("retry_count", 0)


@pytest.mark.seed("S49")
@pytest.mark.parametrize(
    ("role", "sent_at", "count"),
    [
        pytest.param("runner", 50, 0, id="fresh heartbeat"),
        pytest.param("runner", 0.5, 1, id="old heartbeat"),
        pytest.param("runner", -500, 1, id="heartbeat of an earlier run"),
        pytest.param("claimer", 50, 1, id="heartbeat of the other kind"),
    ],
)
def test_newest_runner_heartbeat_counts(
    db: Database, role: str, sent_at: float, count: int
) -> None:
    claim = db.running()
    db.beat(claim.task_id, role, sent_at)
    db.set_now(101)

    assert len(stale(db)) == count


def test_old_heartbeat_does_not_make_a_fresh_run_stale(db: Database) -> None:
    claim = db.running()
    db.beat(claim.task_id, "runner", -1_000)
    db.set_now(50)

    assert stale(db) == []


@pytest.mark.seed("S106", "S107")
def test_outcome_that_waits_for_its_write_is_a_sign_of_life(db: Database) -> None:
    db.running()
    db.execute("update horsies_tasks set finalizing_at = %s", at(50))
    db.set_now(101)

    assert stale(db) == []


def test_sign_of_life_after_the_look_saves_the_run(db: Database) -> None:
    claim = db.running()
    db.set_now(101)
    found = stale(db)
    db.beat(claim.task_id, "runner", 100)

    assert give_up(db, found) == []
    assert db.status(claim.task_id) == "RUNNING"


def test_outcome_after_the_look_wins(db: Database) -> None:
    claim = db.running()
    db.set_now(101)
    found = stale(db)
    db.complete(claim)

    assert give_up(db, found) == []
    assert db.status(claim.task_id) == "COMPLETED"
    assert len(db.attempts(claim.task_id)) == 1


def test_late_outcome_of_a_given_up_run_is_dropped(db: Database) -> None:
    claim = db.running()
    db.set_now(101)
    give_up(db, stale(db))
    db.set_now(102)

    (refusal,) = db.complete(claim)

    assert refusal.outcome == "claim_lost"
    assert db.status(claim.task_id) == "FAILED"
    assert len(db.attempts(claim.task_id)) == 1


def test_rows_locked_by_others_are_skipped(committing: Database, database_url: str) -> None:
    committing.running(id="a")
    committing.running(id="b")
    committing.set_now(101)
    found = stale(committing)

    with psycopg.connect(database_url) as other:
        other.execute("select from horsies_tasks where id = 'a' for update")
        outcomes = give_up(committing, found)

    assert outcomes == ["failed"]
    assert committing.status("a") == "RUNNING"
