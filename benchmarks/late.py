"""Slow producers and a session idle in transaction at once: how long late rows wait."""

import statistics
import threading
import time
from dataclasses import dataclass

from benchmarks import ours, stage
from benchmarks.ours import WIDE
from benchmarks.stage import connect, worker

_STEADY_S, _BATCH = 8.0, 200  # 2,000 plain tasks a second meanwhile
_OPEN_S = (0.2, 0.5, 1.0, 2.0)  # how long each producer keeps its transactions open
_ROWS = 5  # tasks per transaction


@dataclass(frozen=True, slots=True)
class Late:
    """The plain tasks' rate, and commit → start of the rows whose transaction was long."""

    rate: float
    count: int
    p50_ms: float
    p99_ms: float
    worst_ms: float


def late_commits(url: str, count: int) -> Late:
    """Do `count` tasks under a held snapshot, then keep up with producers while some commit late.

    The queue is nearly empty then: what a late row waits for is only to be found.
    """
    stop = threading.Event()
    committed: dict[str, float] = {}
    with ours.sending(url) as module, connect(url) as connection, ours.snapshot_held(url):
        ours.fill(url, "noop", count)
        producers = [
            threading.Thread(target=_produce, args=(url, module, open_s, stop, committed))
            for open_s in _OPEN_S
        ]
        with worker(url, *WIDE):
            stage.watch(connection, count)
            for producer in producers:
                producer.start()
            deadline, steady = time.monotonic() + _STEADY_S, 0
            while time.monotonic() < deadline:
                module.noop.send_many([(n,) for n in range(_BATCH)]).unwrap()
                steady += _BATCH
                stop.wait(0.1)
            stop.set()
            for producer in producers:
                producer.join()
            stage.watch(connection, count + steady + len(committed))
        stage.check_invariants(connection, count + steady + len(committed))
        started = connection.execute(
            "select id, extract(epoch from started_at) from horsies_tasks where id = any (%s)",
            [list(committed)],
        ).fetchall()
    delays = sorted((float(at) - committed[task_id]) * 1000 for task_id, at in started)
    return Late(
        steady / _STEADY_S,
        len(delays),
        statistics.median(delays),
        delays[int(len(delays) * 0.99)],
        delays[-1],
    )


def _produce(
    url: str, module: object, open_s: float, stop: threading.Event, committed: dict[str, float]
) -> None:
    task = module.noop  # type: ignore[attr-defined]
    with connect(url) as connection:
        while not stop.is_set():
            with connection.transaction():
                sender = task.with_options(connection=connection)
                ids = [sender.send(n).unwrap().task_id for n in range(_ROWS)]
                stop.wait(open_s)
            at = time.time()
            committed |= dict.fromkeys(ids, at)
