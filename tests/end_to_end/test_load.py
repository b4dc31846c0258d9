"""Many tasks, several workers: each runs once, caps and priorities hold, memory stays flat."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil
import pytest

from support.apps import good
from support.database import Database
from support.eventually import eventually
from support.workers import WorkerProcess

Start = Callable[..., WorkerProcess]
Load = Callable[..., Any]

MOST_AT_ONCE = """
    select max(running) from (
        select sum(step) over (order by at, step) as running
        from (
            select a.started_at as at, 1 as step from horsies_task_attempts a
            join horsies_tasks t on t.id = a.task_id where t.queue_name = any (%(queues)s)
            union all
            select a.finished_at, -1 from horsies_task_attempts a
            join horsies_tasks t on t.id = a.task_id where t.queue_name = any (%(queues)s)
        ) steps
    ) sums
"""


def all_completed(db: Database, count: int) -> bool:
    return db.statuses() == {"COMPLETED": count}


def most_at_once(db: Database, *queues: str) -> int:
    """The largest number of attempts whose intervals overlap."""
    row = db.connection.execute(MOST_AT_ONCE.encode(), {"queues": list(queues)}).fetchone()
    assert row is not None
    return int(row["max"])


@pytest.mark.slow
@pytest.mark.timeout(240)
@pytest.mark.seed("S13", "S71", "S73")
def test_two_workers_run_five_thousand_tasks_once_each_under_their_caps(
    start_worker: Start, load: Load, db: Database
) -> None:
    settings = {
        "queue_mode": "custom",
        "custom_queues": [
            {"name": "main", "priority": 1, "max_concurrency": 5},
            {"name": "low", "priority": 50, "max_concurrency": 3},
        ],
        "cluster_wide_cap": 6,
    }
    app = load(**settings)
    good(app.record.send_many((number,) for number in range(2_500)))
    good(app.record_low.send_many((number,) for number in range(2_500, 5_000)))

    workers = [start_worker("--processes", "4", **settings) for _ in range(2)]
    eventually(lambda: all_completed(db, 5_000), within=200)

    runs = db.execute("select number, count(*) as n from ledger group by number")
    assert {row["n"] for row in runs} == {1}
    assert len(runs) == 5_000
    assert db.value("select count(*) from horsies_task_attempts") == 5_000
    assert most_at_once(db, "main") <= 5
    assert most_at_once(db, "low") <= 3
    assert most_at_once(db, "main", "low") <= 6
    assert db.value("select count(distinct worker_id) from horsies_task_attempts") == 2
    assert [worker.stop() for worker in workers] == [0, 0]


@pytest.mark.slow
@pytest.mark.seed("S95")
def test_better_queue_is_emptied_first(start_worker: Start, load: Load, db: Database) -> None:
    settings = {
        "queue_mode": "custom",
        "custom_queues": [
            {"name": "main", "priority": 1, "max_concurrency": None},
            {"name": "low", "priority": 50, "max_concurrency": None},
        ],
        "prefetch_buffer": 0,
    }
    app = load(**settings)
    good(app.record_low.send_many((number,) for number in range(200)))
    good(app.record.send_many((number,) for number in range(200, 400)))

    start_worker("--processes", "2", **settings)
    eventually(lambda: all_completed(db, 400), within=60)

    last_main, first_low = (
        db.value("select max(claimed_at) from horsies_tasks where queue_name = 'main'"),
        db.value("select min(claimed_at) from horsies_tasks where queue_name = 'low'"),
    )
    assert last_main <= first_low


@pytest.mark.seed("S15")
def test_waiting_tasks_are_shared_between_workers(
    start_worker: Start, load: Load, db: Database, gate: Path
) -> None:
    app = load(prefetch_buffer=0)
    for _ in range(2):
        start_worker("--processes", "1", prefetch_buffer=0)

    good(app.hold.send_many((str(gate),) for _ in range(3)))
    eventually(lambda: db.statuses() == {"RUNNING": 2, "PENDING": 1}, within=20)
    holders = db.value("select count(distinct claimed_by_worker_id) from horsies_tasks")
    gate.touch()
    eventually(lambda: all_completed(db, 3), within=20)

    assert holders == 2


def family_memory_mb(pid: int) -> float:
    parent = psutil.Process(pid)
    family = [parent, *parent.children(recursive=True)]
    return sum(process.memory_info().rss for process in family) / 1_048_576


@pytest.mark.slow
def test_memory_stays_flat_over_many_tasks(start_worker: Start, load: Load, db: Database) -> None:
    app = load()
    worker = start_worker("--processes", "2", "--loglevel", "WARNING").wait_ready()

    good(app.nothing.send_many(() for _ in range(5_000)))
    eventually(lambda: all_completed(db, 5_000), within=60)
    after_warm_up = family_memory_mb(worker.pid)
    good(app.nothing.send_many(() for _ in range(20_000)))
    eventually(lambda: all_completed(db, 25_000), within=90)
    at_the_end = family_memory_mb(worker.pid)

    assert at_the_end - after_warm_up < 15
    assert worker.stop() == 0
