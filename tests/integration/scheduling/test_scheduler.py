"""The scheduler on a real database: what is due is sent once, whatever happens around it."""

import asyncio
from collections.abc import Callable
from datetime import UTC, datetime, time, timedelta
from functools import partial
from typing import Any

import psycopg
import pytest

from horsies import (
    CronSchedule,
    CustomQueueConfig,
    DailySchedule,
    Horsies,
    IntervalSchedule,
    Overlap,
    PostgresConfig,
    QueueMode,
    RetryPolicy,
    ScheduleConfig,
    TaskError,
    TaskResult,
    TaskSchedule,
    WorkflowDefinition,
    WorkflowSchedule,
)
from horsies.scheduling.process import fire_until
from horsies.scheduling.scheduler import Scheduler
from horsies.scheduling.slots import jitter_s, slot_id
from support.apps import good
from support.database import Database
from support.eventually import eventually_async

NewApp = Callable[..., Horsies]
MINUTE = IntervalSchedule(minutes=1)


def app_with(new_app: NewApp, *schedules: Any, **settings: Any) -> Horsies:
    app = new_app(schedule=ScheduleConfig(schedules=list(schedules), **settings))

    @app.task("report")
    async def report(number: int = 0) -> TaskResult[int, TaskError]:
        return TaskResult(ok=number)

    return app


def schedule(name: str = "minutely", **fields: Any) -> TaskSchedule:
    return TaskSchedule(**{"name": name, "task_name": "report", "pattern": MINUTE, **fields})


def make_due(db: Database, seconds_ago: float = 0.0, name: str = "minutely") -> datetime:
    """Put a schedule's next slot into the past; the slot."""
    slot: datetime = db.value(
        "update horsies_schedule_state set next_run_at = now() - %s * interval '1 second' "
        "where schedule_name = %s returning next_run_at",
        seconds_ago,
        name,
    )
    return slot


def set_clock(db: Database, clock: str) -> None:
    """Stop the clock that decides, for all sessions, at this time of a day."""
    db.execute(
        "create or replace function horsies_now() returns timestamptz language sql stable as "
        f"$$select timestamptz '2030-01-01 {clock}+00'$$"
    )


def state(db: Database, name: str = "minutely") -> dict[str, Any]:
    (row,) = db.execute("select * from horsies_schedule_state where schedule_name = %s", name)
    return row


def runs(db: Database, name: str = "minutely") -> list[tuple[str, str | None]]:
    rows = db.execute(
        "select outcome, task_id from horsies_schedule_runs where schedule_name = %s "
        "order by slot_at",
        name,
    )
    return [(row["outcome"], row["task_id"]) for row in rows]


async def test_new_schedule_waits_for_its_first_slot(new_app: NewApp, db: Database) -> None:
    app = app_with(new_app, schedule())

    sent = await Scheduler(app).run_once()

    assert sent == 0
    assert state(db)["next_run_at"] > datetime.now(UTC)
    assert (state(db)["run_count"], state(db)["last_task_id"]) == (0, None)


async def test_due_slot_is_sent_once_with_its_own_id(new_app: NewApp, db: Database) -> None:
    app = app_with(new_app, schedule(kwargs={"number": 7}))
    scheduler = Scheduler(app)
    await scheduler.run_once()
    slot = make_due(db)

    assert [await scheduler.run_once(), await scheduler.run_once()] == [1, 0]

    task = db.task(slot_id("minutely", slot))
    assert (task["kwargs"], task["sent_at"]) == ('{"number":7}', slot)
    assert (state(db)["run_count"], state(db)["last_task_id"]) == (1, task["id"])
    assert state(db)["last_run_at"] >= slot
    assert runs(db) == [("sent", task["id"])]


