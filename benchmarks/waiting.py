"""Memory where much is awaited or returned: many waiters in one process, large results."""

import asyncio
import json
import subprocess
import sys

import psutil

from benchmarks import ours, stage
from benchmarks.stage import ROOT, connect, worker

_MB = 1_000_000


def many_waiters(url: str, count: int) -> tuple[float, int]:
    """`get_async` of `count` tasks at once in a process of its own: its memory, its connections."""
    command = [sys.executable, "-m", "benchmarks.waiting", url, str(count)]
    with ours.sending(url):
        done = subprocess.run(
            command, cwd=ROOT, capture_output=True, text=True, timeout=300, check=False
        )
    if done.returncode != 0:
        raise RuntimeError(done.stderr[-2000:])
    rss_mb, connections = json.loads(done.stdout)
    return rss_mb, connections


def large_results(url: str, count: int) -> float:
    """A worker whose tasks return a megabyte each: its largest memory."""
    sizes: list[float] = []
    with ours.sending(url) as module:
        module.large.send_many([(_MB,) for _ in range(count)]).unwrap()
    ours.work_off(url, count, on_sample=lambda _, ps: sizes.append(ps[0].memory_info().rss / _MB))
    return max(sizes)


async def _wait_for_many(url: str, count: int) -> None:
    """All wait, then a worker begins; prints this process's memory and the connections."""
    module = ours.load_app(url)
    handles = module.noop.send_many([(n,) for n in range(count)]).unwrap()
    async with asyncio.TaskGroup() as group:
        waiting = [group.create_task(handle.get_async(120_000)) for handle in handles]
        await asyncio.sleep(3)  # each has asked at least once and now waits
        rss_mb = psutil.Process().memory_info().rss / 1_048_576
        with connect(url) as connection:
            connections = stage.number(
                connection,
                "select count(*) - 1 from pg_stat_activity where datname = current_database()",
            )
        with worker(url):
            results = [await one for one in waiting]
        rss_mb = max(rss_mb, psutil.Process().memory_info().rss / 1_048_576)
    assert sorted(result.ok_value for result in results) == list(range(count))
    await module.app.get_broker().close_async()
    print(json.dumps([rss_mb, connections]))


if __name__ == "__main__":
    asyncio.run(_wait_for_many(sys.argv[1], int(sys.argv[2])))
