"""The death watch: whom it takes for dead, what of theirs it gives back, and who watches."""

import os
import uuid
from collections import defaultdict
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AsyncExitStack
from datetime import UTC, datetime, timedelta
from typing import Any

import psycopg
import pytest

from horsies.config import RecoveryConfig, WorkerResilienceConfig
from horsies.database.connection import Address
from horsies.database.statement import run_blocking
from horsies.recovery.begun_slots import BegunSlots, create_begun_slots, find_begun_slots
from horsies.recovery.death_watch import DeathWatch
from horsies.recovery.process_identity import process_started_at
from horsies.worker.service_connection import ServiceConnection
from horsies.worker.statements import hold_worker_lock, insert_worker_state
from support.database import Database
from support.eventually import eventually_async

NewWatch = Callable[..., DeathWatch]
NO_PROCESS = 2_147_483_647


@pytest.fixture
async def new_watch(database_url: str) -> AsyncIterator[NewWatch]:
    """Watches of the host `here`, each of a worker with a session of its own."""
    async with AsyncExitStack() as opened:

        def new(host_key: str = "here", **options: Any) -> DeathWatch:
            address, resilience = Address(database_url, None), WorkerResilienceConfig()
            link = ServiceConnection(address, "horsies test", resilience)
            opened.push_async_callback(link.close)
            return DeathWatch(
                link, RecoveryConfig(), host_key=host_key, own_id="the watcher", **options
            )

        yield new


@pytest.fixture
def begun_slots() -> Iterator[BegunSlots]:
    """The begun slots of a worker that lives as long as they are open."""
    made = create_begun_slots(str(uuid.uuid4()))
    assert made is not None
    yield made
    if left := find_begun_slots(made.worker_id):
        left.remove()


def insert_worker(db: Database, worker_id: str, pid: int = NO_PROCESS, **columns: Any) -> None:
    """A snapshot of a worker whose session is gone."""
    values: dict[str, Any] = {
        "hostname": "h",
        "host_key": "here",
        "pid_started_at": process_started_at(pid),
        "snapshot_at": datetime.now(UTC),
    }
    db.insert(
        "horsies_worker_states", worker_id=worker_id, pid=pid,
        processes=1, queues=["default"], max_claim_batch=0, max_claim_per_worker=0,
        worker_started_at=datetime.now(UTC), holds_lock=True, **values | columns,
    )  # fmt: skip


def insert_run(db: Database, owner_id: str) -> str:
    since = datetime.now(UTC) - timedelta(minutes=1)
    return db.insert(
        status="RUNNING", claimed_by_worker_id=owner_id, claimed_at=since, started_at=since,
        worker_pid=NO_PROCESS, worker_hostname="h",
    )  # fmt: skip


async def test_runs_of_a_dead_worker_are_ended(db: Database, new_watch: NewWatch) -> None:
    insert_worker(db, "dead")
    run = insert_run(db, "dead")
    told: list[tuple[str, Any]] = []
    watch = new_watch(tell=lambda *event: told.append(event))

    assert await watch.run_once() == 1
    assert await watch.run_once() == 0
    assert db.status(run) == "FAILED"
    ((name, event),) = told
    assert (name, event.task_id, event.worker_id) == ("failed", run, "dead")


@pytest.mark.parametrize("host_key", ["here", "in another container"])
async def test_worker_that_holds_its_begun_slots_lives_whatever_its_pid_says(
    db: Database, new_watch: NewWatch, begun_slots: BegunSlots, host_key: str
) -> None:
    insert_worker(db, begun_slots.worker_id, host_key=host_key)
    run = insert_run(db, begun_slots.worker_id)

    assert await new_watch().run_once() == 0
    assert db.status(run) == "RUNNING"
    left = find_begun_slots(begun_slots.worker_id)
    assert left is not None
    left.close()


@pytest.mark.parametrize("host_key", ["here", "in another container"])
async def test_idle_worker_that_is_cut_off_keeps_its_begun_slots(
    db: Database, new_watch: NewWatch, begun_slots: BegunSlots, host_key: str
) -> None:
    """It may begin tasks later, and be killed then."""
    insert_worker(db, begun_slots.worker_id, os.getpid(), host_key=host_key)
    watch = new_watch()

    await watch.run_once()

    left = find_begun_slots(begun_slots.worker_id)
    assert left is not None, "they still tell what has begun"
    left.close()


async def test_worker_that_was_cut_off_once_is_noticed_when_it_dies(
    db: Database, new_watch: NewWatch, database_url: str
) -> None:
    watch = new_watch()
    insert_worker(db, "cut off")
    await watch.run_once()
    with psycopg.connect(database_url, autocommit=True) as session:
        run_blocking(session, hold_worker_lock("cut off"))
        await watch.run_once()
        run = insert_run(db, "cut off")

    async def is_recovered() -> bool:
        await watch.run_once()
        return db.status(run) == "FAILED"

    await eventually_async(is_recovered)


async def test_one_worker_of_a_host_watches_until_its_session_ends(
    db: Database, new_watch: NewWatch, database_url: str
) -> None:
    first, second, elsewhere = new_watch(), new_watch(), new_watch("elsewhere")
    await first.run_once()
    insert_worker(db, "dead")
    run = insert_run(db, "dead")

    assert await second.run_once() == 0, "the first does"
    assert await elsewhere.run_once() == 0, "its pids mean nothing there"
    assert db.status(run) == "RUNNING"
    db.execute(
        "select pg_terminate_backend(pid) from pg_locks where locktype = 'advisory' and granted "
        "and ((classid::bigint << 32) | objid::bigint) = horsies_lock_key('death watch:here')"
    )

    async def takes_over() -> bool:
        return await second.run_once() == 1

    await eventually_async(takes_over)
    assert db.status(run) == "FAILED"


def is_alone(db: Database) -> bool:
    """What the watcher learns when it stores a snapshot."""
    columns: defaultdict[str, Any] = defaultdict(
        lambda: None, worker_id="the watcher", hostname="h", pid=1, processes=1, queues=[],
        tasks_running=0, tasks_claimed=0, max_claim_batch=0, max_claim_per_worker=0,
        worker_started_at=datetime.now(UTC), holds_lock=True,
    )  # fmt: skip
    (stored,) = run_blocking(db.connection, insert_worker_state(columns))
    return bool(stored.is_alone)


async def test_a_worker_looks_less_often_while_no_other_was_seen_lately(
    db: Database, new_watch: NewWatch
) -> None:
    watch = new_watch(peer_count=lambda: int(not is_alone(db)))
    insert_worker(db, "old", snapshot_at=datetime.now(UTC) - timedelta(minutes=3))
    before = watch.interval_s
    insert_worker(db, "peer")

    assert (before, watch.interval_s) == (5.0, 2.0)


async def test_candidates_ask_the_less_often_the_more_there_are(new_watch: NewWatch) -> None:
    elected = new_watch(peer_count=lambda: 20)
    candidate = new_watch(peer_count=lambda: 20)

    await elected.run_once()
    await candidate.run_once()

    assert (elected.interval_s, candidate.interval_s) == (2.0, 20.0)
