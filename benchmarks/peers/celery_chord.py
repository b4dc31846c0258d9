"""Celery's own fan-in, a chord on Redis: nodes per second of COUNT chords 1 → 50 → 1 at once.

usage: celery_chord.py SOCKET COUNT
The same file is the module its worker imports.
"""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

from celery import Celery, chain, chord

SOCKET = os.environ.get("BENCH_REDIS_SOCKET") or sys.argv[1]
WIDTH = 50

app = Celery("celery_chord", broker=f"redis+socket://{SOCKET}", backend=f"redis+socket://{SOCKET}")
app.conf.worker_prefetch_multiplier = 64


@app.task(name="first")
def first() -> int:
    return 1


@app.task(name="wide")
def wide(_before: int, number: int) -> int:
    return number


@app.task(name="last")
def last(results: list[int]) -> int:
    return len(results)


def main(count: int) -> None:
    environment = {**os.environ, "BENCH_REDIS_SOCKET": SOCKET}
    environment["PYTHONPATH"] = str(Path(__file__).parent)
    worker = subprocess.Popen(
        [str(Path(sys.executable).parent / "celery"), "-A", "celery_chord", "worker", "-c", "4",
         "--loglevel", "ERROR", "--without-gossip", "--without-mingle", "--without-heartbeat"],
        env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        start_new_session=True,
    )  # fmt: skip
    try:
        first.delay().get(timeout=30)
        started = time.perf_counter()
        ends = [
            chain(first.s(), chord([wide.s(number) for number in range(WIDTH)], last.s())).delay()
            for _ in range(count)
        ]
        sent = count / (time.perf_counter() - started)
        for end in ends:
            assert end.get(timeout=100) == WIDTH
        print(sent, count * (WIDTH + 2) / (time.perf_counter() - started))
    finally:
        os.killpg(worker.pid, signal.SIGKILL)
        worker.wait()


if __name__ == "__main__":
    import celery_chord  # tasks are known by the module's name, here and in the worker

    celery_chord.main(int(sys.argv[2]))
