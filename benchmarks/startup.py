"""What it takes to start: imports, the first claim, memory."""

import os
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator

from benchmarks import ours
from benchmarks.report import Figure, at_most
from benchmarks.stage import ROOT, connect, number, worker
from benchmarks.turns import Turns, middle

_MB = 1_048_576
_PROGRAMS = {
    "python alone": ["-c", "pass"],
    "import horsies": ["-c", "import horsies"],
    "horsies --help": ["-m", "horsies.cli.main", "--help"],
    "an app: from horsies import Horsies": ["-c", "from horsies import Horsies; Horsies()"],
}


def measured(turns: Turns) -> Iterator[Figure]:
    turns.say("imports")
    times = _program_times_ms(3 if turns.is_quick else 15)
    alone = times["python alone"]
    detail = f"{alone:.0f} ms of it Python's own start"
    yield at_most("import horsies", times["import horsies"], "ms", 150, detail)
    yield at_most("horsies --help", times["horsies --help"], "ms", 200)
    name = "an app: from horsies import Horsies"
    yield Figure(name, times[name], "ms", "", None, "with psycopg, pydantic and asyncio")
    found = turns.in_turn(ready=ready_ms, child_ready=child_ready_ms)
    yield at_most("worker, start → first claim", middle(found["ready"]), "ms", 1_000)
    name = "worker, start → first claim for a child"
    yield Figure(name, middle(found["child_ready"]), "ms", "", None, "which imports the app anew")
    memory = turns.on("memory", memory_mb)
    detail = f"{memory['worker_uss']:.0f} MB of it its own"
    yield at_most("idle worker, memory (RSS)", memory["worker_rss"], "MB", 50, detail)
    server = f"fork server {memory['fork_server_uss']:.1f} MB"
    yield at_most("child, memory of its own (USS)", memory["child_uss"], "MB", 10, server)


def _program_times_ms(repeats: int) -> dict[str, float]:
    """Median wall-clock time of each program, one after the other, again and again."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
    found: dict[str, list[float]] = {name: [] for name in _PROGRAMS}
    for turn in range(repeats + 1):
        for name, arguments in _PROGRAMS.items():
            started = time.perf_counter()
            subprocess.run(
                [sys.executable, *arguments], check=True, env=environment, stdout=subprocess.DEVNULL
            )
            if turn:  # the first may compile
                found[name].append((time.perf_counter() - started) * 1000)
    return {name: statistics.median(times) for name, times in found.items()}


def ready_ms(url: str, task_name: str = "noop") -> float:
    """From the start of the process to the claim of a task that waits; the schema is there."""
    with ours.sending(url) as module, connect(url) as connection:
        getattr(module, task_name).send(1).unwrap()
        started = time.time()
        with worker(url, "--processes", "1"):
            begun = "select count(*) from horsies_tasks where claimed_at is not null"
            while not number(connection, begun):
                time.sleep(0.02)
        claimed = number(
            connection, "select 1e6 * extract(epoch from max(claimed_at)) from horsies_tasks"
        )
    return (claimed / 1e6 - started) * 1000


def child_ready_ms(url: str) -> float:
    return ready_ms(url, "child")


def memory_mb(url: str) -> dict[str, float]:
    """Of an idle worker with two children that have each run some tasks."""
    with ours.sending(url) as module, worker(url, "--processes", "2") as process:
        for n in range(50):
            module.child.send(n).unwrap().get(timeout_ms=20_000)
        time.sleep(2)
        fork_server, *_ = process.children()
        children = fork_server.children()
        own = process.memory_full_info()
        return {
            "worker_rss": own.rss / _MB,
            "worker_uss": own.uss / _MB,
            "fork_server_uss": fork_server.memory_full_info().uss / _MB,
            "child_uss": max(child.memory_full_info().uss for child in children) / _MB,
        }
