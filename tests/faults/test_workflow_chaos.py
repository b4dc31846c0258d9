"""Random graphs, ends, lost ends, pauses, resumes and cancels: each ends as the model says."""

import asyncio
import os
import random
from collections.abc import Iterator
from datetime import datetime
from typing import Any

import psycopg
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from horsies import TaskError, TaskResult, from_node
from support.apps import good, make_app, working
from support.database import Database, connect
from support.eventually import eventually_async
from support.faults import ROUNDS
from support.workflow_model import Model, ModelNode
from support.workflow_rows import Flow, recover

pytestmark = [pytest.mark.faults, pytest.mark.slow, pytest.mark.timeout(300)]

EXAMPLES = int(os.environ.get("HORSIES_FAULT_EXAMPLES", "75"))
ENDED = ("COMPLETED", "FAILED", "CANCELLED")


@pytest.fixture
def db(database_url: str) -> Iterator[Database]:
    with psycopg.connect(database_url) as connection:
        yield Database(connection)
        connection.rollback()


@st.composite
def graphs(draw: st.DrawFn) -> list[ModelNode]:
    nodes: list[ModelNode] = []
    for index in range(draw(st.integers(2, 10))):
        found = draw(st.sets(st.integers(0, index - 1), max_size=3)) if index else set[int]()
        dependencies = tuple(sorted(found))
        join = draw(st.sampled_from(["all", "any", "quorum"])) if dependencies else "all"
        nodes.append(
            ModelNode(
                dependencies,
                join,
                draw(st.integers(1, len(dependencies))) if join == "quorum" else None,
                allow_failed_deps=join == "all" and draw(st.booleans()),
            )
        )
    return nodes


class Pair:
    """A workflow in the database and its model; some ends are stored and not followed up."""

    def __init__(self, db: Database, nodes: list[ModelNode], on_error: str) -> None:
        db.connection.rollback()
        db.set_now(0)
        self.db = db
        self.model = Model(nodes, on_error=on_error)
        self.flow = Flow.start(db, *nodes, on_error=on_error)
        self.lost: dict[int, bool] = {}

    def check(self) -> None:
        assert self.flow.status == self.model.status
        assert self.flow.states == self.model.states

    def open(self) -> list[int]:
        states = enumerate(self.model.states)
        return [i for i, state in states if state == "ENQUEUED" and i not in self.lost]

    def end(self, outcomes: dict[int, bool]) -> None:
        self._end_in_model(outcomes)
        self.flow.end(dict(outcomes))

    def lose(self, outcomes: dict[int, bool]) -> None:
        """The tasks' ends are committed; what follows from them is not."""
        self.lost |= outcomes
        nodes = self.flow.nodes
        for index, is_ok in outcomes.items():
            self.db.execute(
                "update horsies_tasks set status = %s where id = %s",
                "COMPLETED" if is_ok else "FAILED",
                nodes[index]["task_id"],
            )
            if is_ok:
                self.db.execute(
                    "update horsies_tasks set result = %s where id = %s",
                    '{"__task_result__":true,"ok":1,"err":null}',
                    nodes[index]["task_id"],
                )

    def resume(self) -> None:
        """What ended unnoticed is taken over first; under 'pause' a failure stops it again."""
        if self.model.status == "PAUSED":
            is_pausing = self.model.on_error == "pause" and not all(self.lost.values())
            for index, is_ok in self.lost.items():
                self.model.end(index, ok=is_ok)
            if not is_pausing:
                self.model.resume()
            self.lost = {}
        self.flow.resume()

    def recover(self) -> None:
        recover(self.db)
        if self.model.status == "RUNNING":
            self._end_in_model(self.lost)
            self.lost = {}

    def _end_in_model(self, outcomes: dict[int, bool]) -> None:
        is_pausing = self.model.on_error == "pause" and not all(outcomes.values())
        if is_pausing and self.model.status == "RUNNING":
            self.model.status = "PAUSED"  # a batch with a failure pauses before anything follows
        for index, is_ok in outcomes.items():
            self.model.end(index, ok=is_ok)


