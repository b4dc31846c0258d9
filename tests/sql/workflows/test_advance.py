"""Advancing: the SQL functions against a pure model, over random graphs and random ends."""

import random

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from horsies.workflows import statements
from support.database import FAILURE, OK, Database
from support.workflow_model import Model, ModelNode
from support.workflow_rows import end_tasks, stop, stored

QUICK = settings(
    max_examples=150,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)


@st.composite
def graphs(draw: st.DrawFn) -> list[ModelNode]:
    """A DAG in topological order, with joins of every kind."""
    nodes: list[ModelNode] = []
    for index in range(draw(st.integers(1, 12))):
        dependencies = tuple(
            sorted(draw(st.sets(st.integers(0, index - 1), max_size=4))) if index else ()
        )
        join = draw(st.sampled_from(["all", "any", "quorum"])) if dependencies else "all"
        ctx_from = tuple(d for d in dependencies if draw(st.booleans()))
        nodes.append(
            ModelNode(
                dependencies=dependencies,
                join=join,
                min_success=draw(st.integers(1, len(dependencies))) if join == "quorum" else None,
                allow_failed_deps=join == "all" and draw(st.booleans()),
                ctx_from=ctx_from,
            )
        )
    return nodes


def states(db: Database, workflow_id: str) -> list[str]:
    rows = db.execute(
        "select status from horsies_workflow_tasks where workflow_id = %s order by task_index",
        workflow_id,
    )
    return [row["status"] for row in rows]


def status(db: Database, workflow_id: str) -> str:
    return str(db.value("select status from horsies_workflows where id = %s", workflow_id))


@QUICK
@given(data=st.data())
def test_every_graph_goes_as_the_model_says(db: Database, data: st.DataObject) -> None:
    nodes = data.draw(graphs())
    on_error = data.draw(st.sampled_from(["fail", "pause"]))
    cases = data.draw(
        st.none()
        | st.lists(
            st.lists(st.integers(0, len(nodes) - 1), min_size=1, max_size=3), min_size=1, max_size=2
        )
    )
    policy = None if cases is None else {"cases": [{"required_indices": case} for case in cases]}
    chance = random.Random(data.draw(st.integers(0, 2**32)))
    model = Model(nodes, on_error=on_error, cases=cases)
    rows = stored(nodes, on_error=on_error, success_policy=policy)
    workflow_id = rows.workflow.id
    ids = [node.id for node in rows.nodes]
    assert [r.outcome for r in db.run(statements.start_workflows([rows]))] == ["created"]

    for _ in range(100):
        assert states(db, workflow_id) == model.states
        assert status(db, workflow_id) == model.status
        if model.status in ("COMPLETED", "FAILED"):
            break
        open_indices = [i for i, state in enumerate(model.states) if state == "ENQUEUED"]
        choice = chance.random()
        if model.status == "PAUSED" and (choice < 0.5 or not open_indices):
            model.resume()
            assert db.run(statements.resume_workflow(workflow_id))[0].value is True
        elif choice < 0.1:
            model.pause()
            db.run(stop(workflow_id, "pause"))
        else:
            chosen = chance.sample(open_indices, chance.randint(1, len(open_indices)))
            outcomes = {index: chance.random() < 0.7 for index in chosen}
            is_pausing = on_error == "pause" and not all(outcomes.values())
            if is_pausing and model.status == "RUNNING":
                model.status = "PAUSED"  # a batch with a failure pauses before anything follows
            for index, ok in outcomes.items():
                model.end(index, ok=ok)
            end_tasks(db, {ids[index]: OK if ok else FAILURE for index, ok in outcomes.items()})
    else:
        pytest.fail("the workflow did not end")
