"""horsies_enqueue_tasks: new PENDING rows, their ids, fingerprints and unique keys."""

import threading
from typing import Any

import psycopg
import pytest

from horsies.database.functions import parameters_of
from horsies.database.statement import Receipt
from horsies.sending.rows import NewTask
from horsies.sending.statements import copied_columns, enqueue_tasks
from support.database import Database, at, connect, new_task


def enqueue(db: Database, *rows: NewTask) -> list[Receipt]:
    return db.run(enqueue_tasks(rows))


@pytest.mark.seed("S1", "S43", "S94", "S96", "S97", "S103", "S108", "S109")
def test_new_row_is_pending_with_all_it_was_given(db: Database) -> None:
    task = new_task(
        task_name="mail", queue_name="q", priority=7, args='["é\\"{}"]', kwargs='{"b": 1}',
        sent_at=at(-3), good_until=at(99), max_retries=2, task_options='{"retry_policy": null}',
        enqueue_sha="a" * 64, unique_key="k", tags='["x", "y"]',
    )  # fmt: skip

    (receipt,) = enqueue(db, task)

    row = db.task(task.id)
    assert receipt == Receipt(task.id, "created")
    assert (row["status"], row["claimed"], row["retry_count"]) == ("PENDING", False, 0)
    assert (row["task_name"], row["queue_name"], row["priority"]) == ("mail", "q", 7)
    assert (row["args"], row["kwargs"]) == (task.args, task.kwargs)
    assert (row["sent_at"], row["enqueued_at"], row["good_until"]) == (at(-3), at(0), at(99))
    assert (row["max_retries"], row["task_options"]) == (2, task.task_options)
    assert (row["enqueue_sha"], row["unique_key"]) == ("a" * 64, "k")
    assert (row["unique_stored"], row["tags"]) == (False, ["x", "y"])
    assert row["created_at"] == row["updated_at"] == at(0)
    assert (row["is_workflow_task"], row["rerun_of"]) == (False, None)


@pytest.mark.seed("S44")
@pytest.mark.parametrize(
    ("fields", "due"),
    [({}, at(0)), ({"delay_s": 90.0}, at(90)), ({"enqueued_at": at(500)}, at(500))],
)
def test_row_is_due_now_or_later_by_the_database_clock(
    db: Database, fields: dict[str, Any], due: object
) -> None:
    task = new_task(**fields)

    enqueue(db, task)

    assert db.task(task.id)["enqueued_at"] == due


@pytest.mark.seed("S108")
def test_same_id_with_the_same_fingerprint_changes_nothing(db: Database) -> None:
    task = new_task(enqueue_sha="a" * 64)
    enqueue(db, task)
    before = db.task(task.id)
    db.set_now(5)

    receipts = enqueue(db, task)

    assert receipts == [Receipt(task.id, "exists")]
    assert db.task(task.id) == before


@pytest.mark.seed("S108")
def test_same_id_with_another_fingerprint_is_a_mismatch(db: Database) -> None:
    task = new_task(enqueue_sha="a" * 64)
    enqueue(db, task)

    receipts = enqueue(db, task._replace(enqueue_sha="b" * 64))

    assert receipts == [Receipt(task.id, "mismatch")]
    assert db.task(task.id)["enqueue_sha"] == "a" * 64


def test_receipts_come_in_input_order_and_one_refusal_spoils_nothing(db: Database) -> None:
    old = new_task("m")
    enqueue(db, old)

    receipts = enqueue(db, new_task("z"), old._replace(enqueue_sha="b" * 64), new_task("a"))

    assert receipts == [Receipt("z", "created"), Receipt("m", "mismatch"), Receipt("a", "created")]


def test_held_key_with_the_same_arguments_gives_the_holder(db: Database) -> None:
    holder = new_task(unique_key="k", args="[1]")
    enqueue(db, holder)

    receipts = enqueue(db, new_task(unique_key="k", args="[1]"))

    assert receipts == [Receipt(holder.id, "held")]
    assert db.statuses() == {"PENDING": 1}


