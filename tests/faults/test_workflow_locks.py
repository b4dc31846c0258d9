"""Two sessions in one workflow: each waits for the root's row, none for the other in a ring."""

import threading
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest

from horsies.database.statement import Statement
from horsies.recovery import statements as recovery
from horsies.worker import statements as worker
from horsies.worker.held_task import Completion, HeldTask
from horsies.workflows import statements
from support.database import OK, Database, at, connect
from support.workflow_model import ModelNode as N
from support.workflow_rows import Flow, stop, sub_workflow

pytestmark = [pytest.mark.faults, pytest.mark.slow, pytest.mark.timeout(60)]


@pytest.fixture
def first(database_url: str) -> Iterator[Database]:
    database = connect(database_url)
    database.set_now(0)
    yield database
    database.connection.close()


@pytest.fixture
def second(database_url: str) -> Iterator[Database]:
    database = connect(database_url)
    database.set_now(0)
    yield database
    database.connection.close()


class Behind(threading.Thread):
    """Statements of a second session in one transaction, which soon wait for the first."""

    def __init__(self, db: Database, *to_run: Statement[Any]) -> None:
        super().__init__()
        self._db, self._to_run = db, to_run
        self.error: Exception | None = None

    def run(self) -> None:
        try:
            with self._db.connection.transaction():
                for statement in self._to_run:
                    self._db.run(statement)
        except Exception as error:
            self.error = error

    def begin(self, watching: Database) -> None:
        self.start()
        watching.wait_until_blocked(self._db.connection.info.backend_pid)

    def end(self) -> None:
        self.join(20)
        assert not self.is_alive()
        assert self.error is None


def completing(held: HeldTask) -> list[Statement[Any]]:
    """What a worker sends to end a node's task."""
    return [
        statements.lock_workflows_of_tasks([held.task_id]),
        worker.complete_tasks("worker-a", [Completion(held, OK)]),
        statements.advance_tasks([held.task_id]),
    ]


def parent_and_child(db: Database) -> tuple[Flow, Flow, HeldTask]:
    parent = Flow.start(db, N(), N((0,)), N(), rows={0: sub_workflow()})
    child = parent.start_child(0, N())
    return parent, child, child.claims(0)


@pytest.mark.parametrize("steer", ["pause", "cancel"])
def test_completion_of_a_child_waits_for_the_steering_of_its_parent(
    first: Database, second: Database, steer: str
) -> None:
    parent, child, held = parent_and_child(first)
    behind = Behind(second, *completing(held))

    with first.connection.transaction():
        getattr(parent, steer)()
        behind.begin(first)
    behind.end()

    assert child.states == ["COMPLETED"]
    assert parent.status == child.status == {"pause": "PAUSED", "cancel": "CANCELLED"}[steer]
    parent.resume()
    assert parent.status == ("RUNNING" if steer == "pause" else "CANCELLED")


@pytest.mark.parametrize("act", ["pause", "cancel"])
def test_steering_of_a_parent_waits_for_the_completion_of_its_child(
    first: Database, second: Database, act: str
) -> None:
    parent, child, held = parent_and_child(first)
    behind = Behind(second, stop(parent.id, act))

    with first.connection.transaction():
        for statement in completing(held):
            first.run(statement)
        behind.begin(first)
    behind.end()

    assert (child.status, parent.states[0]) == ("COMPLETED", "COMPLETED")
    assert parent.status == ("PAUSED" if act == "pause" else "CANCELLED")


def test_sweep_and_pause_of_one_workflow_do_not_deadlock(first: Database, second: Database) -> None:
    overdue = {"good_until": at(10)}
    flow = Flow.start(first, N(), N(), rows={1: overdue})
    flow.claims(0, starts=False)
    second.set_now(3600)
    stale = recovery.requeue_stale_claims(timedelta(minutes=1), [])
    behind = Behind(second, recovery.expire_tasks(), stale)

    with first.connection.transaction():
        first.run(statements.lock_workflows_of_tasks([flow.nodes[0]["task_id"]]))
        behind.begin(first)
        flow.pause()  # wants every task of the workflow
    behind.end()

    assert flow.status == "PAUSED"
    assert flow.states == ["ENQUEUED", "FAILED"]


def test_two_ends_of_one_join_enqueue_its_node_once(first: Database, second: Database) -> None:
    flow = Flow.start(first, N(), N(), N((0, 1)))
    held = [flow.claims(0), flow.claims(1)]
    behind = Behind(second, *completing(held[1]))

    with first.connection.transaction():
        for statement in completing(held[0]):
            first.run(statement)
        behind.begin(first)
    behind.end()

    assert flow.states == ["COMPLETED", "COMPLETED", "ENQUEUED"]
    assert first.value("select count(*) from horsies_tasks") == 3


def refuse_updates(db: Database, table: str, when: str = "true") -> None:
    db.execute(
        "create function refuse() returns trigger language plpgsql as "
        "$$ begin raise 'no luck' using errcode = 'check_violation'; end $$"
    )
    db.execute(
        f"create trigger refuse before update on {table} "
        f"for each row when ({when}) execute function refuse()"
    )


@pytest.mark.parametrize("table", ["horsies_workflow_tasks", "horsies_workflows"])
def test_error_while_advancing_leaves_the_end_of_the_task(first: Database, table: str) -> None:
    flow = Flow.start(first, N(), N((0,)))
    held = flow.claims(0)
    refuse_updates(first, table)

    with first.connection.transaction():
        _, receipts, (why,) = [first.run(statement) for statement in completing(held)]
    first.execute(f"drop trigger refuse on {table}")

    assert receipts == []
    assert "no luck" in why.value
    assert (first.status(held.task_id), flow.states) == ("COMPLETED", ["ENQUEUED", "PENDING"])
    first.run(recovery.recover_workflows(""))
    assert flow.states == ["COMPLETED", "ENQUEUED"]


def test_error_in_one_workflow_leaves_the_others_of_the_batch_advancing(first: Database) -> None:
    broken, sound, cancelled = (Flow.start(first, N(), N((0,))) for _ in range(3))
    batch = [flow.claims(0) for flow in (broken, sound, cancelled)]
    cancelled.cancel()
    refuse_updates(first, "horsies_workflow_tasks", f"old.workflow_id = '{broken.id}'")

    task_ids = [held.task_id for held in batch]
    with first.connection.transaction():
        first.run(statements.lock_workflows_of_tasks(task_ids))
        first.run(worker.complete_tasks("worker-a", [Completion(held, OK) for held in batch]))
        (why,) = first.run(statements.advance_tasks(task_ids))

    assert broken.id in why.value
    assert sound.id not in why.value
    assert broken.states == ["ENQUEUED", "PENDING"]
    assert sound.states == ["COMPLETED", "ENQUEUED"]
    assert cancelled.states == ["COMPLETED", "SKIPPED"]
