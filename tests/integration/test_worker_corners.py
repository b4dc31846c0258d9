"""A worker where things are unusual: names, characters, sizes, poolers, limits."""

import asyncio
import logging
import re
import threading
import time
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from horsies import Horsies
from horsies.config import CustomQueueConfig, PostgresConfig, QueueMode
from horsies.result import TaskError, TaskResult
from support.apps import good, working
from support.database import Database
from support.eventually import eventually_async

NewApp = Callable[..., Horsies]
GUIDE = Path(__file__).parents[2] / "docs" / "how-to" / "run-workers.md"


def add_echo(app: Horsies, **options: Any) -> Any:
    @app.task("echo", **options)
    async def echo(text: str) -> TaskResult[str, TaskError]:
        return TaskResult(ok=text)

    return echo


@pytest.mark.parametrize(
    "name", ["q" * 100, 'Ünï "quoted"', "a'; drop table horsies_tasks; --", "é" * 30, "UPPER"]
)
async def test_any_queue_name_is_served_at_once(new_app: NewApp, db: Database, name: str) -> None:
    app = new_app(queue_mode=QueueMode.CUSTOM, custom_queues=[CustomQueueConfig(name=name)])
    echo = add_echo(app, queue_name=name)

    async with working(app) as worker:
        first = good(await echo.send_async("x"))
        await first.get_async(10_000)
        handle = good(await echo.send_async("y"))
        result = await handle.get_async(10_000)

    row = db.task(handle.task_id)
    assert (result.ok_value, row["queue_name"]) == ("y", name)
    assert row["started_at"] - row["enqueued_at"] < timedelta(seconds=2), "not left to the poll"
    assert [queue.name for queue in worker.context.queues] == [name]


@pytest.mark.parametrize(
    "text",
    ["\x00", "a\x00b\x01", "{}\",'\\\\", "\N{GRINNING FACE}\u2028", "NULL", "x" * 5_000_000],
    ids=["nul", "control", "array signs", "astral", "null word", "five megabytes"],
)
async def test_any_text_comes_back_as_it_was_sent(new_app: NewApp, text: str) -> None:
    app = new_app()
    echo = add_echo(app)

    async with working(app):
        result = await good(await echo.send_async(text)).get_async(15_000)

    assert result.ok_value == text


async def test_nul_in_messages_and_logs_is_made_visible(new_app: NewApp, db: Database) -> None:
    app = new_app()

    @app.task("nul")
    async def nul() -> TaskResult[int, TaskError]:
        logging.getLogger("shop").warning("log\x00line")
        return TaskResult(err=TaskError(error_code="BROKEN", message="bad\x00byte"))

    handle = good(await nul.send_async())
    async with working(app):
        result = await handle.get_async(10_000)

    assert result.err_value.message == "bad\x00byte"
    (attempt,) = db.attempts(handle.task_id)
    log = db.value("select log from horsies_task_logs")
    assert re.fullmatch("bad.byte", attempt["error_message"])
    assert re.search("log.line", log)


async def test_behind_a_pooler_everything_works_by_polling(
    new_app: NewApp, db: Database, database_url: str
) -> None:
    broker = PostgresConfig(database_url=database_url, pgbouncer_transaction_mode=True)
    app = new_app(broker=broker, resilience={"notify_poll_interval_ms": 1_000})
    echo = add_echo(app)

    async with working(app):
        result = await good(await echo.send_async("x")).get_async(15_000)
        listeners = db.value(
            "select count(*) from pg_stat_activity where datname = current_database() "
            "and application_name = 'horsies listener'"
        )

    assert result.ok_value == "x"
    assert listeners == 0


async def test_claims_per_worker_are_limited(new_app: NewApp, db: Database) -> None:
    app, is_open = new_app(prefetch_buffer=10, claim_lease_ms=60_000), asyncio.Event()

    @app.task("held")
    async def held(number: int) -> TaskResult[int, TaskError]:
        await is_open.wait()
        return TaskResult(ok=number)

    good(await held.send_many_async((number,) for number in range(20)))

    async def is_full() -> bool:
        return db.statuses() == {"RUNNING": 2, "CLAIMED": 3, "PENDING": 15}

    async with working(app, concurrency=2, max_claim_per_worker=3):
        await eventually_async(is_full)
        is_open.set()

        async def is_done() -> bool:
            return db.statuses() == {"COMPLETED": 20}

        await eventually_async(is_done)

    assert db.value("select count(*) from horsies_task_attempts") == 20


async def test_row_changed_by_hand_is_run_as_it_stands(new_app: NewApp, db: Database) -> None:
    app = new_app()
    echo = add_echo(app)
    handle = good(await echo.send_async("before"))
    db.execute("""update horsies_tasks set args = '["after"]', priority = -7""")

    async with working(app):
        result = await handle.get_async(10_000)

    assert result.ok_value == "after"


async def test_task_deleted_while_it_runs_does_not_disturb_the_worker(
    new_app: NewApp, db: Database, caplog: pytest.LogCaptureFixture
) -> None:
    app, is_open, inside = new_app(), asyncio.Event(), asyncio.Event()
    echo = add_echo(app)

    @app.task("held")
    async def held() -> TaskResult[int, TaskError]:
        inside.set()
        await is_open.wait()
        return TaskResult(ok=1)

    async with working(app):
        gone = good(await held.send_async())
        await asyncio.wait_for(inside.wait(), 10)
        db.execute("delete from horsies_tasks where id = %s", gone.task_id)
        is_open.set()
        result = await good(await echo.send_async("still here")).get_async(10_000)

    assert result.ok_value == "still here"
    assert "claim was lost" in caplog.text


