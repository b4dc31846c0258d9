"""oban's drain of waiting jobs that sleep for so long, with so many at once.

usage: oban_drain.py URL COUNT SECONDS LIMIT
"""

import asyncio
import sys
import time

import psycopg
import uvloop
from oban import Oban, worker
from oban.schema import install

DONE = "select count(*) from oban_jobs where state = 'completed'"
marks: list[float] = []


async def main(url: str, count: int, seconds: float, limit: int) -> None:
    @worker(queue="default")
    class Nap:
        async def process(self, job: object) -> None:
            marks.append(time.perf_counter())
            if seconds:
                await asyncio.sleep(seconds)

    pool = await Oban.create_pool(url)
    await install(pool)
    sender = Oban(pool=pool)
    started = time.perf_counter()
    for start in range(0, count, 500):
        await sender.enqueue_many(*[Nap.new({"n": n}) for n in range(start, start + 500)])
    sent = count / (time.perf_counter() - started)
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("vacuum analyze")
        connection.execute("checkpoint")
        async with Oban(pool=pool, queues={"default": limit}):
            while len(marks) < count:
                await asyncio.sleep(0.01)
            # As ours, a job is done when the database says so.
            while connection.execute(DONE).fetchone() != (count,):
                await asyncio.sleep(0.01)
            ended = time.perf_counter()
    await pool.close()
    print(sent, count / (ended - marks[0]))


if __name__ == "__main__":
    uvloop.run(main(sys.argv[1], int(sys.argv[2]), float(sys.argv[3]), int(sys.argv[4])))
