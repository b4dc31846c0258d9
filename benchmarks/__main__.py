"""`make bench`: every figure with its target, in one run on one private durable server."""

import argparse
import json
import platform
import sys
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

from rich.console import Console
from rich.table import Table

from benchmarks import ours, peers, raw
from benchmarks.chart import write_chart
from benchmarks.stage import fresh_database, private_server

RESULTS = Path(__file__).parent / "results"


@dataclass(frozen=True, slots=True)
class Figure:
    """One measured row; the ratio is figure to target, 1.0 or more is reached."""

    name: str
    figure: float
    unit: str
    target: str
    ratio: float | None
    detail: str = ""


class Run:
    """Measures one after another, each on a database of its own."""

    def __init__(self, server_url: str, scale: float, console: Console) -> None:
        self._server_url = server_url
        self._scale = scale
        self._console = console

    def count(self, full: int) -> int:
        return max(200, int(full * self._scale))

    def on(self, name: str, work: Callable[[str], object]) -> object:
        self._console.print(f"[dim]… {name}[/dim]")
        with fresh_database(self._server_url) as url:
            return work(url)

    def figures(self) -> Iterator[Figure]:
        floor = self._floor(
            "raw claim+complete, batch 500",
            lambda url: raw.claim_and_complete(url, self.count(60_000)),
        )
        inserts = self._floor(
            "raw INSERT + commit", lambda url: raw.single_inserts(url, self.count(4_000))
        )
        trip = self.on("raw three-commit trip", lambda url: raw.round_trip_ms(url, self.count(600)))
        assert isinstance(trip, tuple)
        yield Figure("raw claim+complete (batch 500)", floor, "tasks/s", "floor", None)
        yield Figure("raw INSERT + commit", inserts, "per s", "floor", None)
        yield Figure(
            "raw three-commit trip p50", trip[0], "ms", "floor", None, f"p99 {trip[1]:.1f}"
        )
        yield from self._drains(floor)
        yield from self._sends(inserts)
        yield from self._latencies(trip[0])
        yield from self._idle()

    def _floor(self, name: str, work: Callable[[str], float]) -> float:
        measured = self.on(name, work)
        assert isinstance(measured, float)
        return measured

    def _drains(self, floor: float) -> Iterator[Figure]:
        has_peers = peers.prepare()
        count = self.count(60_000)
        best = self._peer("pgqueuer_drain.py", count, "async") if has_peers else None
        threads = (
            self._peer("pgqueuer_drain.py", self.count(20_000), "thread") if has_peers else None
        )
        other = self._peer("procrastinate_drain.py", self.count(4_000)) if has_peers else None
        for name, value in (
            ("pgqueuer async drain", best),
            ("pgqueuer thread drain", threads),
            ("procrastinate drain", other),
        ):
            if value is not None:
                yield Figure(name, value, "tasks/s", "peer", None)
        rate = yield from self._drain("async no-op drain", "noop", count, "--concurrency", "1000")
        yield Figure(
            "… against half the raw floor",
            rate,
            "tasks/s",
            f"≥ {floor / 2:.0f}",
            rate / (floor / 2),
        )
        if best:
            yield Figure(
                "… against 1.2 × pgqueuer",
                rate,
                "tasks/s",
                f"≥ {1.2 * best:.0f}",
                rate / (1.2 * best),
            )
        threaded = yield from self._drain(
            "sync no-op drain, threads", "thread", self.count(20_000), "--threads", "4"
        )
        if threads:
            yield Figure(
                "… against pgqueuer's threads",
                threaded,
                "tasks/s",
                f"≥ {threads:.0f}",
                threaded / threads,
            )
        children = yield from self._drain(
            "sync no-op drain, child processes", "child", self.count(30_000), "--processes", "2"
        )
        yield Figure("… against 6,000/s", children, "tasks/s", "≥ 6000", children / 6000)
        napped = yield from self._drain(
            "10 ms coroutines, --concurrency 100", "nap", self.count(40_000), "--concurrency", "100"
        )
        bound = min(9_000.0, rate)
        yield Figure(
            "… against 90 % of ideal or the drain rate",
            napped,
            "tasks/s",
            f"≥ {bound:.0f}",
            napped / bound,
        )
        capped = yield from self._drain(
            "async no-op drain, caps on, 4 workers",
            "noop",
            self.count(20_000),
            "--concurrency",
            "100",
            workers=4,
            HORSIES_BENCH_CAP="400",
        )
        yield Figure(
            "… against half the rate without",
            capped,
            "tasks/s",
            f"≥ {rate / 2:.0f}",
            capped / (rate / 2),
        )

    def _peer(self, script: str, count: int, *arguments: str) -> float | None:
        measured = self.on(script, lambda url: peers.measure(script, url, str(count), *arguments))
        return measured if isinstance(measured, float) else None

    def _drain(
        self, name: str, task: str, count: int, *options: str, workers: int = 1, **environment: str
    ) -> Iterator[Figure]:
        measured = self.on(
            name, lambda url: ours.drain(url, task, count, *options, workers=workers, **environment)
        )
        assert isinstance(measured, dict)
        detail = (
            f"{measured['server_us']:.0f} µs server, {measured['worker_us']:.0f} µs worker, "
            f"{measured['transactions']:.3f} tx, {measured['wal_bytes']:.0f} B WAL, "
            f"{measured['rows']:.2f} rows per task"
        )
        yield Figure(name, measured["rate"], "tasks/s", "", None, detail)
        return measured["rate"]

    def _sends(self, inserts: float) -> Iterator[Figure]:
        blocking = self._floor(
            "blocking send", lambda url: ours.blocking_sends(url, self.count(4_000))
        )
        yield Figure(
            "blocking send", blocking, "per s", f"≥ {0.8 * inserts:.0f}", blocking / (0.8 * inserts)
        )
        grouped = self._floor(
            "send_async, 200 callers", lambda url: ours.concurrent_sends(url, self.count(40_000))
        )
        yield Figure("send_async, 200 callers", grouped, "per s", "≥ 10000", grouped / 10_000)
        bulk = self._floor("send_many", lambda url: ours.fill(url, "noop", self.count(100_000)))
        yield Figure("send_many", bulk, "per s", "≥ 60000", bulk / 60_000)

    def _latencies(self, trip: float) -> Iterator[Figure]:
        for task, factor in (("noop", 1.7), ("child", 2.0)):
            measured = self.on(
                f"send → result, {task}",
                lambda url, task=task: ours.latency_ms(url, task, self.count(500)),
            )
            assert isinstance(measured, tuple)
            yield Figure(
                f"send → result p50, {task}",
                measured[0],
                "ms",
                f"≤ {factor * trip:.1f}",
                factor * trip / measured[0],
                f"p99 {measured[1]:.1f} (≤ {4 * trip:.1f})",
            )

    def _idle(self) -> Iterator[Figure]:
        measured = self.on(
            "idle worker", lambda url: ours.idle(url, 20 if self._scale >= 1 else 10)
        )
        assert isinstance(measured, dict)
        detail = (
            f"{measured['cpu_percent']:.1f} % CPU, {measured['rss_mb']:.0f} MB, "
            f"{measured['connections']:.0f} connections"
        )
        yield Figure(
            "idle worker",
            measured["statements_per_s"],
            "statements/s",
            "≤ 1",
            1 / max(measured["statements_per_s"], 0.01),
            detail,
        )


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a fifth of the work, under 3 minutes")
    parser.add_argument("--database-url", help="a server to use instead of the embedded one")
    arguments = parser.parse_args()
    console = Console(width=150)
    figures: list[Figure] = []
    with private_server(arguments.database_url) as url:
        run = Run(url, 0.2 if arguments.quick else 1.0, console)
        for figure in run.figures():
            figures.append(figure)
            _print(console, [figure])
    console.print()
    _print(console, figures)
    RESULTS.mkdir(exist_ok=True)
    content = {
        "python": sys.version,
        "machine": platform.platform(),
        "figures": [asdict(f) for f in figures],
    }
    (RESULTS / "latest.json").write_text(json.dumps(content, indent=2, ensure_ascii=False) + "\n")
    write_chart(RESULTS / "latest.svg", [(f.name, f.ratio) for f in figures if f.ratio is not None])
    return 0


def _print(console: Console, figures: list[Figure]) -> None:
    table = Table(show_header=len(figures) > 1, box=None)
    for heading in ("measured", "figure", "unit", "target", "ratio", ""):
        table.add_column(
            heading, justify="right" if heading in ("figure", "ratio") else "left", min_width=8
        )
    for figure in figures:
        ratio = "" if figure.ratio is None else f"{figure.ratio:.2f}"
        colour = "" if figure.ratio is None else "green" if figure.ratio >= 1 else "red"
        shown = f"[{colour}]{ratio}[/{colour}]" if colour else ratio
        table.add_row(
            figure.name, f"{figure.figure:,.1f}", figure.unit, figure.target, shown, figure.detail
        )
    console.print(table)


if __name__ == "__main__":
    sys.exit(main())
