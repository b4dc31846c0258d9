"""Ours beside each peer, each with its defaults: send → start, and the way back from a kill -9."""

import math
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path

from benchmarks import ours, peers
from benchmarks.panels import LATENCY, RECOVERY, RECOVERY_LIMIT_S
from benchmarks.report import Figure
from benchmarks.stage import ROOT, connect, fresh_database, number, worker
from benchmarks.turns import RUNS, Turns, middle

ON_POSTGRES = ("pgqueuer", "procrastinate", "oban")
ON_REDIS = ("celery", "dramatiq", "huey")


def measured(turns: Turns) -> Iterator[Figure]:
    latencies = _latencies(turns)
    for name, times in latencies.items():
        if times:
            p50, p99 = (middle([pair[i] for pair in times]) for i in (0, 1))
            yield Figure(f"{name}, {LATENCY}", p50, "ms", "", None, f"p99 {p99:.1f} ms")
        else:
            yield Figure(f"{name}, {LATENCY}", math.nan, "", "missing")
    limit_s = 45.0 if turns.is_quick else RECOVERY_LIMIT_S
    for name, seconds in _recoveries(turns, limit_s).items():
        never = f"not within {limit_s:.0f} s" if math.isnan(seconds) else ""
        yield Figure(f"{name}, {RECOVERY}", seconds, "s", "", None, never)


def _latencies(turns: Turns) -> dict[str, list[tuple[float, float]]]:
    """Medians and 99th percentiles, ours and theirs in turn."""
    count = turns.count(200)
    found: dict[str, list[tuple[float, float]]] = {"horsies": []}
    for _ in range(1 if turns.is_quick else RUNS):
        found["horsies"].append(turns.on("horsies", lambda url: start_latency_ms(url, count)))
        for name in ON_POSTGRES + ON_REDIS:
            pair = _ask(turns, name, "latency", str(count))
            found.setdefault(name, []).extend([pair] if pair else [])
    return found


def _recoveries(turns: Turns, limit_s: float) -> dict[str, float]:
    """Seconds until a task of a killed worker begins again; the peers wait side by side."""
    runs = 1 if turns.is_quick else RUNS
    found = {"horsies": middle([turns.on("recovery", recovery_s) for _ in range(runs)])}
    names = ON_POSTGRES + ON_REDIS
    with ThreadPoolExecutor(len(names)) as pool:
        asked = {
            name: pool.submit(_ask, turns, name, "recovery", str(limit_s), limit_s + 60)
            for name in names
        }
        for name, answer in asked.items():
            if (pair := answer.result()) is not None:
                found[name] = pair[0]
    return found


def _ask(
    turns: Turns, name: str, what: str, argument: str, limit_s: float = 120.0
) -> tuple[float, float] | None:
    environment = peers.OBAN if name == "oban" else peers.ENVIRONMENT
    if not turns.has_peers or not peers.prepare(environment):
        return None
    turns.say(f"{name}, {what}")
    with ExitStack() as held:
        if name in ON_POSTGRES:
            place: str | None = held.enter_context(fresh_database(turns.server_url))
        else:
            place = held.enter_context(peers.redis())
        if place is None:
            return None
        speed = peers.measure(
            "notes.py", place, name, what, argument, environment=environment, limit_s=limit_s
        )
    return None if speed is None else (speed.sent, speed.done)


def start_latency_ms(url: str, count: int) -> tuple[float, float]:
    """send → start of ours on an idle worker: p50 and p99."""
    with (
        tempfile.TemporaryDirectory(prefix="horsies-notes-") as directory,
        ours.sending(url) as module,
        worker(url, "--processes", "1"),
    ):
        path = Path(directory) / "marks"
        path.write_text("0\n")  # so that none is the first, which would stay
        for n in range(count + 10):
            module.note.send(str(path), time.time(), 0.0).unwrap()
            _wait_for_lines(path, n + 2)
            time.sleep(0.02)  # it comes to rest
        times = [float(line) * 1000 for line in path.read_text().splitlines()[11:]]
    return statistics.median(times), statistics.quantiles(times, n=100)[98]


def recovery_s(url: str) -> float:
    """From kill -9 of the worker that runs a task to the task's second start, with our defaults.

    The task's policy retries WORKER_CRASHED after the shortest wait there is, one second.
    """
    with (
        tempfile.TemporaryDirectory(prefix="horsies-notes-") as directory,
        ours.sending(url) as module,
        connect(url) as connection,
    ):
        path, sent_at = Path(directory) / "marks", time.time()
        first = _unguarded_worker(url)
        module.note.send(str(path), sent_at, 3_600.0).unwrap()
        _wait_for_lines(path, 1)
        second = _unguarded_worker(url)
        try:
            while number(connection, "select count(distinct pid) from horsies_worker_states") < 2:
                time.sleep(0.05)
            killed_at = time.time()
            first.kill()
            return sent_at + _wait_for_lines(path, 2)[1] - killed_at
        finally:
            first.kill()
            second.send_signal(signal.SIGTERM)
            first.wait(60)
            second.wait(60)


def _unguarded_worker(url: str) -> subprocess.Popen[bytes]:
    """A worker that may be killed."""
    command = [sys.executable, "-m", "horsies.cli.main", "worker", "benchmarks.app:app",
               "--processes", "1", "--loglevel", "CRITICAL"]  # fmt: skip
    environment = {**os.environ, "HORSIES_BENCH_URL": url}
    environment["PYTHONPATH"] = f"{ROOT / 'src'}{os.pathsep}{ROOT}"
    return subprocess.Popen(command, cwd=ROOT, env=environment, stderr=subprocess.DEVNULL)


def _wait_for_lines(path: Path, count: int, limit_s: float = 60.0) -> list[float]:
    deadline = time.monotonic() + limit_s
    while time.monotonic() < deadline:
        if path.exists() and len(lines := path.read_text().splitlines()) >= count:
            return [float(line) for line in lines]
        time.sleep(0.002)
    raise TimeoutError(f"no {count} marks within {limit_s:g} s")
