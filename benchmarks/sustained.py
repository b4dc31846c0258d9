"""A steady load beside a long history: does the rate last, and does vacuum keep up?"""

import os
import time
from collections.abc import Iterator
from dataclasses import dataclass

from benchmarks import ours, stage
from benchmarks.ours import WIDE
from benchmarks.stage import Connection, connect, worker

_PAUSE_S = 0.1
# Of the tasks that ended within the last seconds: how long they waited, by the database's clock.
_WAITED = """
select coalesce(percentile_cont(0.5) within group (order by waited_ms), 0),
    coalesce(percentile_cont(0.99) within group (order by waited_ms), 0)
from (select 1000 * extract(epoch from t.started_at - t.enqueued_at) as waited_ms from horsies_tasks t
    where t.status = 'COMPLETED'
      and coalesce(t.completed_at, t.failed_at, t.updated_at, t.created_at) >= now() - %s * interval '1 second'
    limit 100000) w
"""  # noqa: E501
_READY = "select count(*) from horsies_worker_states"
_DEAD = "select sum(n_dead_tup) from pg_stat_user_tables where relname = 'horsies_tasks'"


@dataclass(frozen=True, slots=True)
class Load:
    """How long, beside how many finished rows, and how many tasks are sent each second."""

    minutes: float
    history_count: int
    offered_per_s: int


def chosen_load(*, is_quick: bool) -> Load:
    """30 minutes beside 10 million rows, or as the environment says."""
    minutes, history, offered = (0.5, 50_000, 500) if is_quick else (30, 10_000_000, 2_000)
    return Load(
        float(os.environ.get("HORSIES_BENCH_MINUTES", minutes)),
        int(os.environ.get("HORSIES_BENCH_HISTORY", history)),
        int(os.environ.get("HORSIES_BENCH_OFFERED", offered)),
    )


@dataclass(frozen=True, slots=True)
class Minute:
    """One part of the run; a short run has ten parts."""

    at: float
    rate: float
    p50_ms: float
    p99_ms: float
    dead_count: int


def sustain(url: str, load: Load) -> Iterator[Minute]:
    """Send at the offered rate; tell minute by minute what became of it."""
    ours.bulk_fill(url, "COMPLETED", 1, load.history_count)
    part_s = min(60.0, load.minutes * 6)
    with ours.sending(url) as module, connect(url) as connection, worker(url, *WIDE):
        while not stage.number(connection, _READY):
            time.sleep(_PAUSE_S)
        started, sent, ended = time.monotonic(), 0, stage.attempts_so_far(connection)
        part_at = started
        while (now := time.monotonic()) < started + load.minutes * 60:
            due = int((now - started) * load.offered_per_s) - sent
            if due > 0:
                module.noop.send_many([(n,) for n in range(min(due, 10_000))]).unwrap()
                sent += min(due, 10_000)
            if now >= part_at + part_s:
                before, ended = ended, stage.attempts_so_far(connection)
                rate = (ended - before) / (now - part_at)
                yield _minute(connection, (now - started) / 60, rate, now - part_at)
                part_at = now
            time.sleep(_PAUSE_S)


def _minute(connection: Connection, at: float, rate: float, span_s: float) -> Minute:
    row = connection.execute(_WAITED.encode(), [span_s]).fetchone()
    assert row is not None
    return Minute(at, rate, row[0], row[1], stage.number(connection, _DEAD))
