"""Schedules seen and steered at run time: values, never exceptions; nothing sent twice."""

import asyncio
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Any

import pytest

from horsies import (
    BrokerErrorCode,
    CronSchedule,
    Horsies,
    IntervalSchedule,
    Note,
    ScheduleConfig,
    TaskError,
    TaskResult,
    TaskSchedule,
)
from horsies.config import RecoveryConfig, WorkerResilienceConfig
from horsies.recovery.reaper import Reaper
from horsies.scheduling.process import fire_until
from horsies.scheduling.scheduler import Scheduler
from horsies.worker.service_connection import ServiceConnection
from support.apps import bad, good, working
from support.database import Database
from support.eventually import eventually_async

NewApp = Callable[..., Horsies]
HOURLY = CronSchedule(expression="0 * * * *")
DAY = datetime(2020, 1, 1, tzinfo=UTC)


def schedule(name: str = "hourly", **fields: Any) -> TaskSchedule:
    return TaskSchedule(**{"name": name, "task_name": "report", "pattern": HOURLY} | fields)


def app_with(new_app: NewApp, *schedules: Any, **settings: Any) -> Horsies:
    app = new_app(schedule=ScheduleConfig(schedules=list(schedules), **settings))

    @app.task("report")
    async def report(number: int = 0) -> TaskResult[int, TaskError]:
        return TaskResult(ok=number)

    return app


def count(db: Database) -> int:
    found: int = db.value("select count(*) from horsies_tasks")
    return found


def make_due(db: Database) -> None:
    db.execute("update horsies_schedule_state set next_run_at = now() - interval '1 second'")


async def test_list_tells_what_runs_when(new_app: NewApp, db: Database) -> None:
    app = app_with(new_app, schedule(), schedule("off", enabled=False))
    await Scheduler(app).run_once()
    good(await app.schedules.add_async(schedule("added", pattern=IntervalSchedule(minutes=5))))

    added, hourly, off = good(await app.schedules.list_async())

    assert (added.is_dynamic, added.words) == (True, "every 5 minutes")
    assert (hourly.target, hourly.is_dynamic, hourly.problem) == ("report", False, None)
    assert hourly.next_run_at is not None
    assert (off.name, off.is_enabled, off.next_run_at) == ("off", False, None)


async def test_a_schedule_that_begins_after_the_calendar_ends_is_refused(
    new_app: NewApp, db: Database
) -> None:
    late = schedule("late", start_at=datetime(9999, 12, 31, 23, 59, tzinfo=UTC))

    error = bad(await app_with(new_app).schedules.add_async(late))

    assert "it would never run" in error.message
    assert db.value("select count(*) from horsies_schedule_state") == 0


def test_next_runs_are_an_hour_apart(new_app: NewApp) -> None:
    runs = good(app_with(new_app, schedule()).schedules.next_runs("hourly", 3))

    assert [later - sooner for sooner, later in pairwise(runs)] == [timedelta(hours=1)] * 2


@pytest.mark.parametrize(("catches_up", "sent"), [(False, 0), (True, 1)], ids=["new", "kept"])
async def test_paused_schedule_sends_nothing_until_resumed(
    new_app: NewApp, db: Database, catches_up: bool, sent: int
) -> None:
    app = app_with(new_app, schedule(catch_up_missed=catches_up))
    good(await app.schedules.pause_async("hourly", reason="stock-taking"))
    make_due(db)

    assert await Scheduler(app).run_once() == 0
    (info,) = good(await app.schedules.list_async())
    assert info.pause_reason == "stock-taking"
    assert good(await app.schedules.next_runs_async("hourly")) == []
    assert good(await app.schedules.resume_async("hourly")) is True
    assert good(await app.schedules.resume_async("hourly")) is False
    assert await Scheduler(app).run_once() == sent
    runs = good(await app.schedules.history_async("hourly"))
    told = ("sent", None) if catches_up else ("missed", "paused: stock-taking")
    assert [(run.outcome, run.reason) for run in runs] == [told]


