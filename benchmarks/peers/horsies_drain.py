"""The public package `horsies`: its drain of waiting no-op tasks in child processes.

usage: horsies_drain.py URL COUNT PROCESSES
Written against the contract that package and ours share, never against its sources.
"""

import os
import subprocess
import sys
import time
from pathlib import Path

import psycopg

from horsies import AppConfig, Horsies, PostgresConfig, TaskError, TaskResult

URL = os.environ.get("BENCH_URL") or sys.argv[1]
app = Horsies(
    AppConfig(
        broker=PostgresConfig(
            database_url=URL.replace("postgresql://", "postgresql+psycopg://", 1)
        ),
        prefetch_buffer=100,
        claim_lease_ms=60_000,
    )
)
DONE = "select count(*) from horsies_tasks where status = 'COMPLETED'"


@app.task("noop")
def noop(number: int) -> TaskResult[int, TaskError]:
    return TaskResult(ok=number)


def main(count: int, processes: str) -> None:
    started = time.perf_counter()
    for number in range(count):
        noop.send(number).unwrap()
    sent = count / (time.perf_counter() - started)
    command = [str(Path(sys.executable).parent / "horsies"), "worker", "horsies_drain:app",
               "--processes", processes, "--loglevel", "ERROR"]  # fmt: skip
    environment = {**os.environ, "BENCH_URL": URL, "PYTHONPATH": str(Path(__file__).parent)}
    worker = subprocess.Popen(command, env=environment, stderr=subprocess.DEVNULL)
    try:
        with psycopg.connect(URL, autocommit=True) as connection:
            begun = _wait(connection, 1)
            first = time.perf_counter()
            _wait(connection, count)
            print(sent, (count - begun) / (time.perf_counter() - first))
    finally:
        worker.terminate()
        worker.wait(60)


def _wait(connection: psycopg.Connection, wanted: int) -> int:
    while True:
        row = connection.execute(DONE).fetchone()
        done = int(row[0]) if row else 0
        if done >= wanted:
            return done
        time.sleep(0.05)


if __name__ == "__main__":
    main(int(sys.argv[2]), sys.argv[3])
