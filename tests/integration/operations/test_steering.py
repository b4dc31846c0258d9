"""Steering a running system: queues, workers, and tasks one, by list and by filter."""

import asyncio
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from horsies import Horsies, TaskFilter
from horsies.operations.control import Note
from support.apps import bad, good, working
from support.database import Database
from support.eventually import eventually_async

ANN = Note("ann", "too many mails")


def ago(**duration: float) -> datetime:
    return datetime.now(UTC) - timedelta(**duration)


def insert(db: Database, status: str = "PENDING", **columns: Any) -> str:
    return db.insert(status=status, **{"enqueued_at": ago(seconds=9), **columns})


async def test_a_paused_queue_rests_and_goes_on_at_once(app: Horsies) -> None:
    operations = app.operations
    assert good(await operations.pause_queue_async("default", note=ANN))
    async with working(app):
        handle = good(await app.tasks["add"].send_async(1, 2))
        await eventually_async(operations.workers_async)
        waiting = await handle.get_async(timeout_ms=300)
        (queue,) = good(await operations.queues_async())
        good(await operations.resume_queue_async("default"))
        result = await handle.get_async(timeout_ms=2_500)  # before the next poll

    assert waiting.is_err()
    assert (queue.control.paused_by, queue.control.pause_reason) == ("ann", "too many mails")
    assert result.ok_value == 3


async def test_a_drained_worker_ends_by_itself(app: Horsies, db: Database) -> None:
    async with working(app) as worker:
        worker_id = worker.context.identity.worker_id

        async def is_seen() -> bool:
            return bool(good(await app.operations.workers_async()))

        await eventually_async(is_seen)
        drained = good(await app.operations.drain_worker_async(worker_id[:12], note=ANN))
        async with asyncio.timeout(10):
            await worker.stopping.wait()

    assert drained == worker_id
    assert [entry.action for entry in good(app.operations.audit())] == ["drain"]


@pytest.mark.parametrize("nothing", ["", "  "])
async def test_no_name_drains_no_worker(app: Horsies, db: Database, nothing: str) -> None:
    async with working(app):
        refused = await app.operations.drain_worker_async(nothing)

    assert "name a worker" in bad(refused).message
    assert db.value("select count(*) from horsies_worker_drains") == 0


def test_only_a_living_worker_can_be_drained(app: Horsies) -> None:
    assert "'nobody' names no living worker" in bad(app.operations.drain_worker("nobody")).message


def test_a_limit_must_be_positive(app: Horsies) -> None:
    answer = bad(app.operations.limit_queue("mail", 0))

    assert answer.message == "a limit is at least 1, not 0; to stop it, pause it"


@pytest.mark.parametrize("priority", [0, -1, 101, 2**31, 10**30])
def test_a_priority_is_what_a_send_takes(app: Horsies, db: Database, priority: int) -> None:
    task_id = insert(db, "PENDING")

    answer = bad(app.operations.reprioritise(task_id, priority))

    assert answer.message == f"a priority is 1 to 100, not {priority}"
    assert db.task(task_id)["priority"] == 100


def test_a_priority_out_of_range_is_refused_by_the_database_too(app: Horsies, db: Database) -> None:
    good(app.operations.count())
    task_id = insert(db, "PENDING")

    answers = {
        number: db.value(
            "select outcome from horsies_reprioritise_tasks(%s, %s)", [task_id], number
        )
        for number in (0, 101, 100, 1)
    }

    assert answers == {0: "refused", 101: "refused", 100: "reprioritised", 1: "reprioritised"}
    assert db.task(task_id)["priority"] == 1


Act = Callable[..., Any]
ACTIONS: list[tuple[str, str, str, Act]] = [
    ("cancel", "PENDING", "RUNNING", lambda o, t, **k: o.cancel(t, **k)),
    ("requeue", "FAILED", "EXPIRED", lambda o, t, **k: o.requeue(t, **k)),
    ("retry_now", "PENDING", "COMPLETED", lambda o, t, **k: o.retry_now(t, **k)),
    ("reschedule", "PENDING", "CLAIMED", lambda o, t, **k: o.reschedule(t, ago(hours=-1), **k)),
    ("reprioritise", "PENDING", "FAILED", lambda o, t, **k: o.reprioritise(t, 7, **k)),
    ("delete", "COMPLETED", "PENDING", lambda o, t, **k: o.delete(t, **k)),
]


@pytest.mark.parametrize(
    ("name", "status", "other", "act"), ACTIONS, ids=[action[0] for action in ACTIONS]
)
def test_actions_are_for_one_a_list_or_a_filter(
    app: Horsies, db: Database, name: str, status: str, other: str, act: Act
) -> None:
    ids = [insert(db, status, task_name=f"n{n}") for n in range(5)]
    insert(db, other)
    node = insert(db, status, is_workflow_task=True)
    before = {
        task_id: db.execute("select * from horsies_tasks where id = %s", task_id)[0]
        for task_id in [*ids, node]
    }
    everything = TaskFilter()

    dry = [
        good(act(app.operations, target, dry_run=True)).number
        for target in (ids[0], [ids[0], node, "nothing"], everything)
    ]
    untouched = {task_id: db.task(task_id) for task_id in before} == before
    done = [
        good(act(app.operations, ids[0], note=ANN)).number,
        good(act(app.operations, [ids[1], ids[2], node, "nothing"])).number,
        good(act(app.operations, TaskFilter(task_name="n3"))).number,
    ]

    assert (dry, untouched) == ([1, 1, 5], True)
    assert done == [1, 2, 1]
    assert db.task(node) == before[node]
    assert db.task(ids[4]) == before[ids[4]]
    last = good(app.operations.audit())[-1]
    action = {"retry_now": "reschedule"}.get(name, name)
    assert (last.action, last.done_by, last.reason) == (action, "ann", "too many mails")


def test_rescheduled_retries_are_due_at_that_time(app: Horsies, db: Database) -> None:
    later = ago(hours=-2)
    task_id = insert(db, enqueued_at=later, next_retry_at=later)

    good(app.operations.retry_now(task_id))

    task = db.task(task_id)
    assert task["enqueued_at"] == task["next_retry_at"]
    assert task["enqueued_at"] < ago(seconds=-1)


def test_a_filter_of_states_that_forbid_the_action_is_refused(app: Horsies) -> None:
    answer = bad(app.operations.delete(TaskFilter(("RUNNING",))))

    assert answer.message.startswith("delete is for tasks that are CANCELLED, COMPLETED")
    assert answer.message.endswith("not RUNNING")
