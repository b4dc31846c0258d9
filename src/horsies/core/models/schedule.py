"""Re-exports: schedules."""

from horsies.config.schedules import (
    CronSchedule,
    DailySchedule,
    HourlySchedule,
    IntervalSchedule,
    MonthlySchedule,
    Overlap,
    ScheduleConfig,
    SchedulePattern,
    TaskSchedule,
    Weekday,
    WeeklySchedule,
    WorkflowSchedule,
)

__all__ = [
    "CronSchedule",
    "DailySchedule",
    "HourlySchedule",
    "IntervalSchedule",
    "MonthlySchedule",
    "Overlap",
    "ScheduleConfig",
    "SchedulePattern",
    "TaskSchedule",
    "Weekday",
    "WeeklySchedule",
    "WorkflowSchedule",
]