@settings(
    max_examples=EXAMPLES,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(nodes=graphs(), on_error=st.sampled_from(["fail", "pause"]), seed=st.integers(0, 2**32))
def test_every_graph_ends_as_the_model_says_whatever_happens(
    db: Database, nodes: list[ModelNode], on_error: str, seed: int
) -> None:
    chance = random.Random(seed)
    pair = Pair(db, nodes, on_error)

    for _ in range(200):
        pair.check()
        if pair.model.status in ENDED:
            break
        choice = chance.random()
        ready = pair.open()
        chosen = chance.sample(ready, chance.randint(1, len(ready))) if ready else []
        outcomes = {index: chance.random() < 0.7 for index in chosen}
        if choice < 0.1:
            pair.model.pause()
            pair.flow.pause()
        elif choice < 0.3 or (pair.model.status == "PAUSED" and not ready):
            pair.resume()
        elif choice < 0.33 and not pair.lost:
            pair.model.cancel()
            pair.flow.cancel()
        elif choice < 0.55 or not ready:
            pair.recover()
        elif choice < 0.7:
            pair.lose(outcomes)
        else:
            pair.end(outcomes)
    else:
        pytest.fail("the workflow did not end")

    if pair.model.status != "CANCELLED":
        assert recover(db) == 0


async def test_steering_at_random_moments_under_load(
    database_url: str, seeded: random.Random
) -> None:
    app = make_app(database_url)

    @app.task("number")
    async def number(value: int) -> TaskResult[int, TaskError]:
        await asyncio.sleep(0)
        return TaskResult(ok=value)

    @app.task("double")
    async def double(value: TaskResult[int, TaskError]) -> TaskResult[int, TaskError]:
        return TaskResult(ok=2 * value.unwrap())

    def spec() -> Any:
        first = number.node(node_id="first")(value=1)
        middle = [double.node(node_id=f"m{i}")(value=from_node(first)) for i in range(10)]
        last = number.node(node_id="last", waits_for=middle)(value=9)
        return app.workflow("load", [first, *middle, last], output=last, definition_key="load.1")

    watching = connect(database_url)
    open_ones = "select count(*) from horsies_workflows where status in ('RUNNING', 'PAUSED')"

    async with working(app, concurrency=50):
        handles = [good(await spec().start_async()) for _ in range(20 * ROUNDS)]
        answered_at: dict[str, datetime] = {}
        for _ in range(60 * ROUNDS):
            handle = seeded.choice(handles)
            act = seeded.choice(["pause", "pause", "resume", "cancel"])
            good(await getattr(handle, f"{act}_async")())
            if act == "cancel":
                now_at = watching.value("select clock_timestamp()")
                answered_at.setdefault(handle.workflow_id, now_at)

        async def all_ended() -> bool:
            for handle in handles:
                good(await handle.resume_async())
            return bool(watching.value(open_ones) == 0)

        await eventually_async(all_ended, within=60)

    starts = watching.execute(
        "select w.id, max(t.started_at) as started_at from horsies_workflows w "
        "join horsies_workflow_tasks n on n.workflow_id = w.id "
        "join horsies_tasks t on t.id = n.task_id "
        "where w.status = 'CANCELLED' and t.started_at is not null group by w.id"
    )
    statuses = watching.execute("select status, id from horsies_workflows")
    unended = watching.execute("select 1 from horsies_workflow_tasks where status not in "
                               "('COMPLETED', 'FAILED', 'SKIPPED')")  # fmt: skip
    twice = watching.execute(
        "select task_id from horsies_task_attempts group by task_id having count(*) > 1"
    )
    watching.connection.close()
    await app.get_broker().close_async()
    late = [row for row in starts if row["started_at"] > answered_at[row["id"]]]
    assert late == [], "a node started after cancel was answered"
    assert {row["status"] for row in statuses} <= {"COMPLETED", "CANCELLED"}
    assert {row["id"] for row in statuses if row["status"] == "CANCELLED"} <= answered_at.keys()
    assert (unended, twice) == ([], [])
