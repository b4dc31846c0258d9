"""Schedules that must not type-check: exactly the lines marked `# refused` are errors."""

from datetime import UTC, datetime

from horsies import (
    Horsies,
    HourlySchedule,
    IntervalSchedule,
    MonthlySchedule,
    ScheduleConfig,
    ScheduleInfo,
    TaskSchedule,
    WeeklySchedule,
    WorkflowSchedule,
)

app = Horsies()
HOURLY = IntervalSchedule(hours=1)
DAY = datetime(2030, 1, 1, tzinfo=UTC)

HourlySchedule()  # refused
IntervalSchedule(hours="one")  # refused
MonthlySchedule(day=1)  # refused
WeeklySchedule(days=[1], time=DAY.time())  # refused
TaskSchedule(name="a", pattern=HOURLY)  # refused
TaskSchedule(name="a", task_name="t", pattern="daily")  # refused
TaskSchedule(name="a", task_name="t", pattern=HOURLY, every=3)  # refused
TaskSchedule(name="a", task_name="t", pattern=HOURLY, overlap=3)  # refused
WorkflowSchedule(name="a", definition_key="k", pattern=HOURLY, queue_name="q")  # refused
ScheduleConfig(schedules=[HOURLY])  # refused
ScheduleConfig(owners="shop")  # refused

app.schedules.next_runs()  # refused
app.schedules.next_runs("a", "3")  # refused
app.schedules.pause("a", "closed")  # refused
app.schedules.backfill("a", DAY)  # refused
app.schedules.backfill("a", "2030-01-01", "2030-01-02")  # refused
app.schedules.backfill("a", DAY, DAY, False)  # refused
app.schedules.add("a")  # refused
app.schedules.change("a", pattern=HOURLY)  # refused
app.schedules.pause_later("a")  # refused


def last(info: ScheduleInfo) -> datetime:
    return info.last_run_at  # refused