async def test_slot_that_another_transaction_holds_up_keeps_no_other_waiting(
    new_app: NewApp, db: Database, database_url: str
) -> None:
    broker = PostgresConfig(database_url=database_url, pool_timeout=1)  # gives a lock up in 1 s
    app = app_with(partial(new_app, broker=broker), schedule("first"), schedule("second"))
    scheduler = Scheduler(app)
    await scheduler.run_once()
    slot = make_due(db, 2, "first")
    make_due(db, 1, "second")
    with psycopg.connect(database_url) as other:
        Database(other).insert(id=slot_id("first", slot))

        assert await scheduler.run_once() == 1
        assert [len(runs(db, name)) for name in ("first", "second")] == [0, 1]

        other.rollback()
        assert await scheduler.run_once() == 1
    assert runs(db, "first") == [("sent", slot_id("first", slot))]


@pytest.mark.parametrize(
    ("catches_up", "limit", "sent", "following"),
    [
        (False, 100, [1], datetime(2030, 1, 1, 12, 40, 30, tzinfo=UTC)),
        (True, 100, [10], datetime(2030, 1, 1, 12, 40, tzinfo=UTC)),
        (True, 4, [4, 4, 2], datetime(2030, 1, 1, 12, 40, tzinfo=UTC)),
    ],
    ids=["late once", "all missed", "bounded per tick"],
)
async def test_three_hours_down(
    new_app: NewApp,
    db: Database,
    catches_up: bool,
    limit: int,
    sent: list[int],
    following: datetime,
) -> None:
    fields = {"catch_up_missed": catches_up, "max_catch_up_runs": limit}
    every = schedule(pattern=IntervalSchedule(minutes=20), **fields)
    set_clock(db, "09:00:00")
    await Scheduler(app_with(new_app, every)).run_once()  # next at 09:20, but it goes down
    set_clock(db, "12:20:30")
    scheduler = Scheduler(app_with(new_app, every))

    fired = [await scheduler.run_once() for _ in sent]

    assert (fired, await scheduler.run_once()) == (sent, 0)
    assert state(db)["next_run_at"] == following
    slots = [row["sent_at"] for row in db.execute("select * from horsies_tasks order by sent_at")]
    first = datetime(2030, 1, 1, 9, 20, tzinfo=UTC)
    assert slots == [first + number * timedelta(minutes=20) for number in range(sum(sent))]
    reasons = [outcome for outcome, _ in runs(db) if outcome != "sent"]
    assert reasons == ([] if catches_up else ["missed"])


async def test_later_slots_are_created_later(new_app: NewApp, db: Database) -> None:
    scheduler = Scheduler(app_with(new_app, schedule(catch_up_missed=True, max_catch_up_runs=2)))
    await scheduler.run_once()
    make_due(db, seconds_ago=4 * 60 + 30)

    while await scheduler.run_once():
        pass

    rows = db.execute("select created_at from horsies_tasks order by sent_at")
    created = [row["created_at"] for row in rows]
    assert len(created) == 5
    assert created == sorted(set(created))


async def test_slot_that_was_sent_before_a_crash_is_not_sent_again(
    new_app: NewApp, db: Database
) -> None:
    app = app_with(new_app, schedule())
    scheduler = Scheduler(app)
    await scheduler.run_once()
    slot = make_due(db)
    await scheduler.run_once()
    db.execute("update horsies_schedule_state set next_run_at = %s", slot)

    await scheduler.run_once()

    assert db.value("select count(*) from horsies_tasks") == 1


async def test_many_schedulers_send_each_slot_once(new_app: NewApp, db: Database) -> None:
    names = [f"s{number}" for number in range(40)]
    apps = [app_with(new_app, *map(schedule, names)) for _ in range(3)]
    schedulers = [Scheduler(app) for app in apps]
    await schedulers[0].run_once()

    for _ in range(5):
        db.execute("update horsies_schedule_state set next_run_at = now()")
        async with asyncio.TaskGroup() as group:
            for scheduler in schedulers:
                group.create_task(scheduler.run_once())

    assert db.value("select count(*) from horsies_tasks") == 200
    assert db.value("select sum(run_count) from horsies_schedule_state") == 200


