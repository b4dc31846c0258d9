"""The target table: each row measured, floors and peers beside it, ours and theirs in turn."""

import math
import statistics
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, TypeVar

from benchmarks import executors, ours, peers, raw, schedules, settings, workflows
from benchmarks.ours import WIDE, Drained
from benchmarks.report import Figure, at_least, at_most
from benchmarks.stage import fresh_database

T = TypeVar("T")
Work = Callable[[str], Any]
Say = Callable[[str], None]


class Targets:
    """Measures group by group; each single run has a database of its own."""

    def __init__(self, server_url: str, say: Say, *, is_quick: bool) -> None:
        self._server_url = server_url
        self._say = say
        self._is_quick = is_quick
        self._has_peers = peers.prepare()
        self.groups: dict[str, Callable[[], Iterator[Figure]]] = {
            "async": self._async,
            "threads": self._threads,
            "children": self._children,
            "naps": self._naps,
            "sends": self._sends,
            "latency": self._latency,
            "caps": self._caps,
            "held": self._held,
            "history": self._history,
            "workflows": self._workflows,
            "idle": self._idle,
            "schedules": self._schedules,
            "executors": self._executors,
            "settings": lambda: settings.measured(say, is_quick=is_quick),
        }

    def _count(self, full: int) -> int:
        return full // 5 if self._is_quick else full

    def _on(self, name: str, work: Callable[[str], T]) -> T:
        self._say(name)
        with fresh_database(self._server_url) as url:
            return work(url)

    def _in_turn(self, repeats: int, **works: Work) -> dict[str, list[Any]]:
        """Each in turn, again and again: a noisy machine hurts all alike."""
        found: dict[str, list[Any]] = {name: [] for name in works}
        for _ in range(1 if self._is_quick else repeats):
            for name, work in works.items():
                found[name].append(self._on(name.replace("_", " "), work))
        return found

    def _drain(self, task: str, count: int, *options: str, **settings: Any) -> Work:
        return lambda url: ours.drain(url, task, self._count(count), *options, **settings)

    def _peer(self, script: str, count: int, *arguments: str) -> Work:
        given = (str(self._count(count)), *arguments)
        return lambda url: peers.measure(script, url, *given) if self._has_peers else None

    def _async(self) -> Iterator[Figure]:
        count = 60_000
        found = self._in_turn(
            5,
            raw=lambda url: raw.claim_and_complete(url, self._count(count)),
            raw_own=lambda url: raw.claim_and_complete_own(
                url, self._count(count), raw.OWN_COMPLETE
            ),
            raw_attempts=lambda url: raw.claim_and_complete_own(
                url, self._count(count), raw.WITH_ATTEMPTS
            ),
            pgqueuer=self._peer("pgqueuer_drain.py", count, "async", "2"),
            one_worker=self._drain("noop", count, *WIDE, counts_entries=True),
            two_workers=self._drain("noop", count, *WIDE, workers=2),
        )
        other = self._on("procrastinate", self._peer("procrastinate_drain.py", 5_000))
        floor = middle(found["raw"])
        best = max(rate(found["one_worker"]), rate(found["two_workers"]))
        yield Figure("raw claim+complete, batch 500", floor, "tasks/s", "floor")
        own, full = middle(found["raw_own"]), middle(found["raw_attempts"])
        yield Figure("the same on horsies_tasks", own, "tasks/s", "floor")
        yield Figure("the same with attempt rows", full, "tasks/s", "floor")
        yield from peer_figures("procrastinate", [other])
        yield from peer_figures("pgqueuer, 2 processes, batch 500", found["pgqueuer"])
        for name in ("one_worker", "two_workers"):
            shown = f"async no-op drain, {name.replace('_', ' ')}"
            yield Figure(shown, rate(found[name]), "tasks/s", "", None, spread(found[name]))
        yield at_least("async drain against half the raw floor", best, "tasks/s", floor / 2)
        yield at_least("async drain against half of raw on our table", best, "tasks/s", own / 2)
        if peer := done_rate(found["pgqueuer"]):
            yield at_least("async drain against 1.2 × pgqueuer", best, "tasks/s", 1.2 * peer)
        yield from costs(found["one_worker"])

    def _threads(self) -> Iterator[Figure]:
        found = self._in_turn(
            5,
            pgqueuer_threads=self._peer("pgqueuer_drain.py", 20_000, "thread", "2"),
            threads=self._drain("thread", 20_000, "--threads", "8", workers=2),
        )
        yield from peer_figures("pgqueuer threads, 2 processes", found["pgqueuer_threads"])
        yield from self._redis_peers("dramatiq")
        own = rate(found["threads"])
        detail = spread(found["threads"])
        if peer := done_rate(found["pgqueuer_threads"]):
            yield at_least("sync no-op drain, threads", own, "tasks/s", peer, detail)
        else:
            yield Figure("sync no-op drain, threads", own, "tasks/s", "no peer", None, detail)

    def _children(self) -> Iterator[Figure]:
        with peers.redis() as socket:
            count = str(self._count(20_000))
            huey = partial(peers.measure, "redis_drain.py", socket or "", count, "huey")
            has_huey = self._has_peers and socket is not None
            found = self._in_turn(
                5,
                huey=lambda _url: huey() if has_huey else None,
                children=self._drain("child", 30_000, "--processes", "2"),
            )
        yield from peer_figures("huey, Redis, 4 processes", found["huey"])
        yield from self._redis_peers("celery")
        yield from self._public_horsies()
        own, detail = rate(found["children"]), spread(found["children"])
        yield at_least("sync no-op drain, children, against 6,000/s", own, "tasks/s", 6_000, detail)
        if peer := done_rate(found["huey"]):
            yield at_least("sync no-op drain, children, against 2 × huey", own, "tasks/s", 2 * peer)

    def _redis_peers(self, *names: str) -> Iterator[Figure]:
        """Bystanders, measured once."""
        for name in () if self._is_quick else names:
            with peers.redis() as socket:
                self._say(name)
                speed = (
                    peers.measure("redis_drain.py", socket, "5000", name)
                    if socket and self._has_peers
                    else None
                )
            yield from peer_figures(f"{name}, Redis", [speed])

    def _public_horsies(self) -> Iterator[Figure]:
        if self._is_quick:
            return
        environment = peers.HERE.parent / ".peers-horsies"
        speed = (
            self._on(
                "public horsies",
                lambda url: peers.measure(
                    "horsies_drain.py", url, "1000", "4", environment=environment
                ),
            )
            if peers.prepare(environment)
            else None
        )
        yield from peer_figures("public package horsies, 4 processes", [speed])

    def _naps(self) -> Iterator[Figure]:
        found = self._in_turn(
            3,
            drain=self._drain("noop", 60_000, *WIDE),
            naps=self._drain("nap", 40_000, "--concurrency", "100"),
        )
        bound = min(9_000.0, rate(found["drain"]))
        detail = f"90 % of ideal, or the drain rate ({rate(found['drain']):,.0f}); " + spread(
            found["naps"]
        )
        name = "10 ms coroutines, --concurrency 100"
        yield at_least(name, rate(found["naps"]), "tasks/s", bound, detail)

    def _sends(self) -> Iterator[Figure]:
        found = self._in_turn(
            5,
            raw_inserts=lambda url: raw.single_inserts(url, self._count(5_000)),
            blocking_send=lambda url: ours.blocking_sends(url, self._count(5_000)),
            send_async=lambda url: ours.concurrent_sends(url, self._count(50_000)),
            send_many=lambda url: ours.fill(url, "noop", self._count(150_000)),
        )
        floor = middle(found["raw_inserts"])
        yield Figure("raw INSERT + commit", floor, "per s", "floor")
        yield at_least("blocking send", middle(found["blocking_send"]), "per s", 0.8 * floor)
        yield at_least("send_async, 200 callers", middle(found["send_async"]), "per s", 10_000)
        yield at_least("send_many", middle(found["send_many"]), "per s", 60_000)

    def _latency(self) -> Iterator[Figure]:
        count = self._count(500)
        found = self._in_turn(
            3,
            raw_trip=lambda url: raw.round_trip_ms(url, count),
            coroutine=lambda url: ours.latency_ms(url, "noop", count),
            child=lambda url: ours.latency_ms(url, "child", count),
        )
        trip = middle([p50 for p50, _ in found["raw_trip"]])
        worst = middle([p99 for _, p99 in found["raw_trip"]])
        yield Figure("raw three-commit trip, p50", trip, "ms", "floor", None, f"p99 {worst:.1f}")
        for kind, factor in (("coroutine", 1.7), ("child", 2.0)):
            p50, p99 = (middle([pair[i] for pair in found[kind]]) for i in (0, 1))
            yield at_most(f"send → result, {kind}, p50", p50, "ms", factor * trip)
            yield at_most(f"send → result, {kind}, p99", p99, "ms", 4 * trip)

    def _caps(self) -> Iterator[Figure]:
        options = ("--concurrency", "100")
        found = self._in_turn(
            3,
            without=self._drain("noop", 40_000, *options, workers=4),
            cluster_cap=self._drain(
                "noop", 40_000, *options, workers=4, HORSIES_BENCH_CAP="400"
            ),
            queue_cap=self._drain(
                "noop", 40_000, *options, workers=4,
                HORSIES_BENCH_QUEUES="1", HORSIES_BENCH_QUEUE_CAP="400",
            ),
        )  # fmt: skip
        target = rate(found["without"]) / 2
        yield Figure("4 workers without caps", rate(found["without"]), "tasks/s")
        for name in ("cluster_cap", "queue_cap"):
            shown = "cluster_wide_cap" if name == "cluster_cap" else "max_concurrency"
            detail = spread(found[name])
            yield at_least(f"{shown} 400, 4 workers", rate(found[name]), "tasks/s", target, detail)

    def _held(self) -> Iterator[Figure]:
        for full, repeats in ((200_000, 2), (1_000_000, 1)):
            if self._is_quick and full > 200_000:
                continue
            found = self._in_turn(
                repeats,
                free=self._drain("noop", full, *WIDE),
                held=self._drain("noop", full, *WIDE, is_held=True),
            )
            size = f"{self._count(full):,}"
            free, held = rate(found["free"]), rate(found["held"])
            yield Figure(f"{size} tasks, no old snapshot", free, "tasks/s")
            yield at_least(f"{size} tasks, old snapshot held", held, "tasks/s", 0.95 * free)
            # Three each: the rate of a single tenth moves by a fifth on a shared machine.
            first = middle([one.tenths(0, 3) for one in found["held"]])
            last = middle([one.tenths(7, 3) for one in found["held"]])
            name = f"{size} held: last three tenths against the first"
            yield at_least(name, last, "tasks/s", first)

    def _history(self) -> Iterator[Figure]:
        size = 100_000 if self._is_quick else 10_000_000

        def old(url: str) -> list[Drained]:
            ours.bulk_fill(url, "COMPLETED", 1, size)
            again = range(1 if self._is_quick else 3)
            return [ours.drain(url, "noop", self._count(60_000), *WIDE) for _ in again]

        found = self._in_turn(1, before=self._drain("noop", 60_000, *WIDE), old=old)
        found |= self._in_turn(1, after=self._drain("noop", 60_000, *WIDE))
        fresh = middle([rate(found["before"]), rate(found["after"])])
        name = f"drain with {size:,} finished rows"
        yield Figure("drain on a fresh table", fresh, "tasks/s")
        yield at_least(name, rate(found["old"][0]), "tasks/s", 0.9 * fresh)

    def _workflows(self) -> Iterator[Figure]:
        width, count = 50, self._count(100)
        with peers.redis() as socket:
            chords = partial(peers.measure, "celery_chord.py", socket or "", str(count // 5))
            has_celery = self._has_peers and socket is not None
            found = self._in_turn(
                3,
                celery=lambda _url: chords() if has_celery else None,
                fans=lambda url: workflows.fans(url, width, count),
                wide=lambda url: workflows.fans(url, 1_000, 1),
                chain=lambda url: workflows.hop_ms(url, self._count(1_000)),
            )
        yield from peer_figures("celery chords 1 → 50 → 1, Redis", found["celery"])
        own = statistics.median(found["fans"])
        yield at_least(f"{count} workflows 1 → 50 → 1 at once", own, "nodes/s", 3_000)
        if peer := done_rate(found["celery"]):
            yield at_least("the same against 10 × celery", own, "nodes/s", 10 * peer)
        yield Figure("1 → 1,000 → 1", statistics.median(found["wide"]), "nodes/s")
        hop, single = min(found["chain"])
        yield at_most("a chain, per hop, against 2 × send → result", hop, "ms", 2 * single)
        drains = self._in_turn(
            3,
            without=lambda url: workflows.drain_beside_waiting(url, self._count(60_000), 0),
            beside=lambda url: workflows.drain_beside_waiting(url, self._count(60_000), 100_000),
        )
        free = rate(drains["without"])
        yield at_least(
            "drain beside 100,000 waiting nodes", rate(drains["beside"]), "tasks/s", 0.95 * free
        )

    def _idle(self) -> Iterator[Figure]:
        times = (8, 4) if self._is_quick else (60, 12)
        idle = self._on("idle worker", lambda url: ours.idle(url, *times))
        yield at_most("idle worker, statements/s", idle["statements_per_s"], "stmts/s", 1)
        yield at_most("idle worker, processor share", idle["cpu_percent"], "% CPU", 1)
        yield at_most("idle worker, connections", idle["connections"], "conns", 4)
        children = f"children {idle['children_mb']:.0f} MB more"
        yield at_most("idle worker, memory", idle["rss_mb"], "MB", 80, children)

    def _schedules(self) -> Iterator[Figure]:
        passes, seconds = (5, 20) if self._is_quick else (30, 60)
        found = self._on(
            "10,000 schedules", lambda url: schedules.measured(url, 10_000, 100, passes, seconds)
        )
        detail = f"without a due one {found.idle_pass_ms:.1f} ms"
        yield Figure("10,000 schedules, 100 due: one pass", found.pass_ms, "ms", "", None, detail)
        yield Figure("10,000 schedules, none due", found.statements_per_min, "stmts/min")

    def _executors(self) -> Iterator[Figure]:
        self._say("executors")
        for kind, cost_us in executors.costs_us(self._count(20_000)).items():
            yield Figure(f"executor alone: {kind}", cost_us, "µs/call")
        p50, p99, worst = self._on(
            "event-loop lag", lambda url: ours.loop_lag_ms(url, self._count(60_000))
        )
        detail = f"p99 {p99:.1f}, worst {worst:.1f}"
        yield Figure("event-loop lag while draining, p50", p50, "ms", "", None, detail)


def middle(values: list[float]) -> float:
    return statistics.median(values)


def rate(runs: list[Drained] | Drained) -> float:
    return middle([one.rate for one in ([runs] if isinstance(runs, Drained) else runs)])


def spread(runs: list[Drained]) -> str:
    rates = sorted(one.rate for one in runs)
    return f"{rates[0]:,.0f} to {rates[-1]:,.0f} in {len(rates)}" if len(rates) > 1 else ""


def done_rate(speeds: list[peers.Speed | None]) -> float | None:
    found = [speed.done for speed in speeds if speed is not None]
    return middle(found) if found else None


def peer_figures(name: str, speeds: list[peers.Speed | None]) -> Iterator[Figure]:
    found = [speed for speed in speeds if speed is not None]
    if not found:
        yield Figure(name, math.nan, "", "missing", None, "cannot be had on this machine")
        return
    sent = middle([speed.sent for speed in found])
    detail = f"its sends: {sent:,.0f} per s"
    yield Figure(name, middle([speed.done for speed in found]), "tasks/s", "peer", None, detail)


def costs(runs: list[Drained]) -> Iterator[Figure]:
    def cost(name: str) -> float:
        return middle([one.costs[name] for one in runs])

    yield at_most("server CPU per task", cost("server_us"), "µs", 60)
    yield at_most("worker CPU per task", cost("worker_us"), "µs", 70)
    for name in ("statements", "transactions", "rows", "index_entries"):
        yield Figure(f"{name.replace('_', ' ')} per task", cost(name), "")
    yield Figure("WAL per task", cost("wal_bytes"), "bytes")