def test_reason_of_a_pause_is_in_the_audit_unless_the_note_has_another(new_app: NewApp) -> None:
    app = app_with(new_app, schedule())

    good(app.schedules.pause("hourly", reason="stock-taking"))
    good(app.schedules.pause("hourly", reason="stock-taking", note=Note("ann", "closed")))

    noted = [(entry.done_by, entry.reason) for entry in good(app.operations.audit())]
    assert noted[0] == ("ann", "closed")
    assert noted[1][1] == "stock-taking"


async def test_run_now_is_sent_beside_the_slots(new_app: NewApp, db: Database) -> None:
    app = app_with(new_app, schedule(deadline_seconds=1))
    before = good(await app.schedules.next_runs_async("hourly", 1))

    task_id = good(await app.schedules.run_now_async("hourly"))

    assert db.task(task_id)["good_until"] is None
    assert good(await app.schedules.next_runs_async("hourly", 1)) == before
    (run,) = good(await app.schedules.history_async("hourly"))
    assert (run.task_id, run.reason, run.status) == (task_id, "run by hand", "PENDING")


def test_backfill_shows_first_and_sends_each_slot_once(new_app: NewApp, db: Database) -> None:
    schedules = app_with(new_app, schedule()).schedules
    end = DAY + timedelta(hours=3)

    preview = good(schedules.backfill("hourly", DAY, end))
    assert (len(preview.slots), preview.sent_before, count(db)) == (3, [], 0)

    sent = good(schedules.backfill("hourly", DAY, end, preview=False))
    again = good(schedules.backfill("hourly", DAY, end + timedelta(hours=1), preview=False))

    assert sent.slots == preview.slots == [DAY + timedelta(hours=hour) for hour in range(3)]
    assert (again.slots, len(again.sent_before)) == ([end], 3)
    assert count(db) == 4


def test_backfill_leaves_the_future_to_the_scheduler(new_app: NewApp) -> None:
    schedules = app_with(new_app, schedule()).schedules
    (following,) = good(schedules.next_runs("hourly", 1))

    preview = good(schedules.backfill("hourly", following, following + timedelta(days=1)))

    assert preview.slots == []


def test_backfilled_intervals_are_the_same_in_every_range(new_app: NewApp, db: Database) -> None:
    minutes = schedule(pattern=IntervalSchedule(minutes=20))
    schedules = app_with(new_app, minutes).schedules

    for start in (DAY, DAY + timedelta(minutes=7)):
        good(schedules.backfill("hourly", start, DAY + timedelta(hours=1), preview=False))

    assert count(db) == 3


async def test_reaper_prunes_history_and_a_backfill_does_not_send_it_again(
    new_app: NewApp, db: Database
) -> None:
    app = app_with(new_app, schedule())
    end = DAY + timedelta(hours=3)
    good(app.schedules.backfill("hourly", DAY, end, preview=False))
    db.execute("update horsies_schedule_runs set created_at = now() - interval '31 days'")
    db.execute("delete from horsies_tasks")
    address = app.get_broker().database.address
    connection = ServiceConnection(address, "horsies test", WorkerResilienceConfig())
    swept = await Reaper(connection, RecoveryConfig(), host_key="here").run_once()
    await connection.close()
    assert swept.pruned == 3

    later = end + timedelta(hours=2)
    preview = good(app.schedules.backfill("hourly", DAY, later))
    sent = good(app.schedules.backfill("hourly", DAY, later, preview=False))

    assert (len(preview.unknown), preview.sent_before) == (3, [])
    assert sent.slots == preview.slots == [end, end + timedelta(hours=1)]
    again = good(app.schedules.backfill("hourly", DAY, later, preview=False, again=True))
    assert (again.slots, again.unknown) == (preview.unknown, preview.unknown)
    assert len(again.sent_before) == 2
    assert count(db) == 5


