"""horsies_beat: heartbeat rows, lease renewal and the mark of waiting outcomes."""

from datetime import timedelta

import pytest

from horsies.worker.identity import WorkerIdentity
from horsies.worker.statements import Beat, beat
from support.database import Database, at

SENDER = WorkerIdentity("worker-a", "host-a", 1000)


def send(
    db: Database, owed: Beat, *, renew_age: float = 180, sender: WorkerIdentity = SENDER
) -> None:
    db.run(beat(sender, timedelta(seconds=60), timedelta(seconds=renew_age), owed))


def heartbeats(db: Database) -> list[dict[str, object]]:
    return db.execute(
        "select task_id, role, sender_id, sent_at, hostname, pid from horsies_heartbeats"
    )


@pytest.mark.seed("S49", "S105", "S124")
def test_claimer_beat_writes_a_row_and_renews_the_lease(db: Database) -> None:
    claim = db.claimed()
    db.set_now(30)

    send(db, Beat([claim.task_id], [], []))

    assert heartbeats(db) == [
        {
            "task_id": claim.task_id, "role": "claimer", "sender_id": "worker-a", "sent_at": at(30),
            "hostname": "host-a", "pid": 1000,
        }
    ]  # fmt: skip
    assert db.task(claim.task_id)["claim_expires_at"] == at(90)
    assert db.task(claim.task_id)["claimed_at"] == at(0)


def test_old_claim_is_not_renewed(db: Database) -> None:
    claim = db.claimed()
    db.set_now(30)

    send(db, Beat([claim.task_id], [], []), renew_age=29)

    assert db.task(claim.task_id)["claim_expires_at"] == at(60)


@pytest.mark.seed("S49", "S50", "S61", "S124")
def test_runner_beat_names_the_executing_process(db: Database) -> None:
    claim = db.running()
    db.set_now(30)

    send(db, Beat([], [(claim.task_id, 2001)], []))

    assert heartbeats(db) == [
        {
            "task_id": claim.task_id, "role": "runner", "sender_id": "worker-a:2001",
            "sent_at": at(30), "hostname": "host-a", "pid": 2001,
        }
    ]  # fmt: skip


@pytest.mark.seed("S106", "S107")
def test_waiting_outcome_is_marked_as_finalizing(db: Database) -> None:
    claim = db.running()
    db.set_now(30)

    send(db, Beat([], [], [claim.task_id]))

    row = db.task(claim.task_id)
    assert (row["finalizing_at"], row["finalizing_by_worker_id"]) == (at(30), "worker-a")
    assert row["status"] == "RUNNING"
    assert heartbeats(db) == []


def test_beat_for_what_the_worker_no_longer_holds_changes_nothing(db: Database) -> None:
    claimed, running = db.claimed(), db.running()
    before = [db.task(claimed.task_id), db.task(running.task_id)]
    owed = Beat([claimed.task_id], [(running.task_id, 1)], [running.task_id])

    send(db, owed, sender=WorkerIdentity("worker-b", "host-b", 1))

    assert heartbeats(db) == []
    assert [db.task(claimed.task_id), db.task(running.task_id)] == before
