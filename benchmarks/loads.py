"""Rows for work that is not a plain no-op: failures, large payloads, sleepers, fleets, pace."""

import math
import statistics
import threading
import time
from collections.abc import Iterator
from contextlib import nullcontext
from dataclasses import dataclass

from benchmarks import ours, peers, stage
from benchmarks.ours import WIDE
from benchmarks.report import Figure, at_least, at_most
from benchmarks.stage import Ends, connect, fresh_database, private_server, worker
from benchmarks.turns import RUNS, Turns, done_rate, middle, peer_figures, rate, spread

_TEN_KB = "x" * 10_000
_ROOMY = {**stage.SETTINGS, "max_connections": "500"}  # each worker has four or five


def failing(turns: Turns) -> Iterator[Figure]:
    """Tasks that fail for good, and tasks that succeed at their second attempt."""
    count = 40_000
    found = turns.in_turn(
        succeeding=turns.drain("noop", count, *WIDE),
        failing=turns.drain("failing", count, *WIDE, ends=Ends(failed=1)),
        retried=turns.drain("retried", count // 2, *WIDE, ends=Ends(attempts=2, failed=1)),
    )
    succeeding = rate(found["succeeding"])
    yield Figure("succeeding tasks", succeeding, "tasks/s", "", None, spread(found["succeeding"]))
    detail = spread(found["failing"])
    yield at_least("failing tasks", rate(found["failing"]), "tasks/s", 0.6 * succeeding, detail)
    detail = "each fails once and waits a second; " + spread(found["retried"])
    yield Figure("retried tasks", rate(found["retried"]), "runs/s", "", None, detail)


def payloads(turns: Turns) -> Iterator[Figure]:
    found = turns.in_turn(
        small=turns.drain("echo", 20_000, *WIDE, arguments=("x",)),
        large=turns.drain("echo", 20_000, *WIDE, arguments=(_TEN_KB,)),
    )
    yield Figure("drain, 1 byte of text in and out", rate(found["small"]), "tasks/s")
    large = rate(found["large"])
    yield Figure("drain, 10 kB in and out", large, "tasks/s", "", None, spread(found["large"]))


def naps(turns: Turns) -> Iterator[Figure]:
    """10 ms coroutines, 100 at once: ours beside each peer that has coroutines."""
    found = turns.in_turn(
        naps=turns.drain("nap", 40_000, "--concurrency", "100"),
        pgqueuer=turns.peer("pgqueuer_drain.py", 20_000, "nap", "1"),
        procrastinate=turns.peer("procrastinate_drain.py", 5_000, "0.01"),
        oban=lambda url: oban(url, turns.count(10_000), 0.01, 100),
    )
    best = 0.0
    for name in ("pgqueuer", "procrastinate", "oban"):
        best = max(best, done_rate(found[name]) or 0)
        yield from peer_figures(f"{name}, 10 ms coroutines, 100 at once", found[name])
    own, detail = rate(found["naps"]), spread(found["naps"])
    name = "10 ms coroutines, --concurrency 100"
    yield at_least(name, own, "tasks/s", 8_300, detail)
    if best:
        yield at_least("the same against 1.2 × the fastest peer", own, "tasks/s", 1.2 * best)


def oban(url: str, count: int, seconds: float, limit: int) -> peers.Speed | None:
    """Its drain of tasks that sleep for so long, so many at once; in an environment of its own."""
    if not peers.prepare(peers.OBAN):
        return None
    given = map(str, (count, seconds, limit))
    return peers.measure("oban_drain.py", url, *given, environment=peers.OBAN)


def widths(turns: Turns) -> Iterator[Figure]:
    """More coroutines at once than are needed must not slow a worker down."""
    found = turns.in_turn(
        narrow=turns.drain("nap", 40_000, "--concurrency", "64", arguments=(0.001,)),
        wide=turns.drain("nap", 40_000, "--concurrency", "256", arguments=(0.001,)),
    )
    narrow = rate(found["narrow"])
    yield Figure("1 ms coroutines, --concurrency 64", narrow, "tasks/s")
    detail = spread(found["wide"])
    name = "1 ms coroutines, --concurrency 256"
    yield at_least(name, rate(found["wide"]), "tasks/s", narrow, detail)


def fleet(turns: Turns) -> Iterator[Figure]:
    """Many small workers on one machine, on a server with room for their connections."""
    sizes, repeats = ((4, 8), 1) if turns.is_quick else ((8, 16), RUNS)
    runs: dict[int, list[ours.Drained]] = {size: [] for size in (*sizes, 50)}
    with private_server(None, _ROOMY) as server:

        def drained(size: int) -> ours.Drained:
            turns.say(f"{size} workers of ten slots")
            with fresh_database(server) as url:
                return ours.drain(
                    url, "noop", turns.count(40_000), "--concurrency", "10", workers=size,
                    HORSIES_BENCH_COROUTINES_ONLY="1",
                )  # fmt: skip

        for _ in range(repeats):
            for size in sizes:
                runs[size].append(drained(size))
        if not turns.is_quick:
            runs[50] = [drained(50)]
    few, many = sizes
    base = rate(runs[few])
    yield Figure(f"{few} workers of ten slots", base, "tasks/s", "", None, spread(runs[few]))
    name = f"{many} workers of ten slots"
    yield at_least(name, rate(runs[many]), "tasks/s", base, spread(runs[many]))
    if runs[50]:
        yield Figure("50 workers of ten slots", rate(runs[50]), "tasks/s", "", None, "one run")


@dataclass(frozen=True, slots=True)
class Paced:
    """A steady load, and what a caller beside it saw."""

    rate: float
    p50_ms: float
    p99_ms: float


def pace(turns: Turns) -> Iterator[Figure]:
    """send → result beside 5,000 tasks a second, without and with a session idle in transaction."""
    seconds = 4.0 if turns.is_quick else 20.0
    found = turns.in_turn(
        free=lambda url: paced(url, 5_000, seconds, is_held=False),
        held=lambda url: paced(url, 5_000, seconds, is_held=True),
    )
    free, held = (middle([one.p99_ms for one in found[name]]) for name in ("free", "held"))
    yield Figure("send → result at 5,000/s, p99", free, "ms", "", None, _described(found["free"]))
    name = "the same, old snapshot held, p99"
    yield at_most(name, held, "ms", 2 * free, _described(found["held"]))


def _described(runs: list[Paced]) -> str:
    done, p50 = middle([one.rate for one in runs]), middle([one.p50_ms for one in runs])
    return f"p50 {p50:.1f} ms; {done:,.0f} tasks/s done"


def paced(url: str, per_s: int, seconds: float, *, is_held: bool) -> Paced:
    """Send at a steady rate while one caller after the other asks for a result."""
    times: list[float] = []
    stop = threading.Event()
    with (
        ours.sending(url) as module,
        connect(url) as connection,
        ours.snapshot_held(url) if is_held else nullcontext(),
        worker(url, *WIDE, "--processes", "1"),
    ):

        def ask() -> None:
            while not stop.is_set():
                started = time.perf_counter()
                module.noop.send(1).unwrap().get(timeout_ms=60_000)
                times.append((time.perf_counter() - started) * 1000)

        module.noop.send(0).unwrap().get(timeout_ms=60_000)
        caller = threading.Thread(target=ask)
        begun, sent, base = time.perf_counter(), 0, stage.attempts_so_far(connection)
        while (elapsed := time.perf_counter() - begun) < seconds:
            if elapsed > seconds / 5 and not caller.is_alive():
                caller.start()  # past the start
            due = int(elapsed * per_s) - sent
            if due > 0:
                module.noop.send_many([(n,) for n in range(due)]).unwrap()
                sent += due
            time.sleep(0.02)
        done = (stage.attempts_so_far(connection) - base) / (time.perf_counter() - begun)
        stop.set()
        caller.join()
    if len(times) < 2:
        return Paced(done, math.nan, math.nan)
    return Paced(done, statistics.median(times), statistics.quantiles(times, n=100)[98])
