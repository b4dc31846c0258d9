"""The reaper's passes over a real database: what is repaired, what is left, what is logged."""

import asyncio
import logging
import subprocess
import uuid
from collections.abc import AsyncIterator, Callable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from horsies import Horsies
from horsies.config import RecoveryConfig, WorkerResilienceConfig
from horsies.database.connection import Address
from horsies.recovery.begun_slots import BegunSlots, create_begun_slots, find_begun_slots
from horsies.recovery.reaper import Reaper
from horsies.result import TaskError, TaskResult
from horsies.worker.service_connection import ServiceConnection
from support.apps import working
from support.database import Database, retry_options
from support.eventually import eventually_async

MINUTE = timedelta(minutes=1)
NewReaper = Callable[..., Reaper]


def ago(span: timedelta) -> datetime:
    return datetime.now(UTC) - span


@pytest.fixture
async def new_reaper(database_url: str) -> AsyncIterator[NewReaper]:
    connection = ServiceConnection(
        Address(database_url, None), "horsies test", WorkerResilienceConfig()
    )

    def new(**recovery: Any) -> Reaper:
        return Reaper(connection, RecoveryConfig(**recovery), host_key="here")

    yield new
    await connection.close()


def insert_run(db: Database, age: timedelta, **columns: Any) -> str:
    """A task that another machine's worker runs since then."""
    since = ago(age)
    columns = {
        "claimed_by_worker_id": "gone", "worker_pid": 1, "worker_hostname": "elsewhere",
    } | columns  # fmt: skip
    db.insert(
        "horsies_worker_states", worker_id=columns["claimed_by_worker_id"],
        hostname=columns["worker_hostname"], host_key=columns["worker_hostname"], pid=1,
        processes=1, queues=["default"], max_claim_batch=0, max_claim_per_worker=0,
        worker_started_at=since,
    )  # fmt: skip
    return db.insert(
        status="RUNNING", claimed_at=since, started_at=since, worker_process_name="worker-1",
        **columns,
    )  # fmt: skip


def insert_claim(db: Database, age: timedelta) -> str:
    since = ago(age)
    return db.insert(
        status="CLAIMED", claimed=True, claimed_at=since, claimed_by_worker_id="gone",
        claim_expires_at=since + MINUTE,
    )  # fmt: skip


@pytest.mark.seed("S25", "S51", "S140", "S145", "S147")
async def test_task_of_a_dead_worker_does_not_hang(db: Database, new_reaper: NewReaper) -> None:
    run, claim = insert_run(db, 10 * MINUTE), insert_claim(db, 10 * MINUTE)

    swept = await new_reaper().run_once()

    assert (swept.lost, swept.requeued) == (1, 1)
    assert (db.status(run), db.task(run)["error_code"]) == ("FAILED", "WORKER_CRASHED")
    assert db.status(claim) == "PENDING"
    assert await new_reaper().run_once() == type(swept)(), "a second pass finds nothing"


@pytest.mark.seed("S145", "S146")
async def test_lost_run_is_retried_only_if_its_policy_says_so(
    db: Database, new_reaper: NewReaper
) -> None:
    options = retry_options(2, ["WORKER_CRASHED"])
    run = insert_run(db, 10 * MINUTE, max_retries=2, task_options=options)

    await new_reaper().run_once()

    row = db.task(run)
    assert (row["status"], row["retry_count"]) == ("PENDING", 1)
    assert row["next_retry_at"] > datetime.now(UTC)


@pytest.mark.seed("S144")
async def test_latest_heartbeat_of_the_right_kind_counts(
    db: Database, new_reaper: NewReaper
) -> None:
    fresh, stale = insert_run(db, 10 * MINUTE), insert_run(db, 10 * MINUTE)
    for task_id, role, age in (
        (fresh, "runner", MINUTE), (fresh, "runner", 9 * MINUTE),
        (stale, "claimer", MINUTE), (stale, "runner", 9 * MINUTE),
    ):  # fmt: skip
        db.insert("horsies_heartbeats", task_id=task_id, sender_id="x", role=role, sent_at=ago(age))

    await new_reaper().run_once()

    assert (db.status(fresh), db.status(stale)) == ("RUNNING", "FAILED")


@pytest.mark.seed("S158")
async def test_heartbeats_may_be_deleted_by_hand(db: Database, new_reaper: NewReaper) -> None:
    young, old = insert_run(db, MINUTE), insert_run(db, 10 * MINUTE)
    db.execute("delete from horsies_heartbeats")

    await new_reaper().run_once()

    assert (db.status(young), db.status(old)) == ("RUNNING", "FAILED")


@pytest.mark.seed("S154")
async def test_recovery_can_be_switched_off(db: Database, new_reaper: NewReaper) -> None:
    run, claim = insert_run(db, 10 * MINUTE), insert_claim(db, 10 * MINUTE)
    overdue = db.insert(good_until=ago(MINUTE))

    await new_reaper(auto_requeue_stale_claimed=False, auto_fail_stale_running=False).run_once()

    assert (db.status(run), db.status(claim)) == ("RUNNING", "CLAIMED")
    assert db.status(overdue) == "EXPIRED", "deadlines need no switch"