async def test_commands_of_other_code_leave_the_schedule_as_it_is(
    new_app: NewApp, db: Database
) -> None:
    await Scheduler(app_with(new_app, schedule(), schedule("theirs"))).run_once()
    before = db.execute("select * from horsies_schedule_state order by schedule_name")
    other = app_with(new_app, schedule(pattern=IntervalSchedule(days=9)), schedule("new"))

    (info, _, theirs) = good(await other.schedules.list_async())
    (following, *_) = good(await other.schedules.next_runs_async("hourly"))
    good(await other.schedules.next_runs_async("new"))
    good(other.schedules.backfill("hourly", DAY, DAY + timedelta(days=20)))

    assert "another pattern" in str(info.problem)
    assert "not in this app's code" in str(theirs.problem)
    assert following == before[0]["next_run_at"]
    assert db.execute("select * from horsies_schedule_state order by schedule_name") == before

    good(await other.schedules.run_now_async("hourly"))
    good(await other.schedules.pause_async("hourly"))
    good(await other.schedules.resume_async("hourly"))
    (row, *_) = db.execute("select * from horsies_schedule_state order by schedule_name")
    kept = ("next_run_at", "config_hash", "owner", "paused_at")
    assert {key: row[key] for key in kept} == {key: before[0][key] for key in kept}


async def test_other_code_cannot_say_when_a_resumed_schedule_goes_on(
    new_app: NewApp, db: Database
) -> None:
    app = app_with(new_app, schedule())
    other = app_with(new_app, schedule(pattern=IntervalSchedule(days=9)))
    good(await app.schedules.pause_async("hourly"))
    make_due(db)

    assert "another pattern" in bad(await other.schedules.resume_async("hourly")).message
    assert good(await app.schedules.resume_async("hourly")) is True


async def test_change_of_the_period_works_out_the_next_run_anew(
    new_app: NewApp, db: Database
) -> None:
    schedules = app_with(new_app).schedules
    start = DAY.replace(year=2040)
    good(await schedules.add_async(schedule("added", start_at=start)))
    assert good(await schedules.next_runs_async("added", 1)) == [start]

    good(await schedules.change_async(schedule("added")))
    (sooner,) = good(await schedules.next_runs_async("added", 1))
    good(await schedules.change_async(schedule("added", end_at=in_seconds(0))))
    ended = good(await schedules.next_runs_async("added", 1))
    good(await schedules.change_async(schedule("added", end_at=start)))

    assert sooner < in_seconds(3601)
    assert ended == []
    assert good(await schedules.next_runs_async("added", 1)) == [sooner]


async def test_added_schedule_is_taken_up_at_once(new_app: NewApp, db: Database) -> None:
    app = app_with(new_app)
    stopping, woken = asyncio.Event(), asyncio.Event()
    scheduler = Scheduler(app)
    database = app.get_broker().database

    async def is_asleep() -> bool:
        return scheduler.interval_s == 30.0

    async def is_sent() -> bool:
        return count(db) == 1

    async with asyncio.TaskGroup() as group:
        group.create_task(fire_until(stopping, woken, scheduler, database))
        await eventually_async(is_asleep)
        every_second = schedule("added", pattern=IntervalSchedule(seconds=1), end_at=in_seconds(2))
        good(await app.schedules.add_async(every_second))
        await eventually_async(is_sent, within=5)
        stopping.set()
        woken.set()


def in_seconds(seconds: float) -> datetime:
    return datetime.now(UTC) + timedelta(seconds=seconds)


async def test_added_schedule_outlives_deploys(new_app: NewApp, db: Database) -> None:
    app = app_with(new_app, schedule())
    good(await app.schedules.add_async(schedule("added", kwargs={"number": 4})))
    await Scheduler(app_with(new_app, schedule("new"))).run_once()
    await Scheduler(app_with(new_app, schedule("theirs"), owner="mail")).run_once()
    make_due(db)

    assert await Scheduler(app_with(new_app)).run_once() == 1

    assert db.value("select kwargs from horsies_tasks") == '{"number":4}'


