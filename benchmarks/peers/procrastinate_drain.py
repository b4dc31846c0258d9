"""procrastinate's drain of waiting jobs that sleep for so long, with concurrency 100.

usage: procrastinate_drain.py URL COUNT [SECONDS]
"""

import asyncio
import sys
import time

import procrastinate
import psycopg
from procrastinate import PsycopgConnector


async def main(url: str, count: int, seconds: float) -> None:
    app = procrastinate.App(connector=PsycopgConnector(conninfo=url))
    done = 0
    first = last = 0.0

    @app.task(name="noop")
    async def noop(number: int) -> None:
        nonlocal done, first, last
        if seconds:
            await asyncio.sleep(seconds)
        done += 1
        last = time.perf_counter()
        first = first or last

    async with app.open_async():
        await app.schema_manager.apply_schema_async()
        started = time.perf_counter()
        for start in range(0, count, 500):
            await noop.batch_defer_async(*[{"number": n} for n in range(start, start + 500)])
        sent = count / (time.perf_counter() - started)
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute("vacuum analyze")
            connection.execute("checkpoint")
        await app.run_worker_async(concurrency=100, wait=False, listen_notify=False)
    print(sent, done / (last - first))


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], int(sys.argv[2]), float([*sys.argv, "0"][3])))
