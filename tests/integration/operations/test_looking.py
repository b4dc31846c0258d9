"""One task in full, queues, task names and workers as operators see them."""

import asyncio
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import psycopg
import pytest
from click.testing import CliRunner
from pydantic import SecretStr

from horsies import AppConfig, Horsies, PostgresConfig, TaskError, TaskResult
from horsies.cli.main import horsies
from horsies.codec.secrecy import MASK
from horsies.operations.queues import WorkerInfo
from horsies.operations.reading import recent_ends
from support.apps import bad, good, working
from support.database import Database, retry_options
from support.eventually import eventually_async

NewApp = Callable[..., Horsies]


def ago(**duration: float) -> datetime:
    return datetime.now(UTC) - timedelta(**duration)


def snapshot(db: Database, worker_id: str, **columns: Any) -> None:
    values = {
        "worker_id": worker_id,
        "snapshot_at": ago(seconds=1),
        "hostname": "host-a",
        "pid": 1000,
        "processes": 1,
        "queues": ["default"],
        "max_claim_batch": 0,
        "max_claim_per_worker": 0,
        "worker_started_at": ago(hours=1),
    }
    db.insert("horsies_worker_states", **{**values, **columns})


async def test_a_task_is_told_from_its_sending_to_its_end(new_app: NewApp) -> None:
    app = new_app()

    @app.task("shout", execution="blocking")
    def shout(text: str) -> TaskResult[str, TaskError]:
        app.logger.warning("shouting %s", text)
        return TaskResult(ok=text.upper())

    async with working(app):
        handle = good(await shout.send_async("hey"))
        await handle.get_async(timeout_ms=10_000)

    task = good(await app.operations.task_async(handle.task_id[:30]))

    assert task.info.result.ok_value == "HEY"
    assert task.row.args == '["hey"]' or '"hey"' in task.row.kwargs
    assert "shouting hey" in task.logs[0].log
    assert [moment.what.split(" on ")[0].split(" after ")[0] for moment in task.timeline][-2:] == [
        "attempt 1 began",
        "attempt 1 completed",
    ]


async def test_a_secret_reaches_its_task_and_no_viewer(
    new_app: NewApp, monkeypatch: pytest.MonkeyPatch
) -> None:
    app = new_app(allow_plain_returns=True)
    arrived: list[str] = []

    @app.task("unlock")
    async def unlock(door: int, code: SecretStr) -> None:
        arrived.append(code.get_secret_value())

    async with working(app):
        handle = good(await unlock.send_async(7, code=SecretStr("open sesame")))
        await handle.get_async(timeout_ms=10_000)
    monkeypatch.setattr("horsies.cli.operating.find_app", lambda _: app)
    shown = [
        await asyncio.to_thread(CliRunner().invoke, horsies, ["task", handle.task_id, *options])
        for options in ([], ["--json"])
    ]

    assert arrived == ["open sesame"]
    assert [(one.exit_code, "sesame" in one.output) for one in shown] == [(0, False)] * 2
    assert MASK in shown[0].output


def test_a_retried_task_tells_why_and_what_comes(app: Horsies, db: Database) -> None:
    claim = db.running(
        enqueued_at=ago(minutes=1),
        max_retries=3,
        task_options=retry_options(),
        good_until=ago(hours=-2),
        sent_at=ago(hours=1),
    )
    db.fail(claim, retry_delay_s=60)

    told = [moment.what for moment in good(app.operations.task(claim.task_id)).timeline]

    assert told[0] == "sent"
    assert told[-3].startswith("attempt 1 failed with BROKEN after")
    assert told[-3].endswith("to be retried")
    assert told[-2:] == ["due for its retry", "deadline for its start"]


def test_an_unknown_task_is_an_error_and_not_an_exception(app: Horsies) -> None:
    assert bad(app.operations.task("nothing")).message == "there is no task nothing"


def test_a_queue_tells_its_backlog_and_its_age(app: Horsies, db: Database) -> None:
    for priority, age in ((1, 5), (100, 60), (100, 7)):
        db.insert(queue_name="mail", priority=priority, enqueued_at=ago(seconds=age))
    db.insert(queue_name="mail", enqueued_at=ago(hours=-1))
    db.insert(queue_name="mail", enqueued_at=datetime.max.replace(tzinfo=UTC))
    db.insert(queue_name="mail", status="RUNNING", claimed_at=ago(seconds=1))
    db.insert(queue_name="mail", status="CLAIMED", claimed_at=ago(seconds=1))

    empty, mail = good(app.operations.queues())

    assert (empty.name, empty.due.number, empty.waiting_for) == ("default", 0, None)
    assert (mail.due.number, mail.later.number) == (3, 2)
    assert (mail.running_count, mail.claimed_count, mail.worker_count) == (1, 1, 0)
    assert timedelta(seconds=59) < mail.waiting_for < timedelta(seconds=90)
    assert ago(hours=-0.9) < mail.next_due_at < ago(hours=-1.1)


