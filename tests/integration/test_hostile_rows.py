"""A row is foreign input: whatever it holds, it may cost its own task the run, and nothing else."""

import asyncio
import json
import logging
from collections.abc import Callable
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

import psycopg
import pytest

from horsies import Horsies
from horsies.config import RecoveryConfig
from horsies.recovery.statements import return_unheld_tasks
from horsies.result import TaskError, TaskResult
from horsies.worker.held_task import Completion
from horsies.worker.statements import interrupt_tasks
from support.apps import good, working
from support.database import FAILURE, Database, retry_options
from support.eventually import eventually_async

NewApp = Callable[..., Horsies]


def add_echo(app: Horsies) -> Any:
    @app.task("echo")
    async def echo(number: int) -> TaskResult[int, TaskError]:
        return TaskResult(ok=number)

    return echo


def waiting_row(db: Database, **columns: Any) -> str:
    values = {"task_name": "echo", "args": "[1]", "enqueued_at": datetime.now(UTC)}
    return db.insert(**values | columns)


HOSTILE = {
    "enqueued before time began": {"enqueued_at": "-infinity"},
    "enqueued before Christ": {"enqueued_at": "4000-01-01 00:00:00 BC"},
    "sent after the end": {"sent_at": "infinity"},
    "created in the year 200000": {"created_at": "200000-01-01"},
    "retried as often as can be counted": {"retry_count": 2_147_483_647},
    "retried less than never": {"retry_count": -2_147_483_648},
    "may be retried without end": {"max_retries": 2_147_483_647, "retry_count": -5},
    "a limit of ages": {"task_options": json.dumps({"timeout_ms": 10**400})},
    "a negative limit": {"task_options": json.dumps({"timeout_ms": -(10**30)})},
    "a limit in words": {"task_options": json.dumps({"timeout_ms": "soon"})},
    "options that are no JSON": {"task_options": "{{"},
    "options that are a number": {"task_options": "7"},
    "an id that opens an array": {"id": "{"},
    "an id with a comma": {"id": "a,b"},
    "an id with a quote": {"id": '"\\'},
    "an id of four-byte characters": {"id": "\U0001f40e" * 36},
    "an id that is a path": {"id": "../../../../etc/passwd"},
    "arguments that are no JSON": {"args": "[["},
    "arguments nested without end": {"args": "[" * 5_000 + "]" * 5_000},
    "an owner that is a path": {"claimed_by_worker_id": "/etc/passwd"},
    "a finished time before it starts": {"completed_at": "-infinity", "failed_at": "infinity"},
    "a deadline of ages": {"good_until": "infinity"},
}


@pytest.mark.parametrize("name", HOSTILE)
async def test_hostile_row_costs_at_most_its_own_run(
    new_app: NewApp, db: Database, name: str
) -> None:
    app = new_app()
    echo = add_echo(app)
    await app.get_broker().ensure_schema_initialized()
    hostile = waiting_row(db, **HOSTILE[name])
    handles = [good(await echo.send_async(number)) for number in range(3)]

    async with working(app):
        results = [await handle.get_async(10_000) for handle in handles]
        ended = await app.handle(hostile).get_async(10_000)

    assert [result.ok_value for result in results] == [0, 1, 2]
    if ended.is_ok():
        assert ended.ok_value == 1
    else:
        assert str(ended.err_value.error_code) == "WORKER_SERIALIZATION_ERROR"
    assert len(db.attempts(hostile)) == 1


async def test_neighbours_whose_ids_look_like_one_array_keep_their_own_results(
    new_app: NewApp, db: Database
) -> None:
    app = new_app()
    add_echo(app)
    await app.get_broker().ensure_schema_initialized()
    ids = ["a", "a,b", "b", "{a}", '"a"', "NULL"]
    for number, task_id in enumerate(ids):
        waiting_row(db, id=task_id, args=f"[{number}]")

    async with working(app):
        results = [await app.handle(task_id).get_async(10_000) for task_id in ids]

    assert [result.ok_value for result in results] == list(range(len(ids)))


