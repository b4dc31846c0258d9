"""Workers record how queues fare, and `app.operations.queue_history()` reads it."""

import logging
from datetime import timedelta

import pytest

from horsies import Horsies
from support.apps import bad, good, working
from support.database import Database
from support.eventually import eventually_async


async def recorded(app: Horsies, db: Database) -> None:
    """Ended tasks, and a worker that has made up for the hour before."""
    handles = [good(app.tasks["add"].send(number)) for number in range(3)]
    async with working(app):
        for handle in handles:
            assert (await handle.get_async(timeout_ms=10_000)).is_ok()

        async def is_recorded() -> bool:
            rows = db.execute(
                "select sum(completed_count) as n from horsies_queue_history where step_s = 10"
            )
            return rows[0]["n"] == 3

        await eventually_async(is_recorded, within=30)


async def test_a_worker_records_what_charts_show(app: Horsies, db: Database) -> None:
    await recorded(app, db)
    # Only steps that are over are shown.
    db.execute("update horsies_queue_history set starts_at = starts_at - interval '1 minute'")

    history = good(await app.operations.queue_history_async(timedelta(minutes=5)))
    other = good(app.operations.queue_history(timedelta(minutes=5), "mail"))

    points = [point for point in history.points if point is not None]
    assert (history.step, len(history.starts)) == (timedelta(seconds=10), 30)
    assert sum(point.completed_count for point in points) == 3
    assert all(len(point.start_latencies) == 3 for point in points if point.completed_count)
    assert sum(point.completed_count for point in other.points if point is not None) == 0


def test_what_nobody_recorded_is_missing(app: Horsies) -> None:
    history = good(app.operations.queue_history(timedelta(days=7)))

    assert history.points == [None] * 84


@pytest.mark.parametrize("window", [timedelta(seconds=1), timedelta(days=32)])
def test_a_window_out_of_range_is_refused(app: Horsies, window: timedelta) -> None:
    error = bad(app.operations.queue_history(window))

    assert "1 minute to 31 days" in error.message


async def test_a_worker_without_rights_on_the_history_works_on(
    app: Horsies, db: Database, caplog: pytest.LogCaptureFixture
) -> None:
    db.execute("drop table horsies_queue_history")

    handle = good(app.tasks["add"].send(1))
    async with working(app):

        async def is_told() -> bool:
            return "the history of queues cannot be recorded" in caplog.text

        with caplog.at_level(logging.WARNING):
            await eventually_async(is_told)
            result = await handle.get_async(timeout_ms=10_000)

    assert result.is_ok()
