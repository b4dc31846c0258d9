"""Duties: what one worker does for all is done once per interval by a fleet of any size."""

import asyncio
import logging
from collections.abc import AsyncIterator, Callable
from datetime import timedelta

import pytest

from horsies import Horsies
from horsies.config import WorkerResilienceConfig
from horsies.database.connection import Address
from horsies.recovery.duties import Duty, DutyRounds
from horsies.worker.service_connection import ServiceConnection
from support.apps import working
from support.database import Database
from support.eventually import eventually_async

MINUTE = timedelta(minutes=1)
NewRounds = Callable[..., DutyRounds]


@pytest.fixture
async def new_rounds(database_url: str) -> AsyncIterator[NewRounds]:
    connections: list[ServiceConnection] = []

    def new(worker_id: str, *duties: Duty) -> DutyRounds:
        connection = ServiceConnection(
            Address(database_url, None), "horsies test", WorkerResilienceConfig()
        )
        connections.append(connection)
        return DutyRounds(connection, worker_id, duties)

    yield new
    for connection in connections:
        await connection.close()


def counting(done: list[str], name: str = "count", every: timedelta = MINUTE) -> Duty:
    async def run() -> None:
        done.append(name)

    return Duty(name, every, run)


async def test_duty_is_done_by_one_of_many_workers(db: Database, new_rounds: NewRounds) -> None:
    done: list[str] = []
    workers = [new_rounds(f"worker-{n}", counting(done)) for n in range(10)]

    await asyncio.gather(*(worker.run_once() for worker in workers))

    assert done == ["count"]
    (row,) = db.execute("select * from horsies_duties")
    assert row["taken_by"].startswith("worker-")
    assert row["done_at"] >= row["taken_at"]
    assert row["due_at"] - row["taken_at"] == MINUTE


async def test_duty_is_due_again_after_its_interval(db: Database, new_rounds: NewRounds) -> None:
    done: list[str] = []
    worker = new_rounds("a", counting(done))
    await worker.run_once()
    await worker.run_once()
    assert done == ["count"]

    db.execute("update horsies_duties set taken_at = taken_at - interval '1 minute'")
    await worker.run_once()

    assert done == ["count", "count"]


async def test_duty_taken_in_the_future_is_due(db: Database, new_rounds: NewRounds) -> None:
    """The clock was set back, or someone wrote the row."""
    done: list[str] = []
    worker = new_rounds("a", counting(done))
    await worker.run_once()
    db.execute("update horsies_duties set taken_at = 'infinity'")

    await worker.run_once()

    assert done == ["count", "count"]


async def test_duty_that_fails_stops_no_other_and_says_why(
    db: Database, new_rounds: NewRounds, caplog: pytest.LogCaptureFixture
) -> None:
    async def fail() -> None:
        raise ValueError("no luck")

    done: list[str] = []
    worker = new_rounds("a", Duty("break", MINUTE, fail), counting(done))

    await worker.run_once()

    assert done == ["count"]
    (row,) = db.execute("select * from horsies_duties where name = 'break'")
    assert "no luck" in row["failure"]
    assert row["done_at"] is None
    assert any(r.levelno == logging.ERROR and "break" in r.getMessage() for r in caplog.records)


async def test_worker_that_died_at_a_duty_costs_one_interval(
    db: Database, new_rounds: NewRounds
) -> None:
    async def die() -> None:
        raise asyncio.CancelledError

    with pytest.raises(asyncio.CancelledError):
        await new_rounds("dead", Duty("count", MINUTE, die)).run_once()
    done: list[str] = []
    heir = new_rounds("heir", counting(done))

    await heir.run_once()
    assert done == []
    db.execute("update horsies_duties set taken_at = taken_at - interval '1 minute'")
    await heir.run_once()

    assert done == ["count"]


async def test_worker_does_what_is_due_and_the_table_says_so(app: Horsies, db: Database) -> None:
    async with working(app):
        await eventually_async(lambda: _is_done(db, "record queue history"))

    names = {row["name"].split(" on ")[0] for row in db.execute("select name from horsies_duties")}
    assert names >= {
        "end lost runs", "expire overdue tasks", "requeue stale claims", "recover workflows",
        "record queue history", "prune COMPLETED tasks", "prune workflows", "prune heartbeats",
    }  # fmt: skip


async def _is_done(db: Database, name: str) -> bool:
    done = "select count(*) from horsies_duties where name = %s and done_at is not null"
    return bool(db.value(done, name))
