"""The target table: each row measured, floors and peers beside it."""

from collections.abc import Callable, Iterator
from functools import partial

from benchmarks import (
    executors,
    loads,
    operating,
    ours,
    peers,
    picture,
    producers,
    raw,
    schedules,
    settings,
    startup,
    web_pages,
    workflows,
)
from benchmarks.ours import WIDE, Drained
from benchmarks.report import Figure, at_least, at_most
from benchmarks.stage import fresh_database
from benchmarks.turns import (
    RUNS,
    Say,
    Turns,
    done_rate,
    middle,
    peer_figures,
    rate,
    spread,
)


class Targets:
    """Measures group by group."""

    def __init__(self, server_url: str, say: Say, *, is_quick: bool) -> None:
        turns = self._turns = Turns(server_url, say, is_quick=is_quick)
        self.groups: dict[str, Callable[[], Iterator[Figure]]] = {
            "async": self._async,
            "threads": self._threads,
            "children": self._children,
            "failing": partial(loads.failing, turns),
            "payloads": partial(loads.payloads, turns),
            "naps": partial(loads.naps, turns),
            "widths": partial(loads.widths, turns),
            "fleet": partial(loads.fleet, turns),
            "sends": self._sends,
            "latency": self._latency,
            "pace": partial(loads.pace, turns),
            "caps": self._caps,
            "held": self._held,
            "history": self._history,
            "workflows": self._workflows,
            "idle": self._idle,
            "schedules": self._schedules,
            "web": self._web,
            "startup": partial(startup.measured, turns),
            "executors": self._executors,
            "observability": partial(operating.observability, turns),
            "lists": partial(operating.lists, turns),
            "peers": partial(picture.measured, turns),
            "settings": lambda: settings.measured(say, is_quick=is_quick),
        }

    def _async(self) -> Iterator[Figure]:
        count = 60_000
        found = self._turns.in_turn(
            raw=lambda url: raw.claim_and_complete(url, self._turns.count(count)),
            raw_own=lambda url: raw.claim_and_complete_own(
                url, self._turns.count(count), raw.OWN_COMPLETE
            ),
            raw_attempts=lambda url: raw.claim_and_complete_own(
                url, self._turns.count(count), raw.WITH_ATTEMPTS
            ),
            pgqueuer=self._turns.peer("pgqueuer_drain.py", count, "async", "2"),
            one_worker=self._turns.drain("noop", count, *WIDE),
            two_workers=self._turns.drain("noop", count, *WIDE, workers=2, counts_entries=True),
        )
        procrastinate = self._turns.peer("procrastinate_drain.py", 5_000)
        bystanders = {"procrastinate": self._turns.on("procrastinate", procrastinate)}
        if not self._turns.is_quick:
            bystanders["oban"] = self._turns.on("oban", lambda url: loads.oban(url, 10_000, 0, 500))
        floor = middle(found["raw"])
        best = max(rate(found["one_worker"]), rate(found["two_workers"]))
        yield Figure("raw claim+complete, batch 500", floor, "tasks/s", "floor")
        own, full = middle(found["raw_own"]), middle(found["raw_attempts"])
        yield Figure("the same on horsies_tasks", own, "tasks/s", "floor")
        yield Figure("the same with attempt rows", full, "tasks/s", "floor")
        for name, speed in bystanders.items():
            yield from peer_figures(name, [speed])
        yield from peer_figures("pgqueuer, 2 processes, batch 500", found["pgqueuer"])
        for name in ("one_worker", "two_workers"):
            shown = f"async no-op drain, {name.replace('_', ' ')}"
            yield Figure(shown, rate(found[name]), "tasks/s", "", None, spread(found[name]))
        yield at_least("async drain against half the raw floor", best, "tasks/s", floor / 2)
        yield at_least("async drain against half of raw on our table", best, "tasks/s", own / 2)
        if peer := done_rate(found["pgqueuer"]):
            yield at_least("async drain against 1.2 × pgqueuer", best, "tasks/s", 1.2 * peer)
        yield from costs(found["two_workers"])

    def _threads(self) -> Iterator[Figure]:
        found = self._turns.in_turn(
            pgqueuer_threads=self._turns.peer("pgqueuer_drain.py", 20_000, "thread", "2"),
            threads=self._turns.drain("thread", 20_000, "--threads", "8", workers=2),
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
            count = str(self._turns.count(20_000))
            huey = partial(peers.measure, "redis_drain.py", socket or "", count, "huey")
            has_huey = self._turns.has_peers and socket is not None
            found = self._turns.in_turn(
                huey=lambda _url: huey() if has_huey else None,
                children=self._turns.drain("child", 30_000, "--processes", "2"),
            )
        yield from peer_figures("huey, Redis, 4 processes", found["huey"])
        yield from self._redis_peers("celery")
        yield from self._public_horsies()
        own, detail = rate(found["children"]), spread(found["children"])
        yield at_least("sync no-op drain, children, against 6,000/s", own, "tasks/s", 6_000, detail)
        if peer := done_rate(found["huey"]):
            yield at_least(
                "sync no-op drain, children, against 2.5 × huey", own, "tasks/s", 2.5 * peer
            )

    def _redis_peers(self, *names: str) -> Iterator[Figure]:
        """Bystanders, measured once."""
        for name in () if self._turns.is_quick else names:
            with peers.redis() as socket:
                self._turns.say(name)
                speed = (
                    peers.measure("redis_drain.py", socket, "5000", name)
                    if socket and self._turns.has_peers
                    else None
                )
            yield from peer_figures(f"{name}, Redis", [speed])

    def _public_horsies(self) -> Iterator[Figure]:
        if self._turns.is_quick:
            return
        environment = peers.HERE.parent / ".peers-horsies"
        speed = (
            self._turns.on(
                "public horsies",
                lambda url: peers.measure(
                    "horsies_drain.py", url, "1000", "4", environment=environment
                ),
            )
            if peers.prepare(environment)
            else None
        )
        yield from peer_figures("public package horsies, 4 processes", [speed])

    def _sends(self) -> Iterator[Figure]:
        found = self._turns.in_turn(
            raw_inserts=lambda url: raw.single_inserts(url, self._turns.count(5_000)),
            blocking_send=lambda url: ours.blocking_sends(url, self._turns.count(5_000)),
            raw_inserts_of_8=lambda url: producers.rate(url, "raw", self._turns.count(2_500)),
            blocking_send_of_8=lambda url: producers.rate(url, "send", self._turns.count(2_500)),
            send_async=lambda url: ours.concurrent_sends(url, self._turns.count(50_000)),
            send_many=lambda url: ours.fill(url, "noop", self._turns.count(150_000)),
        )
        floor = middle(found["raw_inserts"])
        yield Figure("raw INSERT + commit", floor, "per s", "floor")
        yield at_least("blocking send", middle(found["blocking_send"]), "per s", 0.8 * floor)
        floor = middle(found["raw_inserts_of_8"])
        yield Figure("raw INSERT + commit, 8 clients", floor, "per s", "floor")
        sends = middle(found["blocking_send_of_8"])
        yield at_least("blocking send, 8 clients", sends, "per s", 0.8 * floor)
        yield at_least("send_async, 200 callers", middle(found["send_async"]), "per s", 10_000)
        yield at_least("send_many", middle(found["send_many"]), "per s", 60_000)

    def _latency(self) -> Iterator[Figure]:
        count = self._turns.count(500)
        found = self._turns.in_turn(
            raw_trip=lambda url: raw.round_trip_ms(url, count),
            coroutine=lambda url: ours.latency_ms(url, "noop", count),
            child=lambda url: ours.latency_ms(url, "child", count),
        )
        trip = middle([p50 for p50, _ in found["raw_trip"]])
        worst = middle([p99 for _, p99 in found["raw_trip"]])
        yield Figure("raw three-commit trip, p50", trip, "ms", "floor", None, f"p99 {worst:.1f}")
        for kind, factor in (("coroutine", 1.6), ("child", 2.0)):
            p50, p99 = (middle([pair[i] for pair in found[kind]]) for i in (0, 1))
            yield at_most(f"send → result, {kind}, p50", p50, "ms", factor * trip)
            yield at_most(f"send → result, {kind}, p99", p99, "ms", 4 * trip)

    def _caps(self) -> Iterator[Figure]:
        options = ("--concurrency", "100")
        found = self._turns.in_turn(
            without=self._turns.drain("noop", 40_000, *options, workers=4),
            cluster_cap=self._turns.drain(
                "noop", 40_000, *options, workers=4, HORSIES_BENCH_CAP="400"
            ),
            queue_cap=self._turns.drain(
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
        for full in (200_000, 1_000_000):
            if self._turns.is_quick and full > 200_000:
                continue
            found = self._turns.in_turn(
                free=self._turns.drain("noop", full, *WIDE),
                held=self._turns.drain("noop", full, *WIDE, is_held=True),
            )
            size = f"{self._turns.count(full):,}"
            free, held = rate(found["free"]), rate(found["held"])
            yield Figure(f"{size} tasks, no old snapshot", free, "tasks/s")
            yield at_least(f"{size} tasks, old snapshot held", held, "tasks/s", 0.95 * free)
            # Three each: the rate of a single tenth moves by a fifth on a shared machine.
            first = middle([one.tenths(0, 3) for one in found["held"]])
            last = middle([one.tenths(7, 3) for one in found["held"]])
            name = f"{size} held: last three tenths against the first"
            yield at_least(name, last, "tasks/s", first)

    def _history(self) -> Iterator[Figure]:
        size = 100_000 if self._turns.is_quick else 10_000_000

        count, repeats = self._turns.count(60_000), 1 if self._turns.is_quick else RUNS
        fresh_runs: list[Drained] = []
        old_runs: list[Drained] = []
        with fresh_database(self._turns.server_url) as old_url:
            self._turns.say("history")
            ours.bulk_fill(old_url, "COMPLETED", 1, size)
            for _ in range(repeats):
                fresh_runs.append(self._turns.on("fresh", self._turns.drain("noop", 60_000, *WIDE)))
                self._turns.say("old")
                old_runs.append(ours.drain(old_url, "noop", count, *WIDE))
        fresh = rate(fresh_runs)
        name = f"drain with {size:,} finished rows"
        yield Figure("drain on a fresh table", fresh, "tasks/s")
        yield at_least(name, rate(old_runs), "tasks/s", 0.9 * fresh, spread(old_runs))

    def _workflows(self) -> Iterator[Figure]:
        width, count = 50, self._turns.count(100)
        with peers.redis() as socket:
            chords = partial(peers.measure, "celery_chord.py", socket or "", str(count // 5))
            has_celery = self._turns.has_peers and socket is not None
            found = self._turns.in_turn(
                celery=lambda _url: chords() if has_celery else None,
                fans=lambda url: workflows.fans(url, width, count),
                wide=lambda url: workflows.fans(url, 1_000, 1),
                chain=lambda url: workflows.hop_ms(url, self._turns.count(1_000)),
            )
        yield from peer_figures("celery chords 1 → 50 → 1, Redis", found["celery"])
        own = middle(found["fans"])
        yield at_least(f"{count} workflows 1 → 50 → 1 at once", own, "nodes/s", 3_000)
        if peer := done_rate(found["celery"]):
            yield at_least("the same against 10 × celery", own, "nodes/s", 10 * peer)
        yield Figure("1 → 1,000 → 1", middle(found["wide"]), "nodes/s")
        hop, single = min(found["chain"])
        yield at_most("a chain, per hop, against 2 × send → result", hop, "ms", 2 * single)
        drains = self._turns.in_turn(
            without=lambda url: workflows.drain_beside_waiting(url, self._turns.count(60_000), 0),
            beside=lambda url: workflows.drain_beside_waiting(
                url, self._turns.count(60_000), 100_000
            ),
        )
        free = rate(drains["without"])
        yield at_least(
            "drain beside 100,000 waiting nodes", rate(drains["beside"]), "tasks/s", 0.95 * free
        )

    def _idle(self) -> Iterator[Figure]:
        times = (8, 4) if self._turns.is_quick else (60, 12)
        idle = self._turns.on("idle worker", lambda url: ours.idle(url, *times))
        yield at_most("idle worker, statements/s", idle["statements_per_s"], "stmts/s", 1)
        yield at_most("idle worker, processor share", idle["cpu_percent"], "% CPU", 1)
        yield at_most("idle worker, connections", idle["connections"], "conns", 4)

    def _schedules(self) -> Iterator[Figure]:
        passes, seconds = (5, 20) if self._turns.is_quick else (30, 60)
        found = self._turns.on(
            "10,000 schedules", lambda url: schedules.measured(url, 10_000, 100, passes, seconds)
        )
        detail = f"without a due one {found.idle_pass_ms:.1f} ms"
        yield Figure("10,000 schedules, 100 due: one pass", found.pass_ms, "ms", "", None, detail)
        yield Figure("10,000 schedules, none due", found.statements_per_min, "stmts/min")

    def _web(self) -> Iterator[Figure]:
        finished, waiting = self._turns.count(1_000_000), self._turns.count(100_000)
        found = self._turns.on(
            f"pages of the dashboard beside {finished:,} finished and {waiting:,} waiting tasks",
            lambda url: web_pages.measured(url, finished, waiting, 5),
        )
        for page, times in found.items():
            name = f"dashboard {page}"
            yield at_most(name, middle(times), "ms", 300, f"worst {max(times):.0f}")

    def _executors(self) -> Iterator[Figure]:
        self._turns.say("executors")
        for kind, cost_us in executors.costs_us(self._turns.count(20_000)).items():
            yield Figure(f"executor alone: {kind}", cost_us, "µs/call")
        p50, p99, worst = self._turns.on(
            "event-loop lag", lambda url: ours.loop_lag_ms(url, self._turns.count(60_000))
        )
        detail = f"p99 {p99:.1f}, worst {worst:.1f}"
        yield Figure("event-loop lag while draining, p50", p50, "ms", "", None, detail)


def costs(runs: list[Drained]) -> Iterator[Figure]:
    def cost(name: str) -> float:
        return middle([one.costs[name] for one in runs])

    yield at_most("server CPU per task", cost("server_us"), "µs", 55)
    yield at_most("worker CPU per task", cost("worker_us"), "µs", 40)
    for name in ("statements", "transactions", "rows", "index_entries"):
        yield Figure(f"{name.replace('_', ' ')} per task", cost(name), "")
    yield Figure("WAL per task", cost("wal_bytes"), "bytes")
