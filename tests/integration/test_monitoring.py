"""What the broker tells about tasks and workers, and repairs done by hand."""

import json
import logging
from collections.abc import AsyncIterator, Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from horsies import (
    BrokerErrorCode,
    DatabasePing,
    Horsies,
    Ok,
    PostgresBroker,
    PostgresConfig,
    TaskError,
    TaskResult,
    WorkerPong,
)
from horsies.operations import health
from horsies.result.broker import TransparentOk
from support.apps import bad, good, working
from support.database import FAILURE, OK, Database, retry_options
from support.eventually import eventually_async

NOWHERE = "postgresql://nobody@127.0.0.1:1/nowhere"
NewApp = Callable[..., Horsies]


@pytest.fixture
async def broker(database_url: str) -> AsyncIterator[PostgresBroker]:
    broker = PostgresBroker(PostgresConfig(database_url=database_url))
    yield broker
    await broker.close_async()


def ago(**duration: float) -> datetime:
    return datetime.now(UTC) - timedelta(**duration)


def running(db: Database, task_id: str, **columns: Any) -> str:
    values = {
        "status": "RUNNING",
        "claimed_by_worker_id": "w",
        "claimed_at": ago(minutes=10),
        "started_at": ago(minutes=10),
        "worker_hostname": "host",
        "worker_pid": 7,
        "worker_process_name": "worker-7",
    }
    return db.insert(id=task_id, **{**values, **columns})


def beat(db: Database, task_id: str, sent_at: datetime) -> None:
    db.insert(
        "horsies_heartbeats", task_id=task_id, sender_id="w:7", role="runner", sent_at=sent_at
    )


@pytest.mark.seed("S153")
async def test_stale_tasks_are_listed_oldest_sign_of_life_first(
    broker: PostgresBroker, db: Database
) -> None:
    for task_id, minutes in (("younger", 3), ("older", 5), ("alive", 1)):
        running(db, task_id)
        beat(db, task_id, ago(minutes=minutes))
    running(db, "silent")
    running(db, "new", started_at=ago(seconds=5))

    stale = await broker.get_stale_tasks()

    assert [row["id"] for row in stale] == ["silent", "older", "younger"]
    assert set(stale[0]) == {
        "id", "worker_hostname", "worker_pid", "worker_process_name", "last_heartbeat",
        "started_at", "task_name",
    }  # fmt: skip
    assert (len(stale), stale.ok_value[0]["last_heartbeat"]) == (3, None)
    assert len(await broker.get_stale_tasks(stale_threshold_minutes=4)) == 2


@pytest.mark.seed("S153")
async def test_stale_runs_are_given_up_by_hand_and_counted(
    broker: PostgresBroker, db: Database
) -> None:
    running(db, "failed")
    options = retry_options(codes=["WORKER_CRASHED"])
    running(db, "retried", max_retries=3, task_options=options)
    running(db, "alive", started_at=ago(minutes=4))

    count = await broker.mark_stale_tasks_as_failed()

    assert count == 2
    statuses = [db.status(task_id) for task_id in ("failed", "retried", "alive")]
    assert statuses == ["FAILED", "PENDING", "RUNNING"]
    assert int(await broker.mark_stale_tasks_as_failed(stale_threshold_ms=1_000)) == 1


@pytest.mark.seed("S153")
async def test_stale_claims_are_put_back_by_hand_and_counted(
    broker: PostgresBroker, db: Database
) -> None:
    for task_id, seconds in (("stale", 130), ("fresh", 110)):
        db.insert(
            id=task_id,
            status="CLAIMED",
            claimed=True,
            claimed_by_worker_id="w",
            claimed_at=ago(seconds=seconds),
            claim_expires_at=ago(seconds=-60),
        )

    count = await broker.requeue_stale_claimed()

    assert f"{count}" == "1"
    assert (db.status("stale"), db.status("fresh")) == ("PENDING", "CLAIMED")