@pytest.mark.parametrize("end", ["COMPLETED", "FAILED"])
async def test_task_reset_by_hand_runs_again_under_the_next_number(
    new_app: NewApp, db: Database, end: str
) -> None:
    app = new_app(resilience={"notify_poll_interval_ms": 1_000})

    @app.task("either")
    async def either(ok: bool) -> TaskResult[int, TaskError]:
        return TaskResult(ok=1) if ok else TaskResult(err=TaskError(error_code="NO", message="no"))

    async with working(app):
        handle = good(await either.send_async(end == "COMPLETED"))
        await handle.get_async(10_000)
        for _ in range(2):
            db.execute(
                "update horsies_tasks set status = 'PENDING', retry_count = 0, completed_at = null,"
                " failed_at = null, result = null where id = %s",
                handle.task_id,
            )
            again = app.handle(handle.task_id)
            await again.get_async(10_000)
        other = await good(await either.send_async(True)).get_async(10_000)

    assert [attempt["attempt"] for attempt in db.attempts(handle.task_id)] == [1, 2, 3]
    assert db.status(handle.task_id) == end
    assert other.ok_value == 1


async def test_lost_run_of_a_task_reset_by_hand_is_ended_all_the_same(
    new_app: NewApp, db: Database
) -> None:
    app = new_app(recovery=RecoveryConfig(check_interval_ms=1_000))
    await app.get_broker().ensure_schema_initialized()
    long_ago = datetime.now(UTC) - timedelta(hours=1)
    lost = waiting_row(
        db, status="RUNNING", claimed_by_worker_id="gone", claimed_at=long_ago, started_at=long_ago,
        worker_pid=-7, worker_hostname="here", task_options=retry_options(codes=["WORKER_CRASHED"]),
        max_retries=3,
    )  # fmt: skip
    attempt = {"task_id": lost, "outcome": "FAILED", "started_at": long_ago}
    for number in (1, 2):
        db.insert("horsies_task_attempts", attempt=number, finished_at=long_ago, **attempt)

    changed = good(await app.get_broker().mark_stale_tasks_as_failed(1_000))

    row = db.task(lost)
    assert int(changed) == 1
    assert [one["attempt"] for one in db.attempts(lost)] == [1, 2, 3]
    assert (row["status"], row["retry_count"], row["max_retries"]) == ("PENDING", 3, 5)


STUCK = {
    "started in eternity": {"started_at": "infinity"},
    "started before time": {"started_at": "-infinity"},
    "finalized in eternity": {"finalizing_at": "infinity"},
    "started in the year 5000": {"started_at": "5000-01-01"},
    "started in the year 200000": {"started_at": "200000-01-01"},
    "finalized in the year 200000": {"finalizing_at": "200000-01-01"},
    "claimed in eternity": {"claimed_at": "infinity"},
    "a process of no number": {"worker_pid": -1},
    "a process of every number": {"worker_pid": 2_147_483_647},
    "counted to the end": {"retry_count": 2_147_483_647},
    "an owner that is a path": {"claimed_by_worker_id": "/etc/passwd"},
    "a policy of nonsense": {"task_options": retry_options(3), "retry_count": -9, "max_retries": 9},
}


@pytest.mark.parametrize("name", STUCK)
async def test_run_in_any_condition_is_ended_and_stops_no_service(
    new_app: NewApp, db: Database, name: str, caplog: pytest.LogCaptureFixture
) -> None:
    app = new_app(recovery=RecoveryConfig(check_interval_ms=1_000))
    echo = add_echo(app)
    await app.get_broker().ensure_schema_initialized()
    long_ago = datetime.now(UTC) - timedelta(hours=1)
    columns = {
        "status": "RUNNING", "claimed_by_worker_id": "gone", "claimed_at": long_ago,
        "started_at": long_ago, "worker_pid": 1, "worker_hostname": "elsewhere",
    }  # fmt: skip
    waiting_row(db, **columns | STUCK[name])
    waiting_row(db, **columns)

    async def are_ended() -> bool:
        return db.statuses().get("RUNNING", 0) == 0

    async with working(app):
        await eventually_async(are_ended)
        assert db.statuses() == {"FAILED": 2}
        result = await good(await echo.send_async(5)).get_async(10_000)

    assert result.ok_value == 5
    assert [r.getMessage() for r in caplog.records if r.levelno > logging.WARNING] == []