async def test_changed_pattern_starts_anew_and_keeps_its_count(
    new_app: NewApp, db: Database, caplog: pytest.LogCaptureFixture
) -> None:
    scheduler = Scheduler(app_with(new_app, schedule()))
    await scheduler.run_once()
    make_due(db)
    await scheduler.run_once()
    make_due(db, seconds_ago=600)

    hourly = CronSchedule(expression="0 * * * *")
    sent = await Scheduler(app_with(new_app, schedule(pattern=hourly))).run_once()

    assert sent == 0
    assert state(db)["next_run_at"].minute == 0
    assert state(db)["run_count"] == 1
    assert "minutely has changed" in caplog.text


async def test_deploy_prunes_only_its_own(new_app: NewApp, db: Database) -> None:
    await Scheduler(app_with(new_app, schedule("a"), schedule("b"), owner="shop")).run_once()
    await Scheduler(app_with(new_app, schedule("c"), owner="mail")).run_once()

    await Scheduler(app_with(new_app, schedule("b"), owner="shop")).run_once()

    rows = db.execute("select schedule_name from horsies_schedule_state order by 1")
    assert [row["schedule_name"] for row in rows] == ["b", "c"]


async def test_deleted_state_is_made_anew_without_firing(new_app: NewApp, db: Database) -> None:
    scheduler = Scheduler(app_with(new_app, schedule()))
    await scheduler.run_once()
    db.execute("delete from horsies_schedule_state")
    scheduler.look_for_missing()

    assert await scheduler.run_once() == 0
    assert state(db)["next_run_at"] > datetime.now(UTC)


