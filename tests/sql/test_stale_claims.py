"""horsies_requeue_stale_claims: CLAIMED -> PENDING when the claimer shows no sign of life."""

from datetime import datetime, timedelta

import psycopg
import pytest

from horsies.recovery.statements import requeue_stale_claims
from support.database import Database, at


def requeue(db: Database, stale_after: float = 100, gone: tuple[str, ...] = ()) -> int:
    statement = requeue_stale_claims(timedelta(seconds=stale_after), gone)
    return int(db.run(statement)[0].value)


@pytest.mark.seed("S12", "S40", "S41", "S42", "S51")
def test_claim_without_a_sign_of_life_goes_back(db: Database) -> None:
    claim = db.claimed()
    db.set_now(101)

    count = requeue(db)

    row = db.task(claim.task_id)
    assert count == 1
    assert (row["status"], row["claimed"], row["retry_count"]) == ("PENDING", False, 0)
    names = ("claimed_at", "claimed_by_worker_id", "claim_expires_at")
    assert {name: row[name] for name in names} == dict.fromkeys(names)
    assert (row["updated_at"], row["enqueued_at"]) == (at(101), at(-10))
    assert db.attempts(claim.task_id) == []


@pytest.mark.seed("S40", "S49")
@pytest.mark.parametrize(
    ("role", "sent_at", "count"),
    [
        pytest.param("claimer", 50, 0, id="fresh heartbeat"),
        pytest.param("claimer", 0.5, 1, id="old heartbeat"),
        pytest.param("claimer", -500, 1, id="heartbeat of an earlier claim"),
        pytest.param("runner", 50, 1, id="heartbeat of the other kind"),
    ],
)
def test_newest_claimer_heartbeat_counts(
    db: Database, role: str, sent_at: float, count: int
) -> None:
    claim = db.claimed()
    db.beat(claim.task_id, role, sent_at)
    db.set_now(101)

    assert requeue(db) == count


@pytest.mark.parametrize("claimed_at", [None, at(-500)], ids=["never", "long ago"])
def test_claims_written_by_hand_go_back_without_flag_and_lease(
    db: Database, claimed_at: datetime | None
) -> None:
    task_id = db.insert(status="CLAIMED", claimed_at=claimed_at)

    assert requeue(db) == 1
    assert db.status(task_id) == "PENDING"


def test_old_heartbeat_does_not_make_a_fresh_claim_stale(db: Database) -> None:
    claim = db.claimed()
    db.beat(claim.task_id, "claimer", -1_000)
    db.set_now(50)

    assert requeue(db) == 0


def test_claims_of_a_worker_proven_gone_need_no_threshold(db: Database) -> None:
    claim = db.claimed()

    assert requeue(db, gone=("worker-b",)) == 0
    assert requeue(db, gone=("worker-a",)) == 1
    assert db.status(claim.task_id) == "PENDING"


@pytest.mark.seed("S41")
def test_running_task_is_never_requeued(db: Database) -> None:
    claim = db.running()
    db.set_now(1_000_000)

    assert requeue(db, gone=("worker-a",)) == 0
    assert db.status(claim.task_id) == "RUNNING"


def test_rows_locked_by_others_are_skipped(committing: Database, database_url: str) -> None:
    committing.claimed(id="a")
    committing.claimed(id="b")
    committing.set_now(101)

    with psycopg.connect(database_url) as other:
        other.execute("select from horsies_tasks where id = 'a' for update")
        count = requeue(committing)

    assert count == 1
    assert committing.status("a") == "CLAIMED"