@pytest.mark.parametrize("instant", ["infinity", "200000-01-01", "5000-01-01"])
async def test_signs_of_life_from_the_future_do_not_count(
    new_app: NewApp, db: Database, instant: str
) -> None:
    app = new_app()
    await app.get_broker().ensure_schema_initialized()
    long_ago = datetime.now(UTC) - timedelta(hours=1)
    owner = {"claimed_by_worker_id": "gone"}
    run = waiting_row(db, status="RUNNING", claimed_at=long_ago, started_at=long_ago, **owner)
    claim = waiting_row(
        db, status="CLAIMED", claimed=True, claimed_at=instant, claim_expires_at=instant, **owner
    )
    for task_id, role in ((run, "runner"), (claim, "claimer")):
        db.insert("horsies_heartbeats", task_id=task_id, sender_id="x", role=role, sent_at=instant)

    good(await app.get_broker().mark_stale_tasks_as_failed(1_000))
    good(await app.get_broker().requeue_stale_claimed(1_000))

    assert (db.status(run), db.status(claim)) == ("FAILED", "PENDING")


async def test_run_that_cannot_be_ended_is_reported_and_passed_over(
    new_app: NewApp, db: Database, caplog: pytest.LogCaptureFixture
) -> None:
    app = new_app()
    await app.get_broker().ensure_schema_initialized()
    long_ago = datetime.now(UTC) - timedelta(hours=1)
    columns = {"status": "RUNNING", "claimed_by_worker_id": "gone", "started_at": long_ago}
    stuck, lost = waiting_row(db, **columns), waiting_row(db, **columns)
    db.execute(
        "alter table horsies_tasks add constraint no_end check "
        f"(id <> '{stuck}' or status = 'RUNNING')"
    )

    changed = good(await app.get_broker().mark_stale_tasks_as_failed(1_000))

    assert int(changed) == 1
    assert (db.status(stuck), db.status(lost)) == ("RUNNING", "FAILED")
    assert stuck in caplog.text
    assert "no_end" in caplog.text


@pytest.mark.parametrize("how", ["a constraint refuses its end", "its last number is taken"])
async def test_task_that_cannot_be_ended_costs_no_worker(
    new_app: NewApp, db: Database, how: str, caplog: pytest.LogCaptureFixture
) -> None:
    app = new_app()
    echo = add_echo(app)
    await app.get_broker().ensure_schema_initialized()
    if how == "its last number is taken":
        stuck, now = waiting_row(db, retry_count=2_147_483_647), datetime.now(UTC)
        db.insert(
            "horsies_task_attempts", task_id=stuck, attempt=2_147_483_647, outcome="FAILED",
            started_at=now, finished_at=now,
        )  # fmt: skip
    else:
        stuck = waiting_row(db)
        db.execute(
            "alter table horsies_tasks add constraint no_end check "
            f"(id <> '{stuck}' or status in ('PENDING', 'RUNNING'))"
        )

    async with working(app):
        await eventually_async(lambda: asyncio.to_thread(lambda: "cannot be ended" in caplog.text))
        others = [good(await echo.send_async(number)) for number in range(3)]
        results = [await one.get_async(10_000) for one in others]

    assert [result.ok_value for result in results] == [0, 1, 2]
    assert db.status(stuck) == "RUNNING"
    assert stuck in caplog.text


@contextmanager
def locked(database_url: str, task_id: str) -> Any:
    """A row that somebody has locked by hand."""
    with psycopg.connect(database_url) as connection:
        connection.execute("select 1 from horsies_tasks where id = %s for update", [task_id])
        yield


