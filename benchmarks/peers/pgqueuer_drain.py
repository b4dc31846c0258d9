"""pgqueuer's drain of waiting no-op jobs, in its best configuration: batch 500, asyncpg.

usage: pgqueuer_drain.py URL COUNT async|thread
"""

import asyncio
import contextlib
import sys
import time

import asyncpg
from pgqueuer.db import AsyncpgDriver
from pgqueuer.models import Job
from pgqueuer.qm import QueueManager
from pgqueuer.queries import Queries


async def main(url: str, count: int, kind: str) -> None:
    connection = await asyncpg.connect(url)
    queries = Queries(AsyncpgDriver(connection))
    with contextlib.suppress(asyncpg.PostgresError):
        await queries.install()
    for start in range(0, count, 1000):
        size = min(1000, count - start)
        await queries.enqueue(["noop"] * size, [b"1"] * size, [0] * size)
    manager = QueueManager(queries)
    done = 0
    first = 0.0
    last = 0.0

    def note() -> None:
        nonlocal done, first, last
        done += 1
        now = time.perf_counter()
        first = first or now
        last = now
        if done >= count:
            manager.shutdown.set()

    if kind == "async":

        @manager.entrypoint("noop")
        async def noop(job: Job) -> None:
            note()

    else:
        # Its way to run blocking code: plain functions are no longer taken.
        @manager.entrypoint("noop")
        async def noop_in_thread(job: Job) -> None:
            await asyncio.to_thread(note)

    await manager.run(batch_size=500)
    print(count / (last - first))


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], int(sys.argv[2]), sys.argv[3]))