async def test_overdue_tasks_are_listed_and_ended_by_hand_however_many(
    broker: PostgresBroker, db: Database
) -> None:
    db.insert(id="oldest", good_until=ago(hours=2))
    db.insert(id="in time", good_until=ago(hours=-1))
    db.execute(
        "insert into horsies_tasks (id, task_name, queue_name, enqueue_sha, good_until)"
        " select 't' || i, 'job', 'default', '', now() - interval '1 hour'"
        " from generate_series(1, 1500) i"
    )

    listed = good(await broker.get_expired_tasks())
    ended = await broker.expire_pending_tasks()

    assert (len(listed), listed[0]["id"]) == (1501, "oldest")
    assert set(listed[0]) == {
        "id", "task_name", "queue_name", "priority", "sent_at", "enqueued_at", "good_until",
        "expired_for",
    }  # fmt: skip
    assert listed[0]["expired_for"] > timedelta(hours=2)
    assert good(ended) == 1501
    assert db.statuses() == {"EXPIRED": 1501, "PENDING": 1}


async def test_running_tasks_are_grouped_by_executor_most_active_first(
    broker: PostgresBroker, db: Database
) -> None:
    running(db, "a", worker_pid=1)
    running(db, "b", worker_pid=2, started_at=ago(minutes=20))
    running(db, "c", worker_pid=2)
    sent_at = ago(minutes=1)
    beat(db, "c", sent_at)

    stats = good(await broker.get_worker_stats())

    assert [(row["worker_pid"], row["active_tasks"]) for row in stats] == [(2, 2), (1, 1)]
    assert stats[0]["latest_heartbeat"] == sent_at
    assert stats[0]["oldest_task_start"] < ago(minutes=19)
    assert set(stats[0]) == {
        "worker_hostname", "worker_pid", "worker_process_name", "active_tasks",
        "oldest_task_start", "latest_heartbeat",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("columns", "expected"),
    [
        ({}, ("Queued", None, None, None)),
        ({"status": "CLAIMED", "worker_pid": 7}, ("Claimed", None, None, None)),
        ({"status": "RUNNING", "worker_pid": 7}, ("In progress", None, None, 7)),
        (
            {"status": "COMPLETED", "worker_pid": 7, "result": OK},
            ("Completed", 1, None, None),
        ),
        ({"status": "FAILED", "result": FAILURE}, ("Failed", None, "BROKEN", None)),
        ({"status": "EXPIRED", "result": FAILURE}, ("Expired", None, "BROKEN", None)),
        ({"status": "CANCELLED"}, ("Cancelled", None, None, None)),
    ],
    ids=["waiting", "claimed", "running", "completed", "failed", "expired", "cancelled"],
)
async def test_status_shows_plain_values(
    columns: dict[str, Any], expected: tuple[Any, ...], broker: PostgresBroker, db: Database
) -> None:
    db.insert(id="one", **columns)

    status = good(broker.get_task_status("one"))

    shown = tuple(status[key] for key in ("status", "output", "error", "worker_pid"))
    assert shown == expected
    assert (status["id"], status["state"]) == ("one", columns.get("status", "PENDING"))
    assert status["log"] is None
    assert good(await broker.get_task_status_async("one")) == status


async def test_status_of_a_real_failure_has_code_message_traceback_and_log(
    new_app: NewApp,
) -> None:
    app = new_app()

    @app.task("break")
    async def break_it() -> TaskResult[int, TaskError]:
        logging.getLogger("job").warning("about to break")
        raise ValueError("no good")

    async with working(app):
        handle = good(await break_it.send_async())
        await handle.get_async(timeout_ms=20_000)
    status = good(app.get_broker().get_task_status(handle.task_id))

    assert status["error"].startswith("UNHANDLED_EXCEPTION: ")
    assert "no good" in status["error"]
    assert "Traceback" in status["error"]
    assert "about to break" in status["log"]
    assert json.loads(json.dumps(status)) == status


async def test_status_of_an_unknown_task_is_nothing(broker: PostgresBroker) -> None:
    assert good(broker.get_task_status("unknown")) is None
    assert good(broker.get_task_info("unknown")) is None


