"""The pages of schedules, failures and maintenance, and what operators do there."""

from datetime import timedelta

from horsies import (
    Horsies,
    IntervalSchedule,
    ScheduleConfig,
    TaskError,
    TaskFailed,
    TaskResult,
    TaskSchedule,
)
from support.apps import good, make_app, working
from support.web import clicking

HOURLY = TaskSchedule(
    name="hourly/ä", task_name="charge", args=(1,), pattern=IntervalSchedule(hours=1)
)


def make(database_url: str) -> Horsies:
    config = ScheduleConfig(schedules=[HOURLY])
    app = make_app(database_url, schedule=config, allow_plain_returns=True)

    @app.task("charge")
    async def charge(order: int) -> TaskResult[int, TaskError]:
        if order % 2:
            raise ValueError(f"<script>order {order}</script>")
        raise TaskFailed("CARD_DECLINED", f"card {order}")

    return app


async def test_schedules_are_run_paused_and_backfilled(database_url: str) -> None:
    app = make(database_url)
    here = "/schedules/hourly~2F~C3~A4"

    async with clicking(app) as clicks:
        listed = await clicks.open("/schedules")
        assert "every hour" in listed
        assert here in listed
        assert "is sent once" in await clicks.send(f"{here}/run")
        (sent,) = good(await app.operations.tasks_async()).tasks
        assert f'href="{here}"' in await clicks.open(f"/tasks/{sent.id}")
        assert "is paused." in await clicks.send(f"{here}/pause", reason="holidays")
        paused = await clicks.open(here)
        assert "holidays" in paused
        assert "None while it is paused." in paused
        assert "goes on." in await clicks.send(f"{here}/resume")
        assert "was not paused" in await clicks.send(f"{here}/resume")
        span = {"start": "2025-01-01T00:00", "end": "2025-01-01T05:00"}
        preview = await clicks.send(f"{here}/backfill", **span)
        assert "Send 5 run(s)" in preview
        assert good(await app.operations.count_async()).number == 1, "a preview sends nothing"
        assert "5 run(s)" in await clicks.send(f"{here}/backfill", sure="yes", **span)
        assert "Give both times" in await clicks.send(f"{here}/backfill", 400, start="soon")
        shown = await clicks.open(here)
        audit = await clicks.open("/maintenance")
        assert "There is no schedule none." in await clicks.open("/schedules/none", 404)

    assert shown.count("<tr data-key") == 6
    assert shown.count("<li><time") == 10
    assert audit.count("<td>ann</td>") == 5


async def test_like_failures_are_one_and_go_back_together(database_url: str) -> None:
    app = make(database_url)
    charge = app.tasks["charge"]

    async with working(app), clicking(app) as clicks:
        for order in range(20):
            good(await charge.send_async(order))
        await _all_failed(app, 20)
        page = await clicks.open("/failures?span=1h")
        assert page.count('aria-label="charge:') == 2
        assert page.count("<b>10</b>") == 2
        assert "<script>order" not in page
        assert "&lt;script&gt;order" in page
        key = good(await app.operations.failures_async())[0].key
        said = await clicks.send("/failures/requeue", key=key, span="1h")
        assert "10 task(s) went back to their queues." in said
        assert "incomplete" in await clicks.send("/failures/requeue", 400, key=key)
        assert "is no length of time" in await clicks.open("/failures?span=ever", 400)
        await _all_failed(app, 20)


async def _all_failed(app: Horsies, number: int) -> None:
    from horsies import parse_filter
    from support.eventually import eventually_async

    async def have_failed() -> bool:
        return (
            good(await app.operations.count_async(parse_filter("status:failed"))).number == number
        )

    await eventually_async(have_failed, within=20)


async def test_nothing_is_said_where_nothing_is(database_url: str) -> None:
    app = make_app(database_url)

    async with clicking(app) as clicks:
        assert "Nothing is scheduled" in await clicks.open("/schedules")
        assert "Nothing has failed" in await clicks.open("/failures")
        assert "Nobody has steered anything yet." in await clicks.open("/maintenance")
    assert good(await app.operations.failures_async(window=timedelta(days=1))) == []
