"""What `horsies_record_history` keeps of ended and waiting tasks."""

from datetime import datetime
from typing import Any

import pytest

from horsies.recovery.statements import record_history
from support.database import Database, at, connect


def record(db: Database, seconds: float) -> bool:
    db.set_now(seconds)
    ((is_present,),) = db.run(record_history())
    return bool(is_present)


def ended(db: Database, seconds: float, **columns: Any) -> None:
    """A task that waited for one second and ran for two."""
    instants = {"enqueued_at": at(seconds - 3), "started_at": at(seconds - 2)}
    status = columns.get("status", "COMPLETED")
    end = "completed_at" if status == "COMPLETED" else "failed_at"
    db.insert(**{"status": status, **instants, end: at(seconds), **columns})


def rows(db: Database, step_s: int, queue: str = "default") -> list[dict[str, Any]]:
    return db.execute(
        "select * from horsies_queue_history where step_s = %s and queue_name = %s"
        " order by starts_at",
        step_s,
        queue,
    )


def counts(db: Database, step_s: int) -> list[tuple[datetime, int, int, int]]:
    return [
        (row["starts_at"], row["completed_count"], row["failed_count"], row["expired_count"])
        for row in rows(db, step_s)
    ]


def until_present(db: Database, seconds: float) -> int:
    """Passes until the present is reached."""
    return next(number for number in range(1, 100) if record(db, seconds))


def test_ends_are_counted_by_queue_and_step(db: Database) -> None:
    ended(db, 1)
    ended(db, 2, status="FAILED")
    ended(db, 12, status="EXPIRED")
    ended(db, 13, queue_name="mail")

    until_present(db, 25)

    assert counts(db, 10) == [(at(0), 1, 1, 0), (at(10), 0, 0, 1)]
    assert [row["completed_count"] for row in rows(db, 10, "mail")] == [1]


def test_lengths_of_time_are_counted_in_buckets(db: Database) -> None:
    ended(db, 1)

    until_present(db, 5)

    (row,) = rows(db, 10)
    # One second is 10^(24/8) ms, two seconds are just below 10^(27/8) ms.
    assert [n for n, count in enumerate(row["start_latencies"]) if count] == [24]
    assert [n for n, count in enumerate(row["run_times"]) if count] == [27]


@pytest.mark.parametrize("passes", [1, 3])
def test_longer_steps_are_made_of_shorter_ones(db: Database, passes: int) -> None:
    for second in (1, 31, 61):
        ended(db, second)

    for _ in range(passes):
        until_present(db, 70)

    assert counts(db, 60) == [(at(0), 2, 0, 0), (at(60), 1, 0, 0)]
    assert counts(db, 7200) == [(at(0), 3, 0, 0)]
    assert sum(rows(db, 28800)[0]["run_times"]) == 3


def test_a_later_pass_counts_what_has_joined_a_step(db: Database) -> None:
    ended(db, 1)
    until_present(db, 5)
    ended(db, 4)

    until_present(db, 15)

    assert counts(db, 10) == [(at(0), 2, 0, 0)]
    assert counts(db, 60) == [(at(0), 2, 0, 0)]


def test_what_waits_is_sampled(db: Database) -> None:
    db.insert(enqueued_at=at(-30))
    db.insert(enqueued_at=at(-10))

    until_present(db, 3)

    (row,) = [row for row in rows(db, 10) if row["due_count"]]
    assert (row["starts_at"], row["due_count"], row["oldest_due_s"]) == (at(0), 2, 33.0)
    assert rows(db, 60)[-1]["oldest_due_s"] == 33.0


def test_a_pass_takes_a_minute_at_most_and_goes_on_next_time(db: Database) -> None:
    until_present(db, 0)
    ended(db, 100)

    assert not record(db, 200)
    assert 2 <= until_present(db, 200) <= 4
    assert counts(db, 10) == [(at(100), 1, 0, 0)]


def test_only_an_hour_is_made_up_for(db: Database) -> None:
    until_present(db, 0)
    ended(db, 100)
    ended(db, 5000)

    passes = until_present(db, 100 + 3601 + 1400)

    assert counts(db, 10) == [(at(5000), 1, 0, 0)]
    assert 45 < passes < 70


def test_at_first_only_two_minutes_are_recorded(db: Database) -> None:
    ended(db, -121)
    ended(db, -100)

    assert until_present(db, 0) <= 3
    assert counts(db, 10) == [(at(-100), 1, 0, 0)]


def test_old_steps_are_deleted(db: Database) -> None:
    until_present(db, 0)
    ended(db, 1)
    until_present(db, 10)

    until_present(db, 3 * 3600)

    kept = db.execute(
        "select distinct step_s from horsies_queue_history where starts_at < %s", at(9)
    )
    assert {row["step_s"] for row in kept} >= {60, 240, 1200, 7200, 28800}
    assert 10 not in {row["step_s"] for row in kept}


def test_two_workers_do_not_record_at_once(db: Database, shared_database_url: str) -> None:
    other = connect(shared_database_url)
    other.execute("select pg_advisory_lock(horsies_lock_key('history'))")
    is_present = record(db, 0)
    other.connection.close()

    assert is_present
    assert db.value("select count(*) from horsies_queue_history") == 0
