"""Attempts go with their task, however it is deleted (schema.md, 2.2)."""

import threading

import psycopg
import pytest

from support.database import Database, connect
from support.eventually import eventually

ADD = """
    with added as (
        insert into horsies_tasks (id, task_name, queue_name, status, enqueue_sha)
        select 't' || n, 'a', 'default', 'COMPLETED', '' from generate_series(1, %s) n returning id)
    insert into horsies_task_attempts (task_id, attempt, outcome, started_at, finished_at)
    select a.id, n, 'COMPLETED', now(), now() from added a, generate_series(1, 2) n
"""
ORPHANS = """
    select count(*) from horsies_task_attempts a
    where not exists (select from horsies_tasks t where t.id = a.task_id)
"""


def left(db: Database) -> tuple[int, int]:
    """How many attempts are left, and how many of them without a task."""
    return db.value("select count(*) from horsies_task_attempts"), db.value(ORPHANS)


@pytest.mark.parametrize(
    ("statement", "expected"),
    [
        ("delete from horsies_tasks where id = 't1'", 198),
        ("delete from horsies_tasks where id in ('t1', 't2', 't30')", 194),
        ("delete from horsies_tasks", 0),
        ("with gone as (delete from horsies_tasks returning id) select count(*) from gone", 0),
        ("delete from horsies_tasks using horsies_task_attempts a where a.task_id = 't5'", 0),
        ("truncate horsies_tasks cascade", 0),
        ("delete from horsies_tasks where false", 200),
    ],
)
def test_however_a_task_is_deleted_by_hand(db: Database, statement: str, expected: int) -> None:
    db.execute(ADD, 100)

    db.execute(statement)

    assert left(db) == (expected, 0)


def test_by_cascade_from_a_table_of_the_user(db: Database) -> None:
    db.execute(ADD, 5)
    db.execute("create table orders (id int primary key)")
    db.execute("insert into orders values (1), (2)")
    db.execute("alter table horsies_tasks add order_id int references orders on delete cascade")
    db.execute("update horsies_tasks set order_id = case when id < 't3' then 1 else 2 end")

    db.execute("delete from orders where id = 2")

    assert left(db) == (4, 0)


def test_undone_with_its_transaction(db: Database) -> None:
    db.execute(ADD, 5)
    db.execute("savepoint before")

    db.execute("delete from horsies_tasks")
    db.execute("rollback to before")

    assert left(db) == (10, 0)


def test_task_that_gets_another_id_keeps_its_attempts(db: Database) -> None:
    db.execute(ADD, 2)

    db.execute("update horsies_tasks set id = 'other' where id = 't1'")

    assert left(db) == (4, 0)
    assert db.value("select count(*) from horsies_task_attempts where task_id = 'other'") == 2


@pytest.mark.parametrize("isolation", ["read committed", "repeatable read"])
def test_attempt_that_is_being_added_is_not_left_behind(database_url: str, isolation: str) -> None:
    """The attempt and the end of its task are one transaction; the deletion comes in between."""
    watching, ending = connect(database_url), connect(database_url)
    watching.execute(
        "insert into horsies_tasks (id, task_name, queue_name, status, enqueue_sha, started_at,"
        " claimed_at, claimed_by_worker_id, worker_pid)"
        " values ('t1', 'a', 'default', 'RUNNING', '', now(), '2026-01-01', 'w', 1)"
    )
    refused = list[str]()

    def delete() -> None:
        with psycopg.connect(database_url) as connection:
            connection.execute(f"set transaction isolation level {isolation}".encode())
            try:
                connection.execute("delete from horsies_tasks where id = 't1'")
            except psycopg.errors.SerializationFailure as error:
                refused.append(str(error))

    ending.execute("begin")
    ending.execute(
        "select * from horsies_complete_tasks('w', '{t1}', '{2026-01-01}', '{1}', '{\"{}\"}')"
    )
    deleting = threading.Thread(target=delete)
    deleting.start()
    waits = (
        "select count(*) from pg_stat_activity where datname = current_database() "
        "and wait_event_type = 'Lock' and query ~ '^dele'"
    )
    eventually(lambda: watching.value(waits) == 1)
    ending.execute("commit")
    deleting.join(10)

    expected = (0, 0) if isolation == "read committed" else (1, 0)
    assert (left(watching), len(refused)) == (expected, expected[0])
    for database in (watching, ending):
        database.connection.close()


def test_retention_deletes_them_too(db: Database) -> None:
    db.execute(ADD, 100)
    db.execute("update horsies_tasks set completed_at = now() - interval '9 days'")

    db.execute(
        "select * from horsies_sweep('{prune COMPLETED tasks}', array['1 day'::interval], 1000)"
    )

    assert left(db) == (0, 0)


def test_attempts_of_many_tasks_are_found_by_their_index(db: Database) -> None:
    db.execute(ADD, 5000)
    db.execute("analyze horsies_task_attempts")
    seen = "select idx_scan, seq_scan from pg_stat_xact_user_tables where relname = %s"
    before = db.execute(seen, "horsies_task_attempts")[0]

    db.execute("delete from horsies_tasks where id like 't1%%'")

    after = db.execute(seen, "horsies_task_attempts")[0]
    assert after["seq_scan"] == before["seq_scan"]
    assert after["idx_scan"] > before["idx_scan"]
