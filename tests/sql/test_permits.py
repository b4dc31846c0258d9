"""Permits: what a lost worker took ahead, and what of it may have begun."""

from datetime import timedelta
from typing import Any

import pytest

from horsies.recovery.lost_runs import judge_lost
from horsies.recovery.statements import fail_lost_runs, lost_runs, return_unpermitted_runs
from horsies.worker.claim_request import Granted, LaneRequest, PermitRequest
from horsies.worker.held_task import Completion, HeldTask
from horsies.worker.statements import end_tasks, grant_permit
from support.database import OK, Database, connect

THRESHOLD = timedelta(seconds=100)
SECOND_LANE = 1 << 56


def permit(*permitted: int, number: int = 1, by: str = "finish") -> PermitRequest:
    return PermitRequest(by, number, number - 1, permitted)


def take_ahead(db: Database, count: int, *, free: int, permitted: int) -> list[HeldTask]:
    """Tasks of worker-a: some in free slots, the others numbered from 1 on."""
    for number in range(count):
        db.insert(id=f"t{number}")
    lane = LaneRequest(count, free_slots=free, ahead_from=1)
    rows = db.claim_pass(lanes=[lane], permit=permit(permitted, by="claim"))
    assert [row for row in rows if isinstance(row, Granted)] == [Granted([])]
    return [row for row in rows if isinstance(row, HeldTask)]


def give_up(db: Database) -> dict[str, str]:
    endings = [judge_lost(run, THRESHOLD) for run in db.run(lost_runs(THRESHOLD))]
    return dict(db.run(fail_lost_runs(THRESHOLD, endings)))


def test_claim_numbers_what_it_takes_beyond_the_free_slots(db: Database) -> None:
    taken = take_ahead(db, 4, free=2, permitted=0)

    assert [task.ahead_number for task in taken] == [None, None, 1, 2]
    assert [db.task(task.task_id)["ahead_number"] for task in taken] == [None, None, 1, 2]


def test_lost_run_beyond_its_permit_goes_back_without_an_attempt(db: Database) -> None:
    take_ahead(db, 4, free=1, permitted=1)
    db.set_now(101)

    outcomes = give_up(db)

    assert outcomes == {"t0": "failed", "t1": "failed", "t2": "returned", "t3": "returned"}
    assert [len(db.attempts(f"t{n}")) for n in range(4)] == [1, 1, 0, 0]
    row = db.task("t3")
    assert (row["status"], row["retry_count"], row["started_at"]) == ("PENDING", 0, None)
    assert (row["claimed_by_worker_id"], row["ahead_number"]) == (None, None)


@pytest.mark.parametrize("by", ["claim", "finish"])
def test_newest_permit_of_either_connection_counts(db: Database, by: str) -> None:
    take_ahead(db, 3, free=0, permitted=1)
    db.run(grant_permit("worker-a", permit(2, number=2, by=by)))
    db.set_now(101)

    assert give_up(db) == {"t0": "failed", "t1": "failed", "t2": "returned"}


def test_permit_replaces_the_one_before(db: Database) -> None:
    for number in range(1, 5):
        db.run(grant_permit("worker-a", permit(number, number=number)))

    assert db.execute("select permitted from horsies_worker_permits") == [{"permitted": [4]}]


def test_permit_travels_with_ends(committing: Database) -> None:
    first, second, _ = take_ahead(committing, 3, free=1, permitted=0)
    second.attempt = 2
    ends = [Completion(first, OK), Completion(second, OK)]

    (ended,) = committing.run(end_tasks("worker-a", ends, [], permit(1)))

    assert ended.receipts() == [("t1", "claim_lost", None)]
    assert ended.voided == []
    assert committing.value("select horsies_permitted_numbers('worker-a')") == [1]


def test_without_a_permit_every_run_may_have_begun(db: Database) -> None:
    take_ahead(db, 2, free=0, permitted=0)
    db.execute("delete from horsies_worker_permits")
    db.set_now(101)

    assert give_up(db) == {"t0": "failed", "t1": "failed"}
    assert db.run(return_unpermitted_runs("worker-a"))[0].value == 0


def test_lanes_have_permits_of_their_own(db: Database) -> None:
    take_ahead(db, 2, free=0, permitted=5)
    db.execute("update horsies_tasks set ahead_number = %s where id = 't1'", SECOND_LANE + 3)
    db.run(grant_permit("worker-a", permit(5, SECOND_LANE + 2, number=2)))
    db.set_now(101)

    assert give_up(db) == {"t0": "failed", "t1": "returned"}


def test_worker_that_lives_after_all_learns_what_was_taken_back(db: Database) -> None:
    take_ahead(db, 4, free=1, permitted=1)

    returned = db.run(return_unpermitted_runs("worker-a"))[0].value

    assert returned == 2
    assert db.statuses() == {"PENDING": 2, "RUNNING": 2}
    (granted,) = db.run(grant_permit("worker-a", permit(9, number=2)))
    assert granted.voided == [3]


def test_rows_are_left_while_their_worker_is_granted_more(
    committing: Database, database_url: str
) -> None:
    take_ahead(committing, 2, free=0, permitted=0)
    committing.set_now(101)
    other = connect(database_url)
    with other.connection.transaction():
        other.run(grant_permit("worker-a", permit(1)))
        busy = give_up(committing), committing.run(return_unpermitted_runs("worker-a"))[0].value
    after = give_up(committing)
    other.connection.close()

    assert busy == ({}, 0)
    assert after == {"t0": "failed", "t1": "returned"}


def test_unbegun_run_that_was_to_be_cancelled_is_cancelled(db: Database) -> None:
    take_ahead(db, 1, free=0, permitted=0)
    db.execute("update horsies_tasks set cancel_requested_at = now()")

    db.run(return_unpermitted_runs("worker-a"))

    assert db.statuses() == {"CANCELLED": 1}
    assert db.attempts("t0") == []


@pytest.mark.parametrize("number", [-1, -(1 << 63), (1 << 63) - 1, 5 << 56])
def test_number_written_by_hand_concerns_its_row_alone(db: Database, number: int) -> None:
    take_ahead(db, 3, free=0, permitted=1)
    db.execute("update horsies_tasks set ahead_number = %s where id = 't0'", number)
    db.set_now(101)

    outcomes = give_up(db)

    assert (outcomes["t1"], outcomes["t2"]) == ("returned", "returned")
    assert outcomes["t0"] in {"failed", "returned"}


def test_permits_go_with_the_snapshots_of_their_workers(db: Database) -> None:
    db.run(grant_permit("worker-a", permit(1)))
    db.set_now(101)
    db.run(grant_permit("worker-b", permit(1)))

    db.execute("select horsies_prune_worker_states('1 minute', 10)")

    left: list[dict[str, Any]] = db.execute("select worker_id from horsies_worker_permits")
    assert left == [{"worker_id": "worker-b"}]