async def test_changed_and_removed(new_app: NewApp, db: Database) -> None:
    schedules = app_with(new_app).schedules
    good(await schedules.add_async(schedule("added")))
    before = good(await schedules.next_runs_async("added", 1))

    good(await schedules.change_async(schedule("added", kwargs={"number": 4})))
    assert good(await schedules.next_runs_async("added", 1)) == before
    good(await schedules.change_async(schedule("added", pattern=IntervalSchedule(days=9))))
    assert good(await schedules.next_runs_async("added", 1)) != before
    good(await schedules.remove_async("added"))

    assert good(await schedules.list_async()) == []
    assert bad(await schedules.remove_async("added")).code is BrokerErrorCode.SCHEDULE_NOT_FOUND


async def test_task_that_is_gone_is_told_and_waits_for_its_return(
    new_app: NewApp, db: Database
) -> None:
    app = app_with(new_app, schedule())
    good(await app.schedules.add_async(schedule("added")))
    renamed = new_app(schedule=ScheduleConfig(schedules=[]))
    make_due(db)

    assert await Scheduler(renamed).run_once() == 0

    (run,) = good(await renamed.schedules.history_async("added"))
    assert (run.outcome, run.reason) == ("failed", "task 'report' is not registered")
    (info,) = good(await renamed.schedules.list_async())
    assert "not registered" in str(info.problem)
    assert await Scheduler(app).run_once() == 1
    (run,) = good(await app.schedules.history_async("added"))
    assert (run.outcome, run.status) == ("sent", "PENDING")


def test_live_check_finds_stored_schedules_that_the_code_left_behind(
    new_app: NewApp, db: Database
) -> None:
    schedules = app_with(new_app).schedules
    for name in ("added", "arguments", "paused"):
        kwargs = {"number": 1} if name == "arguments" else {}
        good(schedules.add(schedule(name, kwargs=kwargs)))
    good(schedules.pause("paused"))
    db.insert("horsies_schedules", name="broken", definition='{"name": "b", "pattern": 1}')
    db.insert("horsies_schedule_state", schedule_name="broken")
    renamed = new_app(schedule=ScheduleConfig(schedules=[]))
    changed = new_app(schedule=ScheduleConfig(schedules=[]))
    theirs = new_app(schedule=ScheduleConfig(schedules=[], owner="mail"))

    @changed.task("report")
    async def report(amount: int = 0) -> TaskResult[int, TaskError]:
        return TaskResult(ok=amount)

    found = [(error.code, error.message) for error in renamed.check(live=True)]
    refused = [error.message for error in changed.check(live=True)]

    gone = "task 'report' is not registered"
    assert found[:2] == [
        ("HRS-300", f"schedule 'added': {gone}"),
        ("HRS-300", f"schedule 'arguments': {gone}"),
    ]
    assert [code for code, _ in found[2:]] == ["HRS-205"]
    assert "its stored definition is not valid" in found[2][1]
    assert "arguments do not fit task 'report'" in refused[0]
    assert "horsies schedule ... added" in str(renamed.check(live=True)[0])
    assert (renamed.check(), theirs.check(live=True)) == ([], [])


async def test_failing_schedules_do_not_hold_up_others(new_app: NewApp, db: Database) -> None:
    app = app_with(new_app)
    for number in range(120):
        db.insert(
            "horsies_schedules", name=f"bad{number}", definition='{"name": "b", "pattern": 1}'
        )
        db.insert(
            "horsies_schedule_state",
            schedule_name=f"bad{number}",
            next_run_at=datetime.now(UTC) - timedelta(days=1),
        )
    good(await app.schedules.add_async(schedule("good")))
    db.execute("update horsies_schedule_state set next_run_at = now() where schedule_name = 'good'")

    assert await Scheduler(app).run_once() == 1


