"""Who builds the child of a sub-workflow node: one worker that knows its definition."""

from datetime import timedelta

import pytest

from horsies.workflows import statements
from support.database import Database, at
from support.workflow_model import ModelNode as N
from support.workflow_rows import Flow, sub_workflow

LEASE = timedelta(seconds=30)


def claim(db: Database, *keys: str) -> list[str]:
    return [node.node_id for node in db.run(statements.claim_subworkflows(keys, LEASE, 10))]


def orphans(db: Database, *own_keys: str) -> list[str]:
    return [node.node_id for node in db.run(statements.orphan_subworkflows(own_keys, 10))]


def snapshot(db: Database, worker_id: str, age_s: float, keys: list[str] | None) -> None:
    db.insert(
        "horsies_worker_states", worker_id=worker_id, snapshot_at=at(-age_s), hostname="h", pid=1,
        processes=1, queues=["default"], max_claim_batch=0, max_claim_per_worker=0,
        worker_started_at=at(-100), definition_keys=keys,
    )  # fmt: skip


def test_worker_gets_only_nodes_whose_definition_it_knows(db: Database) -> None:
    node = Flow.start(db, N(), rows={0: sub_workflow()}).nodes[0]["id"]

    assert claim(db, "other") == []
    assert claim(db, "other", "child.v1") == [node]


def test_node_is_built_by_one_worker_at_a_time(db: Database) -> None:
    node = Flow.start(db, N(), rows={0: sub_workflow()}).nodes[0]["id"]

    assert claim(db, "child.v1") == [node]
    assert claim(db, "child.v1") == []


def test_node_of_a_dead_builder_is_built_after_its_lease(db: Database) -> None:
    node = Flow.start(db, N(), rows={0: sub_workflow()}).nodes[0]["id"]
    claim(db, "child.v1")

    db.set_now(31)

    assert claim(db, "child.v1") == [node]


def test_arguments_that_cannot_be_read_cost_their_own_node(db: Database) -> None:
    odd = Flow.start(db, N(), rows={0: sub_workflow()})
    db.execute("update horsies_workflow_tasks set args_from = '[1]', task_kwargs = '{'")
    plain = Flow.start(db, N(), rows={0: sub_workflow()})

    claimed = db.run(statements.claim_subworkflows(["child.v1"], LEASE, 10))

    assert {node.node_id: node.kwargs is None for node in claimed} == {
        odd.nodes[0]["id"]: True,
        plain.nodes[0]["id"]: False,
    }


def test_definition_that_nobody_knows_leaves_an_orphan(db: Database) -> None:
    node = Flow.start(db, N(), rows={0: sub_workflow()}).nodes[0]["id"]
    snapshot(db, "other", 5, ["another.v1"])

    assert orphans(db, "mine.v1") == [node]
    assert orphans(db, "child.v1") == []


@pytest.mark.parametrize(
    ("keys", "age_s", "is_orphan"),
    [(["child.v1"], 5, False), (["child.v1"], 3600, True), (None, 5, False)],
    ids=["known", "known-by-a-dead-worker", "of-a-worker-that-does-not-say"],
)
def test_definition_known_to_a_live_worker_is_left_to_it(
    db: Database, keys: list[str] | None, age_s: float, is_orphan: bool
) -> None:
    Flow.start(db, N(), rows={0: sub_workflow()})
    snapshot(db, "other", age_s, keys)

    assert bool(orphans(db, "mine.v1")) == is_orphan


def test_names_of_an_earlier_snapshot_still_count(db: Database) -> None:
    """Workers store the names once an hour."""
    Flow.start(db, N(), rows={0: sub_workflow()})
    snapshot(db, "other", 1800, ["child.v1"])
    snapshot(db, "other", 5, None)

    assert orphans(db, "mine.v1") == []