async def test_the_database_answers_a_ping(broker: PostgresBroker) -> None:
    pong = good(await broker.ping_async())

    assert isinstance(pong, DatabasePing)
    assert 0 < pong.round_trip_ms < 2_000
    assert abs(pong.database_time - datetime.now(UTC)) < timedelta(minutes=1)
    assert int(pong.server_version.split(".")[0]) >= 12


async def test_workers_answer_a_ping(app: Horsies) -> None:
    async def answers() -> list[WorkerPong]:
        pongs: list[WorkerPong] = good(await app.ping_workers_async(timeout_ms=300))
        return pongs

    async with working(app) as worker:
        (pong,) = await eventually_async(answers)

    assert isinstance(pong, WorkerPong)
    assert (pong.worker_id, pong.pid) == (
        worker.context.identity.worker_id,
        worker.context.identity.pid,
    )
    assert (pong.queues, pong.tasks_running) == (["default"], 0)
    assert pong.round_trip_ms > 0


@pytest.mark.parametrize(
    "payload",
    ["", "not json", "[]", "5", "{}", '{"ping_id": "other"}', '{"ping_id": "mine"}'],
)
def test_what_strangers_notify_is_no_answer(payload: str) -> None:
    assert health._pong(payload, "mine", 1.0) is None


async def test_no_worker_is_an_empty_answer(broker: PostgresBroker) -> None:
    assert good(broker.ping_workers(timeout_ms=50)) == []


async def test_pings_behind_a_pooler_without_a_direct_url_say_why_they_fail(
    database_url: str,
) -> None:
    config = PostgresConfig(database_url=database_url, pgbouncer_transaction_mode=True)
    broker = PostgresBroker(config)

    error = bad(broker.ping_workers(timeout_ms=50))

    assert error.code is BrokerErrorCode.WORKER_PING_FAILED
    assert "session_database_url" in error.message
    assert good(broker.ping())


async def test_operations_on_a_missing_database_are_errors_as_values() -> None:
    broker = PostgresBroker(PostgresConfig(database_url=NOWHERE))
    code = BrokerErrorCode

    answers = [
        (await broker.get_stale_tasks(), code.MONITORING_QUERY_FAILED),
        (await broker.get_worker_stats(), code.MONITORING_QUERY_FAILED),
        (await broker.get_expired_tasks(), code.MONITORING_QUERY_FAILED),
        (broker.get_task_info("x"), code.TASK_INFO_QUERY_FAILED),
        (broker.get_task_status("x"), code.TASK_INFO_QUERY_FAILED),
        (await broker.mark_stale_tasks_as_failed(), code.CLEANUP_FAILED),
        (await broker.requeue_stale_claimed(), code.CLEANUP_FAILED),
        (await broker.expire_pending_tasks(), code.CLEANUP_FAILED),
        (await broker.requeue_failed(), code.CLEANUP_FAILED),
        (await broker.cancel_task("x"), code.CLEANUP_FAILED),
        (broker.requeue_task_sync("x"), code.CLEANUP_FAILED),
        (broker.rerun_task_sync("x"), code.CLEANUP_FAILED),
        (broker.ping(), code.DB_PING_FAILED),
        (broker.ping_workers(), code.WORKER_PING_FAILED),
        (await broker.ensure_schema_initialized(), code.SCHEMA_INIT_FAILED),
    ]
    closed = [broker.close(), await broker.close_async()]

    for answer, expected in answers:
        assert (bad(answer).code, bad(answer).retryable) == (expected, True)
    assert [good(one) for one in closed] == [None, None]


@pytest.mark.seed("S153")
def test_a_transparent_ok_is_used_like_its_value() -> None:
    rows, number = TransparentOk([1, 2]), TransparentOk(3)

    assert (list(rows), rows[0], len(rows), bool(rows)) == ([1, 2], 1, 2, True)
    assert not TransparentOk([])
    assert (int(number), str(number), f"{number:>3d}", bool(number)) == (3, "3", "  3", True)
    assert number == 3
    assert 2 < number <= 3
    assert number >= 3 > TransparentOk(0)
    assert isinstance(number, Ok)
    assert (number.is_ok(), number.unwrap(), number == Ok(3)) == (True, 3, True)
