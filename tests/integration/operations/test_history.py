"""Charts of what was: points in time, few however long the window is."""

from datetime import UTC, datetime, timedelta

import pytest
from psycopg.types.json import Jsonb

from horsies import Horsies
from support.apps import bad, good
from support.database import Database
from support.scenes import snapshot


def ago(**duration: float) -> datetime:
    return datetime.now(UTC) - timedelta(**duration)


def test_a_worker_over_time_is_the_average_of_each_step(app: Horsies, db: Database) -> None:
    middle = datetime.now(UTC).replace(minute=0, second=0, microsecond=0) - timedelta(hours=1)
    for seconds, percent in ((1, 10.0), (6, 30.0), (40, 50.0)):
        snapshot(db, snapshot_at=middle + timedelta(seconds=seconds), cpu_percent=percent)
    worker = snapshot(db, snapshot_at=ago(hours=5))
    snapshot(db, "another", snapshot_at=middle)

    points = good(app.operations.worker_history(worker, timedelta(hours=3)))

    assert [(point.at, point.cpu_percent) for point in points] == [(middle, 30.0)]
    assert (points[0].memory_mb, points[0].children_memory_mb) == (61.0, 88.0)
    assert (points[0].running, points[0].claimed) == (1.0, 0.0)


async def test_a_history_has_few_points_however_many_snapshots(app: Horsies, db: Database) -> None:
    db.execute(
        "insert into horsies_worker_states (worker_id, snapshot_at, hostname, pid, processes, "
        "queues, max_claim_batch, max_claim_per_worker, worker_started_at) "
        "select 'busy', horsies_now() - n * interval '10 s', 'h', 1, 1, '{default}', 0, 0, now() "
        "from generate_series(0, 8640) n"
    )

    points = good(await app.operations.worker_history_async("busy", timedelta(days=1)))

    assert 120 <= len(points) <= 121
    assert points == sorted(points)


@pytest.mark.parametrize("window", [timedelta(0), timedelta(days=32)], ids=["none", "too long"])
def test_a_window_that_makes_no_chart_is_refused(app: Horsies, window: timedelta) -> None:
    error = bad(app.operations.worker_history("anyone", window))

    assert error.message.startswith("a history is of 1 minute to 31 days, not of ")


def test_the_load_of_all_workers_is_summed_in_each_step(app: Horsies, db: Database) -> None:
    middle = datetime.now(UTC).replace(minute=0, second=0, microsecond=0) - timedelta(hours=1)
    wide = Jsonb({"async": {"slots": 100, "busy": 1}, "process": {"slots": 2, "busy": 1}})
    for worker, running, slots in (("a", 1, wide), ("a", 3, wide), ("b", 4, None)):
        when = middle + timedelta(seconds=running)
        snapshot(db, worker, snapshot_at=when, tasks_running=running, slots=slots)

    points = good(app.operations.load_history(timedelta(hours=3)))

    assert points == [(middle, 6.0, 104.0)], "a worker of release 0.2 has told only its processes"


def test_throughput_counts_what_ended_in_each_step(app: Horsies, db: Database) -> None:
    minute = datetime.now(UTC).replace(second=0, microsecond=0) - timedelta(minutes=2)
    for status, seconds in (("COMPLETED", 0), ("COMPLETED", 59), ("FAILED", 30)):
        ended = "failed_at" if status == "FAILED" else "completed_at"
        db.insert(status=status, **{ended: minute + timedelta(seconds=seconds)})

    points = good(app.operations.throughput(timedelta(minutes=10), timedelta(minutes=1)))

    assert 10 <= len(points) <= 11
    assert {point.at: tuple(point)[1:] for point in points}[minute] == (2, 1, 0)
    assert sum(point.completed for point in points) == 2


def test_a_step_longer_than_its_window_is_refused(app: Horsies) -> None:
    error = bad(app.operations.throughput(timedelta(minutes=1), timedelta(minutes=2)))

    assert error.message == "a step is of 1 second up to the window, not of 0:02:00"
