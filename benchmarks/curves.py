"""Rate against size: what grows, and whether the work slows down with it."""

import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack

import psutil

from benchmarks import ours, stage
from benchmarks.chart import Plot, write_curves
from benchmarks.late import late_commits
from benchmarks.ours import WIDE
from benchmarks.report import IMAGES, RESULTS, store
from benchmarks.stage import connect, fresh_database, worker
from benchmarks.sustained import chosen_load, sustain
from benchmarks.waiting import large_results, many_waiters

Say = Callable[[str], None]
Point = tuple[str, float, float]  # line, x, y
RATE = "tasks per second"
_LOG_Y = {"settling", "sustained"}


class Curves:
    """Each curve prints its points as they come, and is stored and drawn when it is complete."""

    def __init__(self, server_url: str, say: Say, *, is_quick: bool) -> None:
        self._server_url = server_url
        self._say = say
        self._is_quick = is_quick
        self._count = 10_000 if is_quick else 60_000

    def run(self, name: str) -> None:
        title, x_label, y_label, is_log = CURVES[name]
        lines: dict[str, list[tuple[float, float]]] = {}
        measure: Callable[[], Iterator[Point]] = getattr(self, f"_{name}")
        for line, x, y in measure():
            lines.setdefault(line, []).append((x, y))
            self._say(f"{name}: {line}, {x:,.6g} {x_label}: {y:,.6g} {y_label}")
        store(RESULTS / ("curves-quick.json" if self._is_quick else "curves.json"), {name: lines})
        plot = Plot(title, x_label, y_label, lines, is_log, has_log_y=name in _LOG_Y)
        folder = RESULTS if self._is_quick else IMAGES
        write_curves(folder / f"curve-{name}.svg", plot)

    def _sizes(self, *full: int) -> tuple[int, ...]:
        return tuple(size // 20 for size in full[:3]) if self._is_quick else full

    def _held(self) -> Iterator[Point]:
        """The rate by tenths of one long run, without and with an old snapshot."""
        (size,) = self._sizes(1_000_000)
        for line, is_held in (("free", False), ("old snapshot held", True)):
            with fresh_database(self._server_url) as url:
                run = ours.drain(url, "noop", size, *WIDE, is_held=is_held)
            yield from ((line, size * (n + 1) / 10, run.tenths(n)) for n in range(10))

    def _backlog(self) -> Iterator[Point]:
        with fresh_database(self._server_url) as url:
            filled = 0
            for size in self._sizes(100_000, 500_000, 2_000_000, 5_000_000):
                ours.bulk_fill(url, "PENDING", filled + 1, size - filled)
                filled = size
                run = ours.work_off(url, self._count // 2, *WIDE, is_partial=True)
                yield "1 worker", size, run.rate

    def _history(self) -> Iterator[Point]:
        with fresh_database(self._server_url) as url:
            filled = 0
            for size in (1_000, *self._sizes(100_000, 1_000_000, 3_000_000, 10_000_000)):
                ours.bulk_fill(url, "COMPLETED", filled + 1, size - filled)
                filled = size
                yield "1 worker", size, ours.drain(url, "noop", self._count, *WIDE).rate

    def _queues(self) -> Iterator[Point]:
        for size in (1, 10, 100, 1_000):
            with (
                ours.environ({"HORSIES_BENCH_QUEUES": str(size)}),
                fresh_database(self._server_url) as url,
            ):
                ours.bulk_fill(url, "PENDING", 1, self._count, queues=size)
                yield "1 worker", size, ours.work_off(url, self._count, *WIDE).rate

    def _priorities(self) -> Iterator[Point]:
        for size in (1, 3, 10, 30, 100):
            with fresh_database(self._server_url) as url:
                ours.bulk_fill(url, "PENDING", 1, self._count, priorities=size)
                yield "1 worker", size, ours.work_off(url, self._count, *WIDE).rate

    def _workers(self) -> Iterator[Point]:
        for size in (1, 2, 4, 8, 16):
            for line, options in (("no-op", WIDE), ("10 ms", ("--concurrency", "10"))):
                with fresh_database(self._server_url) as url:
                    count = self._count if line == "no-op" else self._count // 16 * min(size, 4)
                    task = "noop" if line == "no-op" else "nap"
                    yield line, size, ours.drain(url, task, count, *options, workers=size).rate

    def _late(self) -> Iterator[Point]:
        for size in self._sizes(60_000, 200_000, 600_000):
            with fresh_database(self._server_url) as url:
                found = late_commits(url, size)
                self._say(f"late: {found.count} rows beside {found.rate:,.0f} plain tasks/s")
                yield "p50", size, found.p50_ms
                yield "p99", size, found.p99_ms
                yield "worst", size, found.worst_ms

    def _memory(self) -> Iterator[Point]:
        for line, task, full, options in (
            ("async, worker", "noop", 1_000_000, WIDE),
            ("2 children, all", "child", 1_000_000, ("--processes", "2")),
        ):
            count = full // 50 if self._is_quick else full
            points: list[Point] = []

            def sample(
                done: int, processes: list[psutil.Process], points: list[Point] = points,
                line: str = line, count: int = count,
            ) -> None:  # fmt: skip
                if done >= len(points) * count / 40:
                    points.append((line, done, sum(map(stage.family_rss_mb, processes))))

            with fresh_database(self._server_url) as url:
                ours.bulk_fill(url, "PENDING", 1, count, task=task)
                ours.work_off(url, count, *options, on_sample=sample)
            yield from points

    def _settling(self) -> Iterator[Point]:
        """Tasks a worker of two children holds while it learns how long they take."""
        for line, seconds in (("0.1 ms", [0.0001]), ("10 ms", [0.01]), ("1 s", [1.0]),
                              ("mixed", [0.0001, 0.0001, 0.01, 0.2])):  # fmt: skip
            with fresh_database(self._server_url) as url:
                yield from self._held_over_time(url, line, seconds)

    def _held_over_time(self, url: str, line: str, seconds: list[float]) -> Iterator[Point]:
        span_s = 2.0 if self._is_quick else 6.0
        mean = sum(seconds) / len(seconds)
        count = min(60_000, int(2 * span_s / mean * 1.5) + 20)
        with ours.sending(url) as module:
            calls = [(n, seconds[n % len(seconds)]) for n in range(count)]
            module.child.send_many(calls).unwrap()
        with connect(url) as connection, worker(url, "--processes", "2"):
            held = "select count(*) from horsies_tasks where status in ('RUNNING', 'CLAIMED')"
            while not stage.number(connection, held):
                time.sleep(0.005)
            started = time.perf_counter()
            while (elapsed := time.perf_counter() - started) < span_s:
                yield line, elapsed, stage.number(connection, held)
                time.sleep(0.1)
            done = stage.attempts_so_far(connection)
            self._say(f"settling: {line}: {done / span_s:,.0f}/s of an ideal {2 / mean:,.0f}/s")

    def _shares(self) -> Iterator[Point]:
        """Two unequal workers, ready before the tasks are sent: what part the larger one does."""
        yield from (("fair", part, part) for part in (0.2, 0.8))
        for line, task, option, sizes in (
            ("coroutines, 10 ms", "nap", "--concurrency", (10, 40)),
            ("children, 10 ms", "child", "--processes", (1, 3)),
        ):
            with fresh_database(self._server_url) as url, ExitStack() as running:
                shares = self._shared(url, task, option, sizes, running)
                for size, share in zip(sizes, shares, strict=True):
                    yield line, size / sum(sizes), share

    def _shared(
        self, url: str, task: str, option: str, sizes: tuple[int, int], running: ExitStack
    ) -> list[float]:
        count = (400 if task == "child" else 4_000) * (1 if self._is_quick else 5)
        with ours.sending(url) as module, connect(url) as connection:
            pids = [running.enter_context(worker(url, option, str(n))).pid for n in sizes]
            ready = "select count(distinct pid) from horsies_worker_states"
            while stage.number(connection, ready) < 2:
                time.sleep(0.05)
            getattr(module, task).send_many([(n, 0.01) for n in range(count)]).unwrap()
            stage.watch(connection, count)
            stage.check_invariants(connection, count)
            return [
                stage.number(
                    connection,
                    "select count(*) from horsies_task_attempts where worker_id in "
                    "(select worker_id from horsies_worker_states where pid = %s)",
                    pid,
                )
                / count
                for pid in pids
            ]

    def _waiting(self) -> Iterator[Point]:
        """Memory of a process that waits for many results, and of a worker with large ones."""
        for waiters in self._sizes(1_000, 3_000, 10_000):
            with fresh_database(self._server_url) as url:
                rss_mb, connections = many_waiters(url, waiters)
                self._say(f"waiting: {waiters:,} waiters, {connections} connections")
                yield "get_async callers", waiters, rss_mb
        for results in self._sizes(100, 300, 1_000):
            with fresh_database(self._server_url) as url:
                yield "1 MB results, worker", results, large_results(url, results)

    def _sustained(self) -> Iterator[Point]:
        """A steady load beside a long history, minute by minute."""
        load = chosen_load(is_quick=self._is_quick)
        self._say(f"sustained: {load}")
        with fresh_database(self._server_url) as url:
            for minute in sustain(url, load):
                yield "tasks per second", minute.at, minute.rate
                yield "claim, p50 in ms", minute.at, minute.p50_ms
                yield "claim, p99 in ms", minute.at, minute.p99_ms
                yield "dead tuples, thousands", minute.at, minute.dead_count / 1000


CURVES: dict[str, tuple[str, str, str, bool]] = {
    "held": ("With a session idle in transaction", "tasks done", RATE, False),
    "backlog": ("With a deep backlog", "tasks waiting", RATE, True),
    "history": ("With a long history", "finished rows in the table", RATE, True),
    "queues": ("Over many queues", "queues", RATE, True),
    "priorities": ("Over many priorities", "priorities in one queue", RATE, True),
    "workers": ("With many workers on two cores", "workers", RATE, True),
    "late": (
        "Late commits beside an old snapshot",
        "tasks done since the snapshot",
        "ms from commit to start",
        True,
    ),
    "memory": ("Memory over many tasks", "tasks done", "MB resident", False),
    "settling": ("How much a worker of two children takes", "seconds", "tasks held", False),
    "shares": ("Two unequal workers", "part of the slots", "part of the tasks", False),
    "sustained": ("A steady load beside a long history", "minutes", "see the lines", False),
    "waiting": ("Memory of those who wait", "results", "MB resident", True),
}
