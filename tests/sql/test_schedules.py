"""The functions of schedules: state, slots, and what is done at run time."""

from datetime import datetime
from typing import Any

import psycopg

from horsies.scheduling.statements import (
    DueSchedules,
    SlotRun,
    due_schedules,
    init_schedules,
    lock_schedule,
    pause_schedule,
    pruned_until,
    record_firing,
)
from support.database import NOW, Database, at

FIRST = (at(-1e9), "")
FILL = """
insert into horsies_schedule_state (schedule_name, owner, next_run_at, paused_at)
select 's' || n, case when n % 10 = 0 then 'other' else 'default' end,
    timestamptz '2030-01-01 12:00+00' + (n - 5) * interval '1 minute',
    case when n > 9000 then timestamptz '2030-01-01 12:00+00' end
from generate_series(1, 10000) n
"""


def init(db: Database, *rows: tuple[str, datetime, str], syncs: bool = True) -> dict[str, str]:
    return {r.task_id: r.outcome for r in db.run(init_schedules("default", rows, syncs=syncs))}


def state(db: Database, name: str = "a") -> dict[str, Any]:
    (row,) = db.execute("select * from horsies_schedule_state where schedule_name = %s", name)
    return row


def due(db: Database, owner: str = "default", limit: int = 100) -> DueSchedules:
    (found,) = db.run(due_schedules(owner, FIRST, limit))
    return found


def test_state_is_made_kept_and_renewed(db: Database) -> None:
    assert init(db, ("a", at(60), "x"), ("b", at(60), "x")) == {"a": "new", "b": "new"}
    db.execute("update horsies_schedule_state set run_count = 7")

    assert init(db, ("a", at(90), "x"), ("b", at(90), "y")) == {"a": "kept", "b": "changed"}

    assert [state(db, name)["next_run_at"] for name in "ab"] == [at(60), at(90)]
    assert [state(db, name)["run_count"] for name in "ab"] == [7, 7]


def test_pruning_spares_other_owners_and_what_was_added(db: Database) -> None:
    db.run(init_schedules("other", [("theirs", at(60), "x")], syncs=True))
    init(db, ("old", at(60), "x"), ("added", at(60), "x"))
    db.insert("horsies_schedules", name="added", definition="{}")

    init(db, ("new", at(60), "x"))

    rows = db.execute("select schedule_name as name from horsies_schedule_state order by 1")
    assert [row["name"] for row in rows] == ["added", "new", "theirs"]


def test_name_of_another_owner_is_taken(db: Database) -> None:
    db.run(init_schedules("other", [("a", at(60), "x")], syncs=True))

    assert init(db, ("a", at(90), "y")) == {"a": "taken"}
    assert state(db)["next_run_at"] == at(60)


def test_due_ones_come_by_slot_and_say_when_the_next_is(db: Database) -> None:
    init(db, ("a", at(0), "x"), ("b", at(-5), "x"), ("c", at(30), "x"), ("paused", at(-9), "x"))
    db.run(pause_schedule("default", "paused", None))

    found = due(db)

    assert (found.names, found.last_run_at, found.next_after_s) == (["b", "a"], at(0), 30.0)
    (rest,) = db.run(due_schedules("default", (at(-5), "b"), 100))
    assert rest.names == ["a"]


def test_lock_is_given_to_one_and_only_while_due(committing: Database, database_url: str) -> None:
    init(committing, ("a", at(-5), "x"), ("later", at(5), "x"))

    with psycopg.connect(database_url) as connection:
        second = Database(connection)
        second.set_now(0)
        with committing.connection.transaction():
            (held,) = committing.run(lock_schedule("default", "a"))
            assert (held.next_run_at, held.now_at) == (at(-5), NOW)
            assert second.run(lock_schedule("default", "a")) == []
        assert len(second.run(lock_schedule("default", "a"))) == 1
        assert second.run(lock_schedule("default", "later")) == []
        assert second.run(lock_schedule("other", "a")) == []