async def test_row_locked_by_hand_holds_up_no_other_result(
    new_app: NewApp, db: Database, database_url: str
) -> None:
    app, gate = new_app(), asyncio.Event()

    @app.task("held")
    async def held(number: int) -> TaskResult[int, TaskError]:
        await gate.wait()
        return TaskResult(ok=number)

    def backends() -> int:
        return int(
            db.value(
                "select count(*) from pg_stat_activity where datname = current_database() "
                "and wait_event_type = 'Lock' and application_name like 'horsies%%'"
            )
        )

    async with working(app):
        handles = [good(await held.send_async(number)) for number in range(20)]

        async def are_running() -> bool:
            return db.statuses() == {"RUNNING": 20}

        await eventually_async(are_running)
        with locked(database_url, handles[7].task_id):
            gate.set()
            others = [await one.get_async(15_000) for one in handles if one is not handles[7]]
            waiting = backends()
        late = await handles[7].get_async(15_000)

    assert all(result.is_ok() for result in others)
    assert waiting <= 1
    assert late.ok_value == 7
    assert {len(db.attempts(one.task_id)) for one in handles} == {1}


async def test_claimed_row_locked_by_hand_holds_up_no_other_start(
    new_app: NewApp, db: Database, database_url: str
) -> None:
    app, gate = new_app(prefetch_buffer=3, claim_lease_ms=60_000), asyncio.Event()

    @app.task("held")
    async def held(number: int) -> TaskResult[int, TaskError]:
        await gate.wait()
        return TaskResult(ok=number)

    async with working(app, concurrency=1):
        for number in range(5):
            good(await held.send_async(number))

        async def are_claimed() -> bool:
            return db.statuses() == {"RUNNING": 1, "CLAIMED": 3, "PENDING": 1}

        await eventually_async(are_claimed)
        oldest = "select id from horsies_tasks where status = 'CLAIMED' order by enqueued_at"
        with locked(database_url, db.value(f"{oldest} limit 1")):
            gate.set()

            async def are_ended() -> bool:
                return db.statuses() == {"COMPLETED": 4, "CLAIMED": 1}

            await eventually_async(are_ended, within=30)

    assert db.statuses() == {"COMPLETED": 4, "PENDING": 1}, "it went back with the worker's end"


@pytest.mark.parametrize("ending", ["fails", "is lost", "is interrupted", "was never begun"])
async def test_cancel_request_is_not_forgotten_by_a_retry(
    new_app: NewApp, db: Database, ending: str
) -> None:
    app = new_app()
    await app.get_broker().ensure_schema_initialized()
    long_ago = datetime.now(UTC) - timedelta(hours=1)
    options = retry_options(codes=["BROKEN", "WORKER_CRASHED"])
    if ending == "is lost":
        task_id = waiting_row(
            db, status="RUNNING", claimed_by_worker_id="gone", started_at=long_ago,
            cancel_requested_at=long_ago, task_options=options, max_retries=3,
        )  # fmt: skip
        await app.get_broker().mark_stale_tasks_as_failed(1_000)
    else:
        claim = db.running(task_options=options, max_retries=3, enqueued_at=long_ago)
        task_id = claim.task_id
        good(await app.get_broker().cancel_task(task_id, running=True))
        if ending == "fails":
            receipt = db.fail(claim, ending="fail", retry_delay_s=1.0)
            assert receipt.outcome == "cancelled"
        elif ending == "was never begun":
            assert db.run(return_unheld_tasks("worker-a", [])) == [(1, 0)]
        else:
            (answer,) = db.run(interrupt_tasks("worker-a", [Completion(claim, FAILURE)]))
            assert answer.outcome == "cancelled"

    result = await app.handle(task_id).get_async(0)
    assert db.status(task_id) == "CANCELLED"
    assert str(result.err_value.error_code) == "TASK_CANCELLED"


async def test_declared_limits_hold_for_rows_written_by_plain_sql(
    new_app: NewApp, db: Database
) -> None:
    app = new_app()
    await app.get_broker().ensure_schema_initialized()

    @app.task("slow", timeout_ms=1_000)
    async def slow() -> TaskResult[int, TaskError]:
        await asyncio.Event().wait()
        return TaskResult(ok=1)

    task_id = waiting_row(db, task_name="slow", args=None)
    async with working(app):
        result = await app.handle(task_id).get_async(10_000)

    assert str(result.err_value.error_code) == "TASK_TIMEOUT"