@pytest.mark.seed("S155")
@pytest.mark.parametrize(("hours", "left"), [(24, 1), (None, 2)])
async def test_old_heartbeats_leave_on_every_pass(
    db: Database, new_reaper: NewReaper, hours: int | None, left: int
) -> None:
    reaper = new_reaper(heartbeat_retention_hours=hours)
    await reaper.run_once()
    for age in (timedelta(hours=25), timedelta(hours=23)):
        db.insert("horsies_heartbeats", task_id="x", sender_id="x", role="runner", sent_at=ago(age))

    await reaper.run_once()

    assert db.value("select count(*) from horsies_heartbeats") == left


@pytest.mark.seed("S138", "S139")
async def test_each_state_may_have_its_own_retention(db: Database, new_reaper: NewReaper) -> None:
    old = ago(timedelta(hours=50))
    for status in ("COMPLETED", "FAILED", "EXPIRED", "CANCELLED"):
        db.insert(status=status, completed_at=old, failed_at=old, updated_at=old)
    kept = {"COMPLETED": 1, "FAILED": None}

    await new_reaper(terminal_record_retention_hours=100, retention_hours_by_status=kept).run_once()

    assert db.statuses() == {"FAILED": 1, "EXPIRED": 1, "CANCELLED": 1}


@pytest.mark.parametrize("function", ["requeue_stale_claims", "lost_runs", "expire_tasks_v2"])
async def test_failing_step_stops_no_other_and_is_tried_again(
    db: Database, new_reaper: NewReaper, caplog: pytest.LogCaptureFixture, function: str
) -> None:
    db.execute(f"alter function horsies_{function} rename to gone")
    run, overdue = insert_run(db, 10 * MINUTE), db.insert(good_until=ago(MINUTE))
    claim = insert_claim(db, 10 * MINUTE)
    reaper = new_reaper()

    for _ in range(4):
        await reaper.run_once()

    assert db.status(run) == ("RUNNING" if function == "lost_runs" else "FAILED")
    assert db.status(overdue) == ("PENDING" if function == "expire_tasks_v2" else "EXPIRED")
    assert len([r for r in caplog.records if r.levelno == logging.ERROR]) == 4
    db.execute(f"alter function gone rename to horsies_{function}")
    await reaper.run_once()
    assert [db.status(one) for one in (run, overdue, claim)] == ["FAILED", "EXPIRED", "PENDING"]


@pytest.mark.seed("S159")
async def test_activity_is_visible_in_the_log(
    app: Horsies, db: Database, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, logger="horsies")
    insert_run(db, 10 * MINUTE)

    async def is_told() -> bool:
        return "lost=1" in caplog.text

    async with working(app):
        await eventually_async(is_told)

    assert "reaper started" in caplog.text
    assert "claimed_stale_threshold_ms" in caplog.text


@pytest.mark.seed("S141", "S142", "S49", "S105")
async def test_claims_that_wait_get_heartbeats_and_longer_leases(
    new_app: Callable[..., Horsies], db: Database
) -> None:
    app = new_app(
        prefetch_buffer=1,
        claim_lease_ms=2_000,
        recovery={"claimer_heartbeat_interval_ms": 1_000, "claimed_stale_threshold_ms": 2_000},
    )
    is_open = asyncio.Event()

    @app.task("held")
    async def held() -> TaskResult[None, TaskError]:
        await is_open.wait()
        return TaskResult(ok=None)

    for _ in range(2):
        await held.send_async()

    async def waiting() -> dict[str, Any] | None:
        rows = db.execute("select * from horsies_tasks where status = 'CLAIMED'")
        return rows[0] if rows else None

    async with working(app, concurrency=1) as worker:
        first = await eventually_async(waiting)
        assert first is not None

        async def is_renewed() -> bool:
            row = await waiting()
            return row is not None and row["claim_expires_at"] > first["claim_expires_at"]

        await eventually_async(is_renewed)
        (beat, *_) = db.execute("select * from horsies_heartbeats where role = 'claimer'")
        is_open.set()

    assert (beat["task_id"], beat["sender_id"]) == (first["id"], worker.context.identity.worker_id)
    assert (beat["sent_at"] - first["claimed_at"]).total_seconds() >= 0.5


@pytest.fixture
def begun_slots() -> Iterator[BegunSlots]:
    """The begun slots of a worker of this host, which the test lets die by closing it."""
    made = create_begun_slots(str(uuid.uuid4()))
    assert made is not None
    yield made
    if left := find_begun_slots(made.worker_id):
        left.remove()


async def test_dead_workers_begun_slots_tell_which_runs_had_begun(
    db: Database, new_reaper: NewReaper, begun_slots: BegunSlots
) -> None:
    child = subprocess.Popen(["true"])
    child.wait()
    owner = {"claimed_by_worker_id": begun_slots.worker_id, "worker_hostname": "here"}
    runs = [insert_run(db, 2 * MINUTE, worker_pid=child.pid, **owner) for _ in range(2)]
    slots = [begun_slots.place(run) for run in runs]
    begun_slots.begin(slots[0])
    begun_slots.close()

    swept = await new_reaper().run_once()

    assert (swept.lost, swept.requeued) == (1, 1)
    assert [db.status(run) for run in runs] == ["FAILED", "PENDING"]
    assert [len(db.attempts(run)) for run in runs] == [1, 0]


def test_begun_slots_is_abandoned_once_its_worker_is_gone(begun_slots: BegunSlots) -> None:
    peer = find_begun_slots(begun_slots.worker_id)
    assert peer is not None
    during = peer.is_abandoned
    begun_slots.close()

    assert (during, peer.is_abandoned) == (False, True)
    peer.close()