async def test_deletion_that_was_not_told_is_found_by_looks_at_some_at_a_time(
    new_app: NewApp, db: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    scheduler = Scheduler(app_with(new_app, *(schedule(f"s{n:03}") for n in range(250))))
    await scheduler.run_once()
    monkeypatch.setattr("horsies.scheduling.scheduler._POLL_S", 0.0)
    scheduler._look_for_missing_at = 0.0
    db.execute("delete from horsies_schedule_state where schedule_name = 's249'")

    passes = 0
    while db.value("select count(*) from horsies_schedule_state") < 250:
        assert await scheduler.run_once() == 0
        passes += 1

    assert passes == 3


async def test_start_that_is_moved_earlier_counts_before_the_first_run(
    new_app: NewApp, db: Database
) -> None:
    later, sooner = (datetime.now(UTC) + timedelta(days=days) for days in (20, 3))
    pattern = DailySchedule(time=time(12))
    await Scheduler(app_with(new_app, schedule(pattern=pattern, start_at=later))).run_once()

    await Scheduler(app_with(new_app, schedule(pattern=pattern, start_at=sooner))).run_once()

    assert sooner <= state(db)["next_run_at"] < sooner + timedelta(days=1)


async def test_overlap_is_skipped_and_said(new_app: NewApp, db: Database) -> None:
    scheduler = Scheduler(app_with(new_app, schedule(overlap=Overlap.SKIP)))
    await scheduler.run_once()
    make_due(db, seconds_ago=2)
    await scheduler.run_once()
    make_due(db, seconds_ago=1)
    await scheduler.run_once()

    assert [outcome for outcome, _ in runs(db)] == ["sent", "skipped"]
    db.execute("update horsies_tasks set status = 'COMPLETED'")
    make_due(db)
    assert await scheduler.run_once() == 1


@pytest.mark.parametrize("overlap", [Overlap.SKIP, Overlap.QUEUE])
async def test_slots_that_are_caught_up_do_not_overlap_either(
    new_app: NewApp, db: Database, overlap: Overlap
) -> None:
    scheduler = Scheduler(app_with(new_app, schedule(overlap=overlap, catch_up_missed=True)))
    await scheduler.run_once()
    make_due(db, seconds_ago=150)

    assert await scheduler.run_once() == 1

    assert [outcome for outcome, _ in runs(db)] == ["sent", "skipped", "skipped"]


async def test_queue_that_cannot_be_is_the_reason_in_the_history(
    new_app: NewApp, db: Database
) -> None:
    scheduler = Scheduler(app_with(new_app, schedule(queue_name="gone")))
    await scheduler.run_once()
    make_due(db)

    assert await scheduler.run_once() == 0

    reason: str = db.value("select reason from horsies_schedule_runs where outcome = 'failed'")
    assert "queue_name" in reason
    assert "AttributeError" not in reason


async def test_queued_overlap_lets_one_wait(new_app: NewApp, db: Database) -> None:
    scheduler = Scheduler(app_with(new_app, schedule(overlap=Overlap.QUEUE)))
    await scheduler.run_once()
    for seconds_ago, status in ((4, "RUNNING"), (3, "PENDING"), (2, "PENDING")):
        make_due(db, seconds_ago=seconds_ago)
        await scheduler.run_once()
        db.execute("update horsies_tasks set status = %s", status)

    # The first runs, so the second waits; the third finds it waiting.
    assert [outcome for outcome, _ in runs(db)] == ["sent", "sent", "skipped"]


async def test_task_goes_to_its_queue_with_its_own_options(new_app: NewApp, db: Database) -> None:
    queues = [CustomQueueConfig(name=name, priority=n) for n, name in enumerate(("low", "high"), 1)]
    named = schedule("named", queue_name="high", args=(7,))
    config = ScheduleConfig(schedules=[schedule(), named])
    app = new_app(schedule=config, queue_mode=QueueMode.CUSTOM, custom_queues=queues)
    policy = RetryPolicy.fixed([1, 2], auto_retry_for=["BROKEN"])

    @app.task("report", queue_name="low", retry_policy=policy, timeout_ms=5_000)
    async def report(number: int = 0) -> TaskResult[int, TaskError]:
        return TaskResult(ok=number)

    scheduler = Scheduler(app)
    await scheduler.run_once()
    db.execute("update horsies_schedule_state set next_run_at = now()")
    assert await scheduler.run_once() == 2

    rows = db.execute("select * from horsies_tasks order by queue_name")
    found = [(row["queue_name"], row["priority"], row["max_retries"]) for row in rows]
    assert found == [("high", 2, 2), ("low", 1, 2)]
    assert (rows[0]["args"], rows[0]["good_until"]) == ("[7]", None)
    assert '"timeout_ms":5000' in rows[0]["task_options"].replace(" ", "")


async def test_jitter_delays_the_run_and_not_the_slot(new_app: NewApp, db: Database) -> None:
    scheduler = Scheduler(app_with(new_app, schedule(jitter_seconds=3_600)))
    await scheduler.run_once()
    slot = make_due(db)
    await scheduler.run_once()

    task = db.task(slot_id("minutely", slot))
    assert task["sent_at"] == slot
    assert slot < task["enqueued_at"] < slot + timedelta(seconds=3_660)
    assert jitter_s("minutely", slot, 3_600) == jitter_s("minutely", slot, 3_600) <= 3_600


async def test_start_that_is_put_off_sends_nothing_before(new_app: NewApp, db: Database) -> None:
    await Scheduler(app_with(new_app, schedule())).run_once()
    start = datetime.now(UTC) + timedelta(hours=2)
    scheduler = Scheduler(app_with(new_app, schedule(start_at=start)))
    make_due(db)

    assert await scheduler.run_once() == 0
    assert state(db)["next_run_at"] >= start


async def test_disabled_schedule_has_no_state(new_app: NewApp, db: Database) -> None:
    await Scheduler(app_with(new_app, schedule("off", enabled=False), schedule())).run_once()

    rows = db.execute("select schedule_name from horsies_schedule_state")
    assert [row["schedule_name"] for row in rows] == ["minutely"]


async def test_schedule_that_cannot_be_initialised_is_logged_and_the_others_go_on(
    new_app: NewApp, db: Database, caplog: pytest.LogCaptureFixture
) -> None:
    broken = schedule("broken", timezone="Mars/Olympus", pattern=CronSchedule(expression="@daily"))
    scheduler = Scheduler(app_with(new_app, broken, schedule()))
    await scheduler.run_once()
    make_due(db)

    assert await scheduler.run_once() == 1
    assert state(db, "broken")["next_run_at"] is None
    assert "unknown timezone" in caplog.text


DEEP = "[" * 3_000 + "]" * 3_000
ODD_SCHEDULES = {
    "a next run that never comes": {"next_run_at": "infinity"},
    "a next run before time began": {"next_run_at": "-infinity"},
    "a next run before Christ": {"next_run_at": "4000-01-01 00:00:00 BC"},
    "a next run in the year 200000": {"next_run_at": "200000-01-01"},
    "a definition without end": {"definition": DEEP},
    "a definition without end inside": {"definition": f'{{"name": "odd", "kwargs": {DEEP}}}'},
    "a definition that is a number": {"definition": "7"},
    "a definition of another one": {
        "definition": '{"name": "minutely", "task_name": "report", '
        '"pattern": {"type": "interval", "minutes": 1}}'
    },
}


@pytest.mark.parametrize("name", ODD_SCHEDULES)
async def test_schedule_that_cannot_be_read_is_set_aside_and_the_others_go_on(
    new_app: NewApp, db: Database, name: str
) -> None:
    app = app_with(new_app, schedule())
    scheduler = Scheduler(app)
    await scheduler.run_once()
    columns = {"next_run_at": "2020-01-01", "definition": "{}"} | ODD_SCHEDULES[name]
    db.insert(
        "horsies_schedule_state", schedule_name="odd", run_count=1,
        next_run_at=columns["next_run_at"],
    )  # fmt: skip
    db.insert("horsies_schedules", name="odd", definition=columns["definition"])
    make_due(db)

    sent = [await scheduler.run_once() for _ in range(2)]

    infos = {info.name: info for info in good(await app.schedules.list_async())}
    assert sent == [1, 0]
    assert scheduler.interval_s > 0
    assert infos["odd"].problem
    assert infos["minutely"].problem is None


@pytest.mark.parametrize("instant", ["infinity", "-infinity"])
async def test_next_run_out_of_reach_is_renewed_by_a_start_and_by_a_resume(
    new_app: NewApp, db: Database, instant: str
) -> None:
    app = app_with(new_app, schedule(), schedule("other"))
    await Scheduler(app).run_once()
    db.execute("update horsies_schedule_state set run_count = 1, next_run_at = %s", instant)

    good(await app.schedules.pause_async("other"))
    good(await app.schedules.resume_async("other"))
    resumed = state(db, "other")["next_run_at"]
    await Scheduler(app).run_once()

    assert resumed > datetime.now(UTC)
    assert datetime.now(UTC) < state(db)["next_run_at"] < datetime.now(UTC) + timedelta(minutes=2)


async def test_error_that_no_retry_cures_ends_no_scheduler(
    new_app: NewApp, db: Database, caplog: pytest.LogCaptureFixture
) -> None:
    app = app_with(new_app, schedule())
    scheduler, stopping, woken = Scheduler(app), asyncio.Event(), asyncio.Event()
    await scheduler.run_once()
    make_due(db)
    db.execute("alter table horsies_schedule_state rename to hidden")

    async with asyncio.TaskGroup() as group:
        database = app.get_broker().database
        group.create_task(fire_until(stopping, woken, scheduler, database), name="firing")
        await eventually_async(lambda: asyncio.to_thread(lambda: "trying again" in caplog.text))
        db.execute("alter table hidden rename to horsies_schedule_state")
        await eventually_async(lambda: asyncio.to_thread(lambda: bool(db.statuses())), within=30)
        stopping.set()
        woken.set()

    assert db.statuses() == {"PENDING": 1}


async def test_slot_that_comes_during_a_pass_does_not_wait_for_the_next_tick(
    new_app: NewApp, db: Database
) -> None:
    """Also while another schedule stays due, because it cannot be sent."""
    scheduler = Scheduler(app_with(new_app, schedule("gone", task_name="gone"), schedule()))
    await scheduler.run_once()
    db.execute(
        "create function come_due() returns trigger language plpgsql as $$begin "
        "update horsies_schedule_state set next_run_at = now() where schedule_name = 'minutely'; "
        "return new; end$$"
    )
    db.execute(
        "create trigger come_due after insert on horsies_schedule_runs for each row "
        "execute function come_due()"
    )
    make_due(db, name="gone")

    assert await scheduler.run_once() == 0
    assert scheduler.interval_s < 0.1
    db.execute("drop trigger come_due on horsies_schedule_runs")
    assert await scheduler.run_once() == 1
    assert scheduler.interval_s == 1.0


async def test_schedule_ends_with_its_last_slot(new_app: NewApp, db: Database) -> None:
    set_clock(db, "09:00:00")
    end = datetime(2030, 1, 1, 9, 2, tzinfo=UTC)
    scheduler = Scheduler(app_with(new_app, schedule(end_at=end)))
    await scheduler.run_once()

    sent = []
    for clock in ("09:01:00", "09:02:00", "09:03:00"):
        set_clock(db, clock)
        sent.append(await scheduler.run_once())

    assert sent == [1, 1, 0], "the end itself is a slot"
    assert state(db)["next_run_at"] is None


async def test_deadline_counts_from_the_slot(new_app: NewApp, db: Database) -> None:
    scheduler = Scheduler(app_with(new_app, schedule(deadline_seconds=30)))
    await scheduler.run_once()
    slot = make_due(db)
    await scheduler.run_once()

    assert db.task(slot_id("minutely", slot))["good_until"] == slot + timedelta(seconds=30)


async def test_workflow_is_started_for_its_slot(new_app: NewApp, db: Database) -> None:
    app = app_with(
        new_app,
        WorkflowSchedule(
            name="nightly", definition_key="test_scheduler.nightly", pattern=MINUTE, kwargs={"n": 3}
        ),
    )

    class Nightly(WorkflowDefinition[int]):
        name = "nightly"
        definition_key = "test_scheduler.nightly"

        @classmethod
        def build_with(cls, app: Any, n: int) -> Any:
            node = app.tasks["report"].node(node_id="only")(number=n)
            return app.workflow("nightly", [node], output=node, definition_key="x")

    assert app.check() == []
    scheduler = Scheduler(app)
    await scheduler.run_once()
    slot = make_due(db, name="nightly")

    assert await scheduler.run_once() == 1
    workflow_id = slot_id("nightly", slot)
    assert db.value("select sent_at from horsies_workflows where id = %s", workflow_id) == slot


@pytest.mark.parametrize(
    ("fields", "text", "code"),
    [
        ({"task_name": "gone"}, "'gone' is not registered", "HRS-300"),
        ({"timezone": "Mars/Olympus"}, "unknown timezone", "HRS-205"),
        ({"kwargs": {"nummer": 1}}, "arguments do not fit", "HRS-205"),
        ({"queue_name": "gone"}, "queue", "HRS-205"),
    ],
    ids=["task", "zone", "arguments", "queue"],
)
def test_check_refuses_what_cannot_run(
    new_app: NewApp, fields: dict[str, Any], text: str, code: str
) -> None:
    app = app_with(new_app, schedule(**fields))

    (error,) = app.check()
    unseen = app_with(new_app, schedule(enabled=False, **fields)).check()

    assert text in error.message
    assert error.code == code
    assert unseen == [], "only enabled schedules are checked"
