"""Schedules as an app configures them: when, what, and how missed runs are treated."""

from collections import Counter
from collections.abc import Iterator
from datetime import time
from enum import StrEnum
from typing import Annotated, Any, ClassVar, Literal, TypeAlias

from pydantic import AwareDatetime, Field

from horsies.codes import ErrorCode
from horsies.config.cron import read_cron
from horsies.config.settings import Settings
from horsies.errors import ConfigurationError, HorsiesError


class Weekday(StrEnum):
    """A day of the week."""

    MONDAY = "monday"
    TUESDAY = "tuesday"
    WEDNESDAY = "wednesday"
    THURSDAY = "thursday"
    FRIDAY = "friday"
    SATURDAY = "saturday"
    SUNDAY = "sunday"


class _Pattern(Settings):
    phase_name: ClassVar[str] = "schedule"


class IntervalSchedule(_Pattern):
    """Every sum of its units, counted from the last run."""

    type: Literal["interval"] = "interval"
    seconds: int | None = Field(default=None, ge=1, le=86_400)
    minutes: int | None = Field(default=None, ge=1, le=1_440)
    hours: int | None = Field(default=None, ge=1, le=168)
    days: int | None = Field(default=None, ge=1, le=365)

    def problems(self) -> Iterator[HorsiesError]:
        if self.total_seconds() == 0:
            yield _refusal(
                "IntervalSchedule needs at least one time unit",
                "all time units are None: seconds, minutes, hours, days",
                "set seconds, minutes, hours or days",
            )

    def total_seconds(self) -> int:
        """The length of the interval."""
        minutes = (self.minutes or 0) + 60 * (self.hours or 0) + 1_440 * (self.days or 0)
        return (self.seconds or 0) + 60 * minutes


class HourlySchedule(_Pattern):
    """Each hour at this minute and second."""

    type: Literal["hourly"] = "hourly"
    minute: int = Field(ge=0, le=59)
    second: int = Field(default=0, ge=0, le=59)


class DailySchedule(_Pattern):
    """Each day at this time."""

    type: Literal["daily"] = "daily"
    time: time


class WeeklySchedule(_Pattern):
    """On these days at this time."""

    type: Literal["weekly"] = "weekly"
    days: list[Weekday] = Field(min_length=1)
    time: time

    def problems(self) -> Iterator[HorsiesError]:
        if len(set(self.days)) < len(self.days):
            named = ", ".join(day.value for day in self.days)
            yield _refusal(
                "duplicate days in WeeklySchedule", f"days={named}", "name each day once"
            )


class MonthlySchedule(_Pattern):
    """On this day of the month at this time; months without it are skipped."""

    type: Literal["monthly"] = "monthly"
    day: int = Field(ge=1, le=31)
    time: time


class CronSchedule(_Pattern):
    """Each minute that a cron expression names."""

    type: Literal["cron"] = "cron"
    expression: str

    def problems(self) -> Iterator[HorsiesError]:
        try:
            read_cron(self.expression)
        except ValueError as error:
            yield _refusal(
                f"invalid cron expression {self.expression!r}: {error}",
                f"expression={self.expression!r}",
                "five fields: minute hour day-of-month month day-of-week, e.g. '30 9 * * mon-fri'",
            )


SchedulePattern: TypeAlias = Annotated[
    IntervalSchedule
    | HourlySchedule
    | DailySchedule
    | WeeklySchedule
    | MonthlySchedule
    | CronSchedule,
    Field(discriminator="type"),
]


class Overlap(StrEnum):
    """What happens to a slot while an earlier run of the schedule has not ended."""

    ALLOW = "allow"  # it runs beside it
    SKIP = "skip"  # it is skipped
    QUEUE = "queue"  # one waits, further ones are skipped


class TaskSchedule(Settings):
    """A task that is sent again and again.

    `jitter_seconds` delays each run by a part of it that is the same whenever it is worked out;
    `deadline_seconds` expires runs that have not begun so long after their slot.
    """

    phase_name: ClassVar[str] = "schedule"

    name: str = Field(min_length=1, max_length=255)
    task_name: str
    pattern: SchedulePattern
    args: tuple[Any, ...] = ()
    kwargs: dict[str, Any] = Field(default_factory=dict[str, Any])
    queue_name: str | None = None
    enabled: bool = True
    timezone: str = "UTC"
    catch_up_missed: bool = False
    max_catch_up_runs: int = Field(default=100, ge=1, le=10_000)
    overlap: Overlap = Overlap.ALLOW
    jitter_seconds: int = Field(default=0, ge=0, le=86_400)
    start_at: AwareDatetime | None = None
    end_at: AwareDatetime | None = None
    deadline_seconds: int | None = Field(default=None, ge=1)

    def problems(self) -> Iterator[HorsiesError]:
        yield from _period_problems(self)


class WorkflowSchedule(Settings):
    """A workflow that is started again and again, by its definition's `build_with(**kwargs)`."""

    phase_name: ClassVar[str] = "schedule"

    name: str = Field(min_length=1, max_length=255)
    definition_key: str
    pattern: SchedulePattern
    kwargs: dict[str, Any] = Field(default_factory=dict[str, Any])
    enabled: bool = True
    timezone: str = "UTC"
    catch_up_missed: bool = False
    max_catch_up_runs: int = Field(default=100, ge=1, le=10_000)
    overlap: Overlap = Overlap.ALLOW
    start_at: AwareDatetime | None = None
    end_at: AwareDatetime | None = None

    def problems(self) -> Iterator[HorsiesError]:
        yield from _period_problems(self)
        if self.overlap is Overlap.QUEUE:
            yield _refusal(
                f"schedule {self.name!r}: a workflow starts at once, it cannot be queued",
                "overlap=queue",
                "use Overlap.SKIP or Overlap.ALLOW",
            )


AnySchedule: TypeAlias = TaskSchedule | WorkflowSchedule


class ScheduleConfig(Settings):
    """All schedules of an app. Apps that share a database need an `owner` each."""

    phase_name: ClassVar[str] = "schedule"

    enabled: bool = True
    schedules: list[AnySchedule] = Field(default_factory=list[AnySchedule])
    check_interval_seconds: int = Field(default=1, ge=1, le=60)
    owner: str = Field(default="default", min_length=1, max_length=255)

    def problems(self) -> Iterator[HorsiesError]:
        names = [schedule.name for schedule in self.schedules]
        repeated = sorted(name for name, count in Counter(names).items() if count > 1)
        if repeated:
            yield _refusal(
                f"duplicate schedule names: {', '.join(repeated)}",
                f"{len(names)} schedules",
                "give each schedule a unique name",
            )


def _period_problems(schedule: AnySchedule) -> Iterator[HorsiesError]:
    start, end = schedule.start_at, schedule.end_at
    if start is not None and end is not None and end <= start:
        yield _refusal(
            f"schedule {schedule.name!r} ends before it starts",
            f"start_at={start.isoformat()}, end_at={end.isoformat()}",
            "let end_at lie after start_at",
        )


def _refusal(message: str, note: str, cure: str) -> ConfigurationError:
    return ConfigurationError(
        message, ErrorCode.CONFIG_INVALID_SCHEDULE, notes=[note], help_text=cure
    )
