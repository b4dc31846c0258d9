"""pgqueuer's drain of waiting jobs in its best configuration: asyncpg, uvloop, batch 500.

usage: pgqueuer_drain.py URL COUNT async|thread|nap PROCESSES
Naps take 10 ms each, 100 at once in all; it wants twice the room of a batch.
"""

import asyncio
import contextlib
import subprocess
import sys
import time

import asyncpg
import uvloop
from pgqueuer.db import AsyncpgDriver
from pgqueuer.models import Job
from pgqueuer.qm import QueueManager
from pgqueuer.queries import Queries
from pgqueuer.types import QueueExecutionMode


async def fill(url: str, count: int) -> float:
    connection = await asyncpg.connect(url)
    queries = Queries(AsyncpgDriver(connection))
    with contextlib.suppress(asyncpg.PostgresError):
        await queries.install()
    started = time.perf_counter()
    for start in range(0, count, 1000):
        size = min(1000, count - start)
        await queries.enqueue(["noop"] * size, [b"1"] * size, [0] * size)
    elapsed = time.perf_counter() - started
    await connection.execute("vacuum analyze")
    await connection.execute("checkpoint")
    await connection.close()
    return count / elapsed


async def work(url: str, kind: str, processes: int) -> None:
    """Run jobs until there are none; prints how many, and when the first ran."""
    connection = await asyncpg.connect(url)
    manager = QueueManager(Queries(AsyncpgDriver(connection)))
    done, first = 0, 0.0

    def note() -> None:
        nonlocal done, first
        done += 1
        first = first or time.time()

    if kind == "async":

        @manager.entrypoint("noop")
        async def noop(job: Job) -> None:
            note()

    elif kind == "nap":

        @manager.entrypoint("noop")
        async def nap(job: Job) -> None:
            await asyncio.sleep(0.01)
            note()

    else:
        # Its way to run blocking code: plain functions are no longer taken.
        @manager.entrypoint("noop")
        async def noop_in_thread(job: Job) -> None:
            await asyncio.to_thread(note)

    size = {"batch_size": 500}
    if kind == "nap":
        size = {"batch_size": 50 // processes, "max_concurrent_tasks": 100 // processes}
    await manager.run(mode=QueueExecutionMode.drain, **size)
    print(done, first)


async def last_recorded(url: str, count: int) -> float:
    """When the last success was written: as ours, a job is done when the database says so."""
    connection = await asyncpg.connect(url)
    written, last = await connection.fetchrow(
        "select count(*), extract(epoch from max(created)) from pgqueuer_log "
        "where status = 'successful'"
    )
    await connection.close()
    assert written == count, f"{written} of {count} jobs are logged as done"
    return float(last)


def main(url: str, count: int, kind: str, processes: int) -> None:
    sent = uvloop.run(fill(url, count))
    command = [sys.executable, __file__, url, "work", kind, str(processes)]
    running = [
        subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(processes)
    ]
    ended = [one.communicate()[0].split()[-2:] for one in running]
    assert sum(int(one[0]) for one in ended) == count, ended
    first = min(float(one[1]) for one in ended if int(one[0]))
    print(sent, count / (uvloop.run(last_recorded(url, count)) - first))


if __name__ == "__main__":
    if sys.argv[2] == "work":
        uvloop.run(work(sys.argv[1], sys.argv[3], int(sys.argv[4])))
    else:
        main(sys.argv[1], int(sys.argv[2]), sys.argv[3], int(sys.argv[4]))