def test_firing_is_recorded_with_what_was_sent(db: Database) -> None:
    init(db, ("a", at(-5), "x"))
    db.run(record_firing("a", at(55), [SlotRun(at(-5), "sent", task_id="t-1")]))

    row = state(db)
    assert (row["run_count"], row["last_task_id"], row["last_run_at"]) == (1, "t-1", NOW)
    assert (row["next_run_at"], row["updated_at"]) == (at(55), NOW)


def test_sent_slot_stays_sent_and_a_failed_one_may_be_sent(db: Database) -> None:
    init(db, ("a", at(-5), "x"))
    failed, sent = SlotRun(at(-5), "failed", reason="gone"), SlotRun(at(-5), "sent", task_id="t")

    for run in (failed, sent, failed):
        db.run(record_firing("a", at(-5), [run]))

    (row,) = db.execute("select outcome, task_id from horsies_schedule_runs")
    assert row == {"outcome": "sent", "task_id": "t"}


def test_run_by_hand_keeps_the_next_slot(db: Database) -> None:
    init(db, ("a", at(60), "x"))
    db.run(record_firing("a", None, [SlotRun(at(0), "sent", task_id="t")], keeps_next=True))

    assert (state(db)["next_run_at"], state(db)["run_count"]) == (at(60), 1)


def test_history_is_pruned_by_age(db: Database) -> None:
    for number, created_at in enumerate((at(-7200), at(-60))):
        db.insert(
            "horsies_schedule_runs",
            schedule_name="a",
            slot_at=at(number),
            outcome="sent",
            created_at=created_at,
        )

    assert db.value("select horsies_prune_schedule_runs(interval '1 hour', 100)") == 1
    assert db.value("select count(*) from horsies_schedule_runs") == 1


def test_pruning_notes_the_latest_slot_that_was_sent(db: Database) -> None:
    for name, seconds, outcome in (("a", 1, "sent"), ("a", 2, "sent"), ("a", 3, "failed")):
        db.insert(
            "horsies_schedule_runs",
            schedule_name=name,
            slot_at=at(seconds),
            outcome=outcome,
            created_at=at(-7200 - seconds),
        )

    counts = [
        db.value("select horsies_prune_schedule_runs(interval '1 hour', 2)") for _ in range(3)
    ]

    assert counts == [2, 1, 0]
    assert db.run(pruned_until("a")) == [(at(2),)]
    assert db.run(pruned_until("b")) == [(None,)]


def test_only_a_sync_changes_state_that_is_there(db: Database) -> None:
    init(db, ("a", at(60), "x"), ("b", at(60), "x"))

    assert init(db, ("a", at(90), "y"), ("c", at(90), "y"), syncs=False) == {
        "a": "kept",
        "c": "new",
    }

    rows = db.execute("select schedule_name, next_run_at from horsies_schedule_state order by 1")
    assert [tuple(row.values()) for row in rows] == [("a", at(60)), ("b", at(60)), ("c", at(90))]


def test_schedule_that_had_ended_goes_on_when_its_end_is_put_off(db: Database) -> None:
    init(db, ("a", at(60), "x"))
    db.run(record_firing("a", None, [SlotRun(at(60), "sent", task_id="t")]))
    assert state(db)["next_run_at"] is None

    assert init(db, ("a", at(90), "x")) == {"a": "kept"}

    assert state(db)["next_run_at"] == at(90)


def test_ten_thousand_schedules_cost_no_more_than_the_due_ones(db: Database) -> None:
    db.execute(FILL)
    db.execute("analyze horsies_schedule_state")

    before = read_of(db)
    found = due(db)
    after = read_of(db)

    assert found.names == ["s1", "s2", "s3", "s4", "s5"]
    assert found.next_after_s == 60.0
    assert after["seq_scan"] == before["seq_scan"]
    assert after["by_index"] - before["by_index"] <= 20


def read_of(db: Database) -> dict[str, int]:
    (read,) = db.execute(
        "select coalesce(seq_scan, 0) as seq_scan, coalesce(idx_tup_fetch, 0) as by_index "
        "from pg_stat_xact_user_tables where relname = 'horsies_schedule_state'"
    )
    return read
