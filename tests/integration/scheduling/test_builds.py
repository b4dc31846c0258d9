"""Workflows of schedules are built by user code, which may be slow, fail or never end."""

import asyncio
import itertools
import threading
from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any

import pytest

from horsies import (
    Horsies,
    IntervalSchedule,
    ScheduleConfig,
    TaskError,
    TaskResult,
    TaskSchedule,
    WorkflowDefinition,
    WorkflowSchedule,
)
from horsies.scheduling import builds
from horsies.scheduling.process import fire_until
from horsies.scheduling.scheduler import Scheduler
from support.apps import bad, good
from support.database import Database
from support.eventually import eventually_async

NewApp = Callable[..., Horsies]
HOURLY = IntervalSchedule(hours=1)
KEY = "test_builds.nightly"
OPEN_TRANSACTIONS = (
    "select count(*) from pg_stat_activity where datname = current_database() "
    "and pid <> pg_backend_pid() and xact_start is not null and backend_type = 'client backend'"
)


class Gate:
    """What `build_with` does: how often it was called, whether it waits, what it raises."""

    def __init__(self) -> None:
        self.opened = threading.Event()
        self.opened.set()
        self.entered = threading.Event()
        self.error: Exception | None = None
        self.calls = 0

    def pass_through(self) -> None:
        self.calls += 1
        self.entered.set()
        assert self.opened.wait(30)
        if self.error is not None:
            raise self.error


gate = Gate()


class Nightly(WorkflowDefinition[int]):
    """A workflow whose making the tests steer."""

    name = "nightly"
    definition_key = KEY

    @classmethod
    def build_with(cls, app: Any, n: int = 0) -> Any:
        gate.pass_through()
        node = app.tasks["report"].node(node_id="only")(number=n)
        return app.workflow("nightly", [node], output=node, definition_key=KEY)


@pytest.fixture(autouse=True)
def fresh_gate() -> Iterator[None]:
    gate.__init__()  # type: ignore[misc]  # class bodies cannot be given another one
    yield
    gate.opened.set()


def nightly(name: str = "nightly", **fields: Any) -> WorkflowSchedule:
    return WorkflowSchedule(name=name, definition_key=KEY, pattern=HOURLY, **fields)


def app_with(new_app: NewApp, *schedules: Any, **settings: Any) -> Horsies:
    app = new_app(schedule=ScheduleConfig(schedules=list(schedules), **settings))

    @app.task("report")
    async def report(number: int = 0) -> TaskResult[int, TaskError]:
        return TaskResult(ok=number)

    return app


def make_due(db: Database) -> None:
    db.execute("update horsies_schedule_state set next_run_at = now()")


def workflow_count(db: Database) -> int:
    found: int = db.value("select count(*) from horsies_workflows")
    return found


def last_run(db: Database, name: str = "nightly") -> tuple[str, str | None]:
    (row,) = db.execute(
        "select outcome, reason from horsies_schedule_runs where schedule_name = %s "
        "order by slot_at desc limit 1",
        name,
    )
    return row["outcome"], row["reason"]


async def test_slow_build_holds_neither_a_transaction_nor_others(
    new_app: NewApp, db: Database
) -> None:
    quick = TaskSchedule(name="quick", task_name="report", pattern=HOURLY)
    scheduler = Scheduler(app_with(new_app, nightly(), quick))
    await scheduler.run_once()
    gate.opened.clear()
    make_due(db)

    assert await scheduler.run_once() == 1

    assert gate.entered.is_set()
    assert db.value(OPEN_TRANSACTIONS) == 0
    assert (db.value("select count(*) from horsies_tasks"), workflow_count(db)) == (1, 0)
    gate.opened.set()

    async def is_sent() -> bool:
        return await scheduler.run_once() == 1

    await eventually_async(is_sent)
    assert (gate.calls, workflow_count(db)) == (1, 1)