def test_rates_and_percentiles_are_of_what_ended_in_the_window(app: Horsies, db: Database) -> None:
    for n in range(1, 101):
        start = ago(minutes=5)
        db.insert(
            status="COMPLETED",
            enqueued_at=start - timedelta(seconds=n),
            started_at=start,
            completed_at=start + timedelta(seconds=n / 10),
        )
    db.insert(status="FAILED", failed_at=ago(minutes=1), task_name="other")
    db.insert(status="COMPLETED", completed_at=ago(hours=2), task_name="old")

    stats = {row.name: row.pace for row in good(app.operations.task_stats())}
    total = good(app.operations.status()).pace

    assert set(stats) == {"job", "other"}
    job = stats["job"]
    assert (job.completed_count, job.failed_count) == (100, 0)
    assert job.start_latencies == pytest.approx([50.5, 95.05, 99.01])
    assert job.run_times == pytest.approx([5.05, 9.505, 9.901])
    assert job.per_minute == pytest.approx(100 / 60, rel=0.01)
    assert (total.completed_count, total.failed_count) == (100, 1)


def test_rates_are_of_the_time_that_the_rows_read_fill(db: Database) -> None:
    """More than are read ended lately, in two queues by turns; failures are few and older."""
    for second in range(40):
        queue = "even" if second % 2 == 0 else "odd"
        db.insert(status="COMPLETED", completed_at=ago(seconds=second), queue_name=queue)
    db.insert(status="FAILED", failed_at=ago(minutes=30), queue_name="odd")

    found = db.run(recent_ends("queue", timedelta(hours=1), 20))

    rates = {row.name: (row.completed_count, row.failed_count, row.per_minute) for row in found}
    assert rates["even"] == (10, 0, pytest.approx(60 * 10 / 19, rel=0.1))
    assert rates["odd"] == (10, 1, pytest.approx(60 * 10 / 19 + 1 / 60, rel=0.1))


def test_workers_are_alive_silent_or_gone(app: Horsies, db: Database) -> None:
    snapshot(db, "alive")
    snapshot(db, "silent", snapshot_at=ago(seconds=31), pid=1001)
    snapshot(db, "gone", holds_lock=True, pid=1002)
    snapshot(db, "forgotten", snapshot_at=ago(hours=2), pid=1003)
    task_id = db.insert(status="RUNNING", claimed_by_worker_id="alive", claimed_at=ago(seconds=1))

    found = {worker.snapshot.worker_id: worker for worker in good(app.operations.workers())}

    assert {name: worker.state for name, worker in found.items()} == {
        "alive": "alive",
        "silent": "silent",
        "gone": "gone",
    }
    assert [task.id for task in found["alive"].tasks] == [task_id]


async def test_a_real_worker_is_seen_with_what_it_serves(app: Horsies) -> None:
    async def seen() -> list[WorkerInfo]:
        return list(good(await app.operations.workers_async()))

    async with working(app):
        (worker,) = await eventually_async(seen)
        (queue,) = good(await app.operations.queues_async())

    assert (worker.state, worker.snapshot.queues) == ("alive", ["default"])
    assert (queue.name, queue.worker_count) == ("default", 1)


def test_looking_needs_no_right_to_write(database_url: str, db: Database) -> None:
    task_id = db.insert(enqueued_at=ago(seconds=1))
    name = psycopg.conninfo.conninfo_to_dict(database_url)["dbname"]
    db.execute(f'alter database "{name}" set default_transaction_read_only = on')
    app = Horsies(AppConfig(broker=PostgresConfig(database_url=database_url)))

    looks = app.operations
    try:
        assert [row.id for row in good(looks.tasks()).tasks] == [task_id]
        assert good(looks.count()).number == 1
        assert good(looks.task(task_id)).info.task_id == task_id
        assert [queue.due.number for queue in good(looks.queues())] == [1]
        assert (good(looks.workers()), good(looks.status()).workers) == ([], [])
        assert good(looks.workflows()).workflows == []
    finally:
        app.get_broker().close()