def test_held_key_with_other_arguments_is_a_mismatch(db: Database) -> None:
    holder = new_task(unique_key="k", args="[1]")
    enqueue(db, holder)

    assert enqueue(db, new_task(unique_key="k", args="[2]")) == [Receipt(holder.id, "key_mismatch")]


def test_key_belongs_to_the_task_name(db: Database) -> None:
    enqueue(db, new_task(task_name="a", unique_key="k"))

    (receipt,) = enqueue(db, new_task(task_name="b", unique_key="k"))

    assert receipt.outcome == "created"


@pytest.mark.parametrize("status", ["COMPLETED", "FAILED", "CANCELLED", "EXPIRED"])
@pytest.mark.parametrize("is_stored", [False, True])
def test_key_is_held_until_the_end_or_as_long_as_stored(
    db: Database, status: str, is_stored: bool
) -> None:
    db.insert(status=status, unique_key="k", unique_stored=is_stored)

    (receipt,) = enqueue(db, new_task(unique_key="k"))

    assert receipt.outcome == ("held" if is_stored else "created")


def test_one_batch_with_one_key_twice_stores_one_row(db: Database) -> None:
    first, second = new_task(unique_key="k"), new_task(unique_key="k")

    receipts = enqueue(db, first, second)

    assert sorted(receipt.outcome for receipt in receipts) == ["created", "held"]
    assert {receipt.task_id for receipt in receipts} == {
        receipt.task_id for receipt in receipts if receipt.outcome == "created"
    }
    assert db.statuses() == {"PENDING": 1}


def test_second_sender_of_a_key_waits_for_the_first(
    committing: Database, database_url: str
) -> None:
    first, second = new_task(unique_key="k"), new_task(unique_key="k")
    receipts: list[Receipt] = []
    other = connect(database_url)

    with psycopg.connect(database_url) as sender_connection:
        enqueue(Database(sender_connection), first)
        thread = threading.Thread(target=lambda: receipts.extend(enqueue(other, second)))
        thread.start()
        committing.wait_until_blocked(other.connection.info.backend_pid)
    thread.join(timeout=10)
    other.connection.close()

    assert receipts == [Receipt(first.id, "held")]
    assert committing.statuses() == {"PENDING": 1}


def test_key_freed_while_it_is_looked_up_is_taken_by_the_next_try(
    committing: Database, database_url: str
) -> None:
    holder = new_task(unique_key="k")
    enqueue(committing, holder)
    batch = new_task(unique_key="k"), new_task(unique_key="blocked")
    receipts: list[Receipt] = []
    other = connect(database_url)

    with psycopg.connect(database_url) as blocker:
        enqueue(Database(blocker), new_task(unique_key="blocked"))
        thread = threading.Thread(target=lambda: receipts.extend(enqueue(other, *batch)))
        thread.start()
        committing.wait_until_blocked(other.connection.info.backend_pid)
        committing.execute("update horsies_tasks set status = 'CANCELLED' where id = %s", holder.id)
        blocker.rollback()
    thread.join(timeout=10)

    other.connection.close()
    assert [receipt.outcome for receipt in receipts] == ["created", "created"]


@pytest.mark.seed("S132", "S134")
def test_hand_written_row_needs_four_columns(db: Database) -> None:
    db.execute(
        "insert into horsies_tasks (id, task_name, queue_name, enqueue_sha, enqueued_at) "
        "values ('by-hand', 'job', 'default', 'any', %s)",
        at(-1),
    )

    (claim,) = db.claim(1)

    assert (claim.task_id, claim.priority, claim.attempt) == ("by-hand", 100, 1)


def test_the_function_takes_the_fields_of_a_row_in_their_order() -> None:
    assert tuple(parameters_of("enqueue_tasks")) == NewTask._fields
    assert set(copied_columns()) < set(NewTask._fields)