async def test_failing_build_is_recorded_and_tried_again_more_and_more_rarely(
    new_app: NewApp, db: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = itertools.count(1000.0)  # each look at the clock is a second later
    monkeypatch.setattr(builds, "monotonic", lambda: next(now))
    scheduler = Scheduler(app_with(new_app, nightly()))
    await scheduler.run_once()
    gate.error = RuntimeError("no such customer")
    make_due(db)

    for _ in range(60):
        assert await scheduler.run_once() == 0

    assert last_run(db) == ("failed", "RuntimeError: no such customer")
    assert 3 <= gate.calls <= 8
    assert db.value("select run_count from horsies_schedule_state") == 0
    gate.error = None

    async def is_sent() -> bool:
        return await scheduler.run_once() == 1

    await eventually_async(is_sent)
    assert last_run(db) == ("sent", None)
    assert workflow_count(db) == 1


async def test_build_that_takes_too_long_is_recorded_and_used_in_the_end(
    new_app: NewApp, db: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(builds, "LIMIT_S", 0.0)
    scheduler = Scheduler(app_with(new_app, nightly()))
    await scheduler.run_once()
    gate.opened.clear()
    make_due(db)

    assert [await scheduler.run_once() for _ in range(3)] == [0, 0, 0]

    assert last_run(db) == ("failed", "build_with has not ended after 0 s")
    gate.opened.set()

    async def is_sent() -> bool:
        return await scheduler.run_once() == 1

    await eventually_async(is_sent)
    assert (gate.calls, last_run(db)) == (1, ("sent", None))


async def test_schedulers_that_build_at_once_start_one_workflow(
    new_app: NewApp, db: Database
) -> None:
    schedulers = [Scheduler(app_with(new_app, nightly())) for _ in range(3)]
    await schedulers[0].run_once()

    for number in range(1, 6):
        gate.opened.clear()
        make_due(db)
        sent = 0
        for scheduler in schedulers:
            sent += await scheduler.run_once()
        gate.opened.set()
        while not sent:
            async with asyncio.TaskGroup() as group:
                passes = [group.create_task(one.run_once()) for one in schedulers]
            sent = sum(one.result() for one in passes)
        assert (sent, workflow_count(db)) == (1, number)


async def test_scheduler_wakes_when_a_slow_build_ends(new_app: NewApp, db: Database) -> None:
    app = app_with(new_app, nightly(), check_interval_seconds=60)
    scheduler = Scheduler(app)
    await scheduler.run_once()
    gate.opened.clear()
    make_due(db)
    stopping, woken = asyncio.Event(), asyncio.Event()

    async def is_sent() -> bool:
        if gate.entered.is_set():
            gate.opened.set()
        return workflow_count(db) == 1

    async with asyncio.TaskGroup() as group:
        group.create_task(fire_until(stopping, woken, scheduler, app.get_broker().database))
        await eventually_async(is_sent)
        stopping.set()
        woken.set()


async def test_change_during_a_build_builds_anew(new_app: NewApp, db: Database) -> None:
    app = app_with(new_app)
    good(await app.schedules.add_async(nightly("added", kwargs={"n": 1})))
    scheduler = Scheduler(app)
    await scheduler.run_once()
    gate.opened.clear()
    make_due(db)
    assert await scheduler.run_once() == 0

    good(await app.schedules.change_async(nightly("added", kwargs={"n": 2})))
    gate.opened.set()

    async def is_sent() -> bool:
        return await scheduler.run_once() == 1

    await eventually_async(is_sent)
    assert gate.calls == 2
    assert db.value("select task_kwargs from horsies_workflow_tasks") == '{"number":2}'


async def test_builds_that_never_end_leave_a_reason_at_those_they_hold_up(
    new_app: NewApp, db: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(builds, "LIMIT_S", 0.0)
    scheduler = Scheduler(app_with(new_app, *(nightly(f"n{number:02}") for number in range(17))))
    await scheduler.run_once()
    gate.opened.clear()
    make_due(db)

    for _ in range(2):
        await scheduler.run_once()

    assert gate.calls == 16
    assert last_run(db, "n16") == ("failed", "16 other builds have not ended")


async def test_by_hand_builds_once_outside_the_transaction(new_app: NewApp, db: Database) -> None:
    app = app_with(new_app, nightly())
    now = db.value("select date_trunc('hour', now())")
    gate.opened.clear()

    async with asyncio.TaskGroup() as group:
        span = (now - timedelta(hours=5), now)
        filling = group.create_task(app.schedules.backfill_async("nightly", *span, preview=False))
        await asyncio.to_thread(gate.entered.wait, 10)
        assert db.value(OPEN_TRANSACTIONS) == 0
        gate.opened.set()

    assert len(good(filling.result()).slots) == 5
    assert (gate.calls, workflow_count(db)) == (1, 5)
    good(app.schedules.run_now("nightly"))
    gate.error = RuntimeError("no such customer")
    assert "no such customer" in bad(app.schedules.run_now("nightly")).message