@pytest.mark.parametrize(
    ("made", "said"),
    [
        (schedule("hourly"), "in code"),
        (schedule("x", task_name="gone"), "not registered"),
        (schedule("x", timezone="Mars/Olympus"), "unknown timezone"),
        (schedule("x", kwargs={"nummer": 1}), "arguments do not fit"),
        (schedule("x", enabled=False), "paused instead"),
        (schedule("x", end_at=DAY), "never run"),
        (schedule("theirs"), "another owner"),
        (schedule("mine"), "already"),
    ],
    ids=["in code", "task", "zone", "arguments", "disabled", "ended", "theirs", "twice"],
)
def test_what_cannot_be_added_is_refused(new_app: NewApp, made: TaskSchedule, said: str) -> None:
    app = app_with(new_app, schedule())
    good(app_with(new_app, owner="mail").schedules.add(schedule("theirs")))
    good(app.schedules.add(schedule("mine")))

    error = bad(app.schedules.add(made))

    assert (error.code, error.retryable) == (BrokerErrorCode.SCHEDULE_REFUSED, False)
    assert said in error.message


def test_unknown_names_are_values(new_app: NewApp) -> None:
    schedules = app_with(new_app).schedules

    results = [
        schedules.pause("gone"), schedules.resume("gone"), schedules.run_now("gone"),
        schedules.next_runs("gone"), schedules.backfill("gone", DAY, DAY + timedelta(days=1)),
        schedules.change(schedule("gone")), schedules.remove("gone"), schedules.history("gone"),
    ]  # fmt: skip

    assert {bad(result).code for result in results} == {BrokerErrorCode.SCHEDULE_NOT_FOUND}


@pytest.mark.parametrize(
    ("start", "end", "said"),
    [
        (DAY, DAY, "after the start"),
        (DAY.replace(tzinfo=None), DAY, "timezone"),
        (DAY, DAY + timedelta(days=3650), "more than 10000"),
    ],
    ids=["empty", "naive", "too many"],
)
def test_ranges_that_cannot_be_backfilled(
    new_app: NewApp, start: datetime, end: datetime, said: str
) -> None:
    schedules = app_with(new_app, schedule()).schedules

    assert said in bad(schedules.backfill("hourly", start, end)).message


async def test_enqueued_slots_are_kept_when_a_later_one_fails(
    new_app: NewApp, db: Database
) -> None:
    minutely = schedule(pattern=IntervalSchedule(minutes=1), catch_up_missed=True)
    scheduler = Scheduler(app_with(new_app, minutely))
    await scheduler.run_once()
    db.execute("update horsies_schedule_state set next_run_at = now() - interval '4.5 minutes'")
    db.execute(
        "alter table horsies_tasks add constraint bad "
        "check (sent_at < now() - interval '3 minutes') not valid"
    )

    assert await scheduler.run_once() == 2
    db.execute("alter table horsies_tasks drop constraint bad")
    assert await scheduler.run_once() == 3


async def test_worker_with_a_scheduler_sends_and_runs(new_app: NewApp, db: Database) -> None:
    app = app_with(new_app, schedule(pattern=IntervalSchedule(seconds=1)))

    async def is_done() -> bool:
        return db.statuses().get("COMPLETED", 0) >= 2

    async with working(app, has_scheduler=True):
        await eventually_async(is_done)

    assert db.value("select run_count from horsies_schedule_state") >= 2


async def test_idle_scheduler_asks_rarely(new_app: NewApp, db: Database) -> None:
    app = app_with(new_app, *(schedule(f"s{number}") for number in range(20)))
    stopping, woken = asyncio.Event(), asyncio.Event()
    scheduler = Scheduler(app)
    passes = 0
    run_once = scheduler.run_once

    async def counted() -> int:
        nonlocal passes
        passes += 1
        return await run_once()

    scheduler.run_once = counted  # type: ignore[method-assign]
    async with asyncio.TaskGroup() as group:
        group.create_task(fire_until(stopping, woken, scheduler, app.get_broker().database))
        group.create_task(stop_after(2.0, stopping, woken))

    # The start, and what its own making of state and the new listener tell it.
    assert passes <= 4


async def stop_after(seconds: float, stopping: asyncio.Event, woken: asyncio.Event) -> None:
    await asyncio.sleep(seconds)
    stopping.set()
    woken.set()
