"""Many schedules: what a pass over the due ones costs, and what an idle scheduler asks."""

import asyncio
import statistics
import time
from dataclasses import dataclass

from benchmarks import stage
from benchmarks.stage import connect
from horsies import (
    AppConfig,
    Horsies,
    IntervalSchedule,
    PostgresConfig,
    ScheduleConfig,
    TaskError,
    TaskResult,
    TaskSchedule,
)
from horsies.scheduling.process import fire_until
from horsies.scheduling.scheduler import Scheduler

_MAKE_DUE = """
update horsies_schedule_state set next_run_at = now() where schedule_name = any (
    select 's' || n from generate_series(1, %s) n)
"""


@dataclass(frozen=True, slots=True)
class Passes:
    """The median pass with due schedules and without, and statements per minute at rest."""

    pass_ms: float
    idle_pass_ms: float
    statements_per_min: float


def measured(url: str, count: int, due: int, passes: int, seconds: float) -> Passes:
    """Passes of a scheduler with `count` schedules of which `due` are due, then its rest."""
    return asyncio.run(_measured(url, count, due, passes, seconds))


async def _measured(url: str, count: int, due: int, passes: int, seconds: float) -> Passes:
    app = _app(url, count)
    scheduler = Scheduler(app)
    database = app.get_broker().database
    await database.ensure_schema_async()
    await scheduler.run_once()
    busy: list[float] = []
    idle: list[float] = []
    with connect(url) as connection:
        connection.execute("analyze")
        for _ in range(passes):
            connection.execute(_MAKE_DUE, [due])
            started = time.perf_counter()
            sent = await scheduler.run_once()
            busy.append(time.perf_counter() - started)
            assert sent == due
            started = time.perf_counter()
            await scheduler.run_once()
            idle.append(time.perf_counter() - started)
        stopping, woken = asyncio.Event(), asyncio.Event()
        async with asyncio.TaskGroup() as group:
            group.create_task(fire_until(stopping, woken, scheduler, database))
            await asyncio.sleep(5)  # past what the listener says at its start
            before = stage.counters(connection)
            await asyncio.sleep(seconds)
            after = stage.counters(connection)
            stopping.set()
            woken.set()
    await app.get_broker().close_async()
    # Of ours: the four statements of one reading.
    at_rest = (after.statements - before.statements - 4) * 60 / seconds
    return Passes(statistics.median(busy) * 1000, statistics.median(idle) * 1000, at_rest)


def _app(url: str, count: int) -> Horsies:
    every = IntervalSchedule(hours=1)
    schedules = [
        TaskSchedule(name=f"s{number}", task_name="report", pattern=every)
        for number in range(1, count + 1)
    ]
    app = Horsies(
        AppConfig(
            broker=PostgresConfig(database_url=url), schedule=ScheduleConfig(schedules=schedules)
        )
    )

    @app.task("report")
    async def report() -> TaskResult[int, TaskError]:
        return TaskResult(ok=1)

    return app
