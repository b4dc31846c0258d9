"""A worker killed at each commit point in the life of a workflow: it ends all the same."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import pytest

from horsies import SleepNode, SubWorkflowNode, WorkflowHandle
from support.eventually import eventually
from support.faults import IS_SHORT, Scene, scene
from support.proxy import Proxy, Side, proxied

pytestmark = [pytest.mark.faults, pytest.mark.slow, pytest.mark.timeout(120)]

NUMBERS = {1, 2, 11, 12}
STATES = "select status from horsies_workflow_tasks where node_id = %s"


def _start(play: Scene) -> WorkflowHandle[Any]:
    """A task that takes a moment, a nap, a child of two tasks, a last task."""
    task = play.module.coroutine
    one = task.node(node_id="one")(number=1, seconds=0.5)
    nap = SleepNode(duration=timedelta(seconds=1), waits_for=[one], node_id="nap")
    child: Any = SubWorkflowNode(workflow_def=play.module.Pair, waits_for=[nap], node_id="child")
    last = task.node(node_id="last", waits_for=[child])(number=2)
    spec = play.app.workflow(
        "life", [one, nap, child, last], output=last, definition_key="faults.life"
    )
    handle: WorkflowHandle[Any] = spec.start().unwrap()
    return handle


def _at_once(play: Scene) -> bool:
    return True


def _napping(play: Scene) -> bool:
    return bool(play.scalar(STATES, "nap") == "RUNNING")


def _stuck(play: Scene) -> bool:
    play.rows("delete from horsies_tasks where id is not null returning id")
    return True


@dataclass(frozen=True)
class Point:
    """A statement, held from when on; `is_before` tells whether the worker starts after that."""

    statement: str
    when: Callable[[Scene], bool] = _at_once
    is_before: bool = True


POINTS = {
    "claim": Point("horsies_claim_tasks"),
    "completion": Point("horsies_advance_tasks"),
    "wake": Point("horsies_wake_nodes", _napping, is_before=False),
    "claim of a child": Point("horsies_claim_subworkflows", _napping, is_before=False),
    "mark of a node that runs": Point("horsies_mark_running_nodes"),
    "start of a child": Point("horsies_start_workflows"),
    "recovery": Point("horsies_recover_workflows", _stuck),
}
NAMES = ["completion", "start of a child", "recovery"] if IS_SHORT else list(POINTS)


@pytest.mark.parametrize("side", ["asked", "answered"])
@pytest.mark.parametrize("name", NAMES)
def test_worker_killed_at(name: str, side: Side, database_url: str) -> None:
    point = POINTS[name]
    with proxied(database_url) as (proxy, url), scene(url) as play:
        handle = _start(play)
        if not point.is_before:
            victim = play.start_worker("--processes", "1")
        eventually(lambda: point.when(play), within=30)
        hold = proxy.hold(point.statement, side=side)
        if point.is_before:
            victim = play.start_worker("--processes", "1")
        hold.wait()

        play.kill(victim)

        play.start_worker("--processes", "1")
        result = handle.get(60_000)
        assert result.unwrap() == 2
        _assert_explained(play)


@pytest.mark.parametrize("side", ["asked", "answered"])
def test_starter_cut_off_at_its_start_stores_one_workflow(side: Side, database_url: str) -> None:
    with proxied(database_url) as (proxy, url), scene(url) as play:
        play.app.get_broker().database.ensure_schema()
        with _cut_off(proxy, "horsies_start_workflows", side):
            handle = _start(play)

        assert play.scalar("select count(*) from horsies_workflows") == 1
        play.start_worker("--processes", "1")
        assert handle.get(60_000).unwrap() == 2
        _assert_explained(play)


@pytest.mark.parametrize("side", ["asked", "answered"])
@pytest.mark.parametrize("act", ["pause", "resume", "cancel"])
def test_steering_cut_off_in_flight(act: str, side: Side, database_url: str) -> None:
    with proxied(database_url) as (proxy, url), scene(url) as play:
        handle = _start(play)
        if act == "resume":
            assert handle.pause().unwrap()
        statement = "horsies_resume_workflow" if act == "resume" else "horsies_stop_workflow"
        with _cut_off(proxy, statement, side):
            answer = getattr(handle, act)()

        assert answer.is_ok()
        if act == "pause":
            assert handle.resume().unwrap()
        worker = play.start_worker("--processes", "1")
        if act == "cancel":
            play.wait_ready(worker)
            assert str(handle.status().unwrap().value) == "CANCELLED"
            assert play.begun().total() == 0
        else:
            assert handle.get(60_000).unwrap() == 2
            _assert_explained(play)


@contextmanager
def _cut_off(proxy: Proxy, statement: str, side: Side) -> Iterator[None]:
    """Hang up on whoever sends the statement in the block, before it arrives or its answer does."""
    hold = proxy.hold(statement, side=side)

    def hang_up() -> None:
        hold.wait()
        proxy.hang_up()

    cutting = threading.Thread(target=hang_up)
    cutting.start()
    yield
    cutting.join()


def _assert_explained(play: Scene) -> None:
    """Every task ran, and none more often than its attempts and recorded crashes explain."""
    begun = play.begun()
    assert set(begun) == NUMBERS
    rows = play.rows(
        "select (t.kwargs::json ->> 'number')::integer, count(a), "
        "count(a) filter (where a.error_code = 'WORKER_CRASHED') from horsies_tasks t "
        "left join horsies_task_attempts a on a.task_id = t.id group by t.id"
    )
    assert sorted(number for number, _, _ in rows) == sorted(NUMBERS)
    for number, attempts, crashes in rows:
        assert attempts - crashes <= begun[number] <= attempts, (number, attempts, crashes)
    assert play.rows("select distinct status from horsies_workflows") == [("COMPLETED",)]
    assert play.rows("select distinct status from horsies_workflow_tasks") == [("COMPLETED",)]
