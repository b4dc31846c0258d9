"""What a pass of a scheduler costs, counted in statements: only what is due costs anything."""

from collections.abc import Callable, Iterator

import pytest

from horsies import Horsies, IntervalSchedule, ScheduleConfig, TaskError, TaskResult, TaskSchedule
from horsies.config import PostgresConfig
from horsies.scheduling.scheduler import Scheduler
from support.database import Database
from support.traffic import Traffic, counted

COUNT = 10_000


@pytest.fixture
def traffic(database_url: str) -> Iterator[Traffic]:
    with counted(database_url) as (traffic, url):
        traffic.url = url  # type: ignore[attr-defined]
        yield traffic


async def test_ten_thousand_schedules_ask_no_more_than_the_due_ones(
    new_app: Callable[..., Horsies], traffic: Traffic, db: Database
) -> None:
    every = IntervalSchedule(hours=1)
    schedules = [
        TaskSchedule(name=f"s{number}", task_name="report", pattern=every)
        for number in range(COUNT)
    ]
    broker = PostgresConfig(database_url=traffic.url)  # type: ignore[attr-defined]
    app = new_app(schedule=ScheduleConfig(schedules=schedules), broker=broker)

    @app.task("report")
    async def report() -> TaskResult[int, TaskError]:
        return TaskResult(ok=1)

    scheduler = Scheduler(app)
    await scheduler.run_once()
    traffic.clear()

    assert await scheduler.run_once() == 0
    assert dict(traffic.statements) == {"horsies_due_schedules": 1}

    db.execute(
        "update horsies_schedule_state set next_run_at = now() "
        "where schedule_name in ('s1', 's2', 's3')"
    )
    traffic.clear()
    sent = await scheduler.run_once()

    # Each in a transaction of its own: begin, lock, a savepoint around the task, record, commit.
    assert sent == 3
    assert traffic.statements["horsies_due_schedules"] == 2
    assert traffic.statements["horsies_lock_schedule"] == sent
    assert traffic.statements["horsies_record_firing"] == sent
    assert traffic.statements.total() <= 2 + 7 * sent