async def test_truncated_table_does_not_disturb_the_worker(new_app: NewApp, db: Database) -> None:
    app = new_app()
    echo = add_echo(app)

    async with working(app):
        await good(await echo.send_async("x")).get_async(10_000)
        db.execute("truncate horsies_tasks cascade")
        result = await good(await echo.send_async("y")).get_async(10_000)

    assert result.ok_value == "y"


async def test_row_older_than_all_that_was_claimed_is_found_within_a_poll(
    new_app: NewApp, db: Database
) -> None:
    app = new_app(resilience={"notify_poll_interval_ms": 2_000})
    echo = add_echo(app)

    async with working(app):
        for text in "abc":
            await good(await echo.send_async(text)).get_async(10_000)
        task_id = db.insert(
            task_name="echo",
            args='["old"]',
            enqueued_at=db.value("select now() - interval '1 hour'"),
        )
        result = await app.handle(task_id).get_async(10_000)

    row = db.task(task_id)
    assert result.ok_value == "old"
    assert row["started_at"] - row["created_at"] < timedelta(seconds=3)


async def test_late_task_among_many_of_other_names_is_found(new_app: NewApp, db: Database) -> None:
    """Its transaction was open for long: others have gone past its place meanwhile."""
    app = new_app(unknown_tasks="leave")
    echo = add_echo(app)
    foreign = (
        "insert into horsies_tasks (id, task_name, queue_name, enqueue_sha, enqueued_at) "
        "select 'foreign-' || n, 'removed', 'default', '', "
        "now() - interval '1 hour' + n * interval '1 ms' from generate_series(1, 5000) n"
    )
    db.execute(foreign)

    async with working(app):
        first = good(await echo.send_async("x"))
        await first.get_async(20_000)
        # Behind the 3,000th of the others, as if it had been sent then.
        late = (
            "insert into horsies_tasks (id, task_name, queue_name, enqueue_sha, args, enqueued_at) "
            "select 'late', 'echo', 'default', '', args, "
            "now() - interval '1 hour' + interval '3 s' from horsies_tasks where id = %s"
        )
        db.execute(late, first.task_id)

        await eventually_async(lambda: asyncio.to_thread(lambda: db.status("late") == "COMPLETED"))

    assert db.statuses()["PENDING"] == 5000


async def test_claims_given_back_by_one_worker_are_run_by_another_at_once(
    new_app: NewApp, db: Database
) -> None:
    app, is_open = new_app(prefetch_buffer=5, claim_lease_ms=60_000), asyncio.Event()
    inside: list[int] = []

    @app.task("held")
    async def held(number: int) -> TaskResult[int, TaskError]:
        inside.append(number)
        await is_open.wait()
        return TaskResult(ok=number)

    async def is_prefetched() -> bool:
        return db.statuses().get("CLAIMED") == 3

    async def all_inside() -> bool:
        return len(inside) == 4

    async with working(app, concurrency=1) as first:
        handles = good(await held.send_many_async((number,) for number in range(4)))
        await eventually_async(is_prefetched)
        async with working(app, concurrency=4):
            first.stop()
            await eventually_async(all_inside)
            is_open.set()
            results = [await handle.get_async(10_000) for handle in handles]

    given_back = db.task(handles[1].task_id)
    assert [result.ok_value for result in results] == [0, 1, 2, 3]
    assert sorted(inside) == [0, 1, 2, 3]
    assert given_back["started_at"] - given_back["enqueued_at"] < timedelta(seconds=4)


async def test_blocked_event_loop_is_told_with_its_place(
    new_app: NewApp, caplog: pytest.LogCaptureFixture
) -> None:
    app = new_app()

    @app.task("blocks")
    async def blocks() -> TaskResult[None, TaskError]:
        until = time.monotonic() + 20
        while not caplog.text and time.monotonic() < until:
            threading.Event().wait(0.1)  # what is tested: it holds up the whole loop
        return TaskResult(ok=None)

    with caplog.at_level(logging.WARNING, "horsies.worker"):
        async with working(app):
            await good(await blocks.send_async()).get_async(30_000)

    (told,) = [
        record.getMessage() for record in caplog.records if "has been blocked" in record.message
    ]
    assert "test_worker_corners.py" in told
    assert "in blocks" in told
    # The guide quotes it, with another time and place.
    place = re.compile(r"for [\d.]+ s at \S+ in \w+")
    guide = place.sub("", GUIDE.read_text())
    assert place.sub("", told) in guide


async def test_nothing_is_claimed_before_peers_know_the_worker(
    new_app: NewApp, db: Database
) -> None:
    """Killed in between, its runs would wait for the threshold: nobody could say whose they are."""
    app = new_app()
    handle = good(await add_echo(app).send_async("x"))

    async def is_claimed() -> bool:
        return bool(db.task(handle.task_id)["status"] != "PENDING")

    db.execute("begin")
    db.execute("lock table horsies_worker_states in exclusive mode")
    async with working(app):
        with pytest.raises(AssertionError, match="did not happen"):
            await eventually_async(is_claimed, within=0.5)
        db.execute("rollback")
        result = await handle.get_async(10_000)

    assert result.ok_value == "x"


async def test_a_worker_that_peers_never_knew_can_be_stopped(new_app: NewApp, db: Database) -> None:
    db.execute("begin")
    db.execute("lock table horsies_worker_states in exclusive mode")

    async with working(new_app()) as worker:
        pass

    assert worker.stopping.is_set()
