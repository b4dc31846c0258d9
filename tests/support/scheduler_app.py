"""The app of scheduler processes under test; the environment says which schedules it has."""

import os

from horsies import Horsies, ScheduleConfig, TaskError, TaskResult
from horsies.config import AppConfig, PostgresConfig
from horsies.config.schedules import IntervalSchedule, TaskSchedule

_count = int(os.environ.get("HORSIES_TEST_SCHEDULES", "1"))
_fields = {"kwargs": {"nonsense": 1}} if os.environ.get("HORSIES_TEST_INVALID") else {}
_config = ScheduleConfig(
    enabled=os.environ.get("HORSIES_TEST_DISABLED") is None,
    schedules=[
        TaskSchedule(
            name=f"s{number}",
            task_name="report",
            pattern=IntervalSchedule(hours=1),
            **_fields,  # type: ignore[arg-type]  # only to be refused
        )
        for number in range(_count)
    ],
)

app = Horsies(
    AppConfig(
        broker=PostgresConfig(database_url=os.environ["HORSIES_TEST_APP_URL"]),
        schedule=_config if _count else None,
    )
)


@app.task("report")
async def report() -> TaskResult[int, TaskError]:
    return TaskResult(ok=1)
