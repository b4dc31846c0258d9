"""Schedules that must type-check, with the types they must have."""

from datetime import UTC, datetime, time
from typing import assert_type

from horsies import (
    AppConfig,
    Backfill,
    BrokerResult,
    CronSchedule,
    DailySchedule,
    Horsies,
    HourlySchedule,
    IntervalSchedule,
    MonthlySchedule,
    Overlap,
    ScheduleConfig,
    ScheduleInfo,
    SchedulePattern,
    ScheduleRun,
    Schedules,
    TaskSchedule,
    Weekday,
    WeeklySchedule,
    WorkflowSchedule,
)

patterns: list[SchedulePattern] = [
    IntervalSchedule(minutes=5),
    HourlySchedule(minute=30),
    DailySchedule(time=time(9)),
    WeeklySchedule(days=[Weekday.MONDAY], time=time(9)),
    MonthlySchedule(day=31, time=time(9)),
    CronSchedule(expression="@daily"),
]
report = TaskSchedule(
    name="report",
    task_name="report",
    pattern=patterns[0],
    args=(1, "two"),
    kwargs={"kind": "daily"},
    overlap=Overlap.SKIP,
    end_at=datetime(2030, 1, 1, tzinfo=UTC),
)
nightly = WorkflowSchedule(name="nightly", definition_key="shop.nightly.v1", pattern=patterns[1])
app = Horsies(AppConfig(schedule=ScheduleConfig(schedules=[report, nightly], owner="shop")))

assert_type(app.schedules, Schedules)
assert_type(app.schedules.list(), BrokerResult[list[ScheduleInfo]])
assert_type(app.schedules.next_runs("report", 3), BrokerResult[list[datetime]])
assert_type(app.schedules.pause("report", reason="closed"), BrokerResult[None])
assert_type(app.schedules.resume("report"), BrokerResult[bool])
assert_type(app.schedules.run_now("report"), BrokerResult[str])
assert_type(app.schedules.add(report), BrokerResult[None])
assert_type(app.schedules.change(nightly), BrokerResult[None])
assert_type(app.schedules.remove("report"), BrokerResult[None])
assert_type(app.schedules.history("report", 10), BrokerResult[list[ScheduleRun]])
span = (datetime(2030, 1, 1, tzinfo=UTC), datetime(2030, 1, 2, tzinfo=UTC))
filled = app.schedules.backfill("report", *span, preview=False, again=True)
assert_type(filled, BrokerResult[Backfill])
assert_type(filled.unwrap().unknown, list[datetime])


async def steer() -> None:
    (first, *_) = (await app.schedules.list_async()).unwrap()
    assert_type(first, ScheduleInfo)
    assert_type(first.next_run_at, datetime | None)
    assert_type(first.definition, TaskSchedule | WorkflowSchedule | None)
    assert_type(await app.schedules.next_runs_async("report"), BrokerResult[list[datetime]])
    assert_type(await app.schedules.pause_async("report"), BrokerResult[None])
    assert_type(await app.schedules.resume_async("report"), BrokerResult[bool])
    assert_type(await app.schedules.run_now_async("report"), BrokerResult[str])
    assert_type(await app.schedules.backfill_async("report", *span), BrokerResult[Backfill])
    assert_type(await app.schedules.add_async(nightly), BrokerResult[None])
    assert_type(await app.schedules.change_async(report), BrokerResult[None])
    assert_type(await app.schedules.remove_async("report"), BrokerResult[None])
    (run, *_) = (await app.schedules.history_async("report")).unwrap()
    assert_type(run.task_id, str | None)
    assert_type(run.slot_at, datetime)
