"""Each peer with its defaults: how soon an idle worker begins a task, and when a lost one again.

usage: notes.py URL KIND latency COUNT | notes.py URL KIND recovery LIMIT_S
Prints p50 and p99 of send → start in milliseconds, or twice the seconds from `kill -9` of the
worker to the second start of its task (nan: not within the limit). The same file is the module
that their workers import; their task appends to a file how long ago it was sent.
"""

import asyncio
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

URL = os.environ.get("BENCH_URL") or sys.argv[1]
KIND = os.environ.get("BENCH_PEER") or sys.argv[2]
BIN = Path(sys.executable).parent
COMMAND = [sys.executable, __file__]  # unless the peer has a command of its own
STAY_S = 3_600.0  # the first run of a task that is to be lost


def note(path: str, sent_at: float) -> bool:
    """Leave a mark; whether it was the first."""
    is_first = not Path(path).exists()
    with Path(path).open("a") as file:
        file.write(f"{time.time() - sent_at}\n")
    return is_first


async def note_async(path: str, sent_at: float, seconds: float) -> None:
    if note(path, sent_at):
        await asyncio.sleep(seconds)


def note_blocking(path: str, sent_at: float, seconds: float) -> None:
    if note(path, sent_at):
        time.sleep(seconds)


if KIND == "pgqueuer":
    import asyncpg
    from pgqueuer.db import AsyncpgDriver
    from pgqueuer.models import Job
    from pgqueuer.qm import QueueManager
    from pgqueuer.queries import Queries

    async def open_sender():
        queries = Queries(AsyncpgDriver(await asyncpg.connect(URL)))
        await queries.install()

        async def send(path: str, sent_at: float, seconds: float) -> None:
            await queries.enqueue(["note"], [f"{path} {sent_at} {seconds}".encode()], [0])

        return send

    async def work() -> None:
        manager = QueueManager(Queries(AsyncpgDriver(await asyncpg.connect(URL))))

        @manager.entrypoint("note")
        async def run(job: Job) -> None:
            path, sent_at, seconds = (job.payload or b"").decode().split()
            await note_async(path, float(sent_at), float(seconds))

        await manager.run()

elif KIND == "procrastinate":
    import procrastinate

    app = procrastinate.App(connector=procrastinate.PsycopgConnector(conninfo=URL))
    task = app.task(name="note")(note_async)

    async def open_sender():
        await app.open_async()
        await app.schema_manager.apply_schema_async()

        async def send(path: str, sent_at: float, seconds: float) -> None:
            await task.defer_async(path=path, sent_at=sent_at, seconds=seconds)

        return send

    async def work() -> None:
        async with app.open_async():
            await app.run_worker_async()

elif KIND == "oban":
    from oban import Oban, worker
    from oban.schema import install

    @worker(queue="default")
    class Note:
        async def process(self, job) -> None:
            await note_async(**job.args)

    async def open_sender():
        pool = await Oban.create_pool(URL)
        await install(pool)
        oban = Oban(pool=pool)

        async def send(path: str, sent_at: float, seconds: float) -> None:
            await oban.enqueue(Note.new({"path": path, "sent_at": sent_at, "seconds": seconds}))

        return send

    async def work() -> None:
        async with Oban(pool=await Oban.create_pool(URL), queues={"default": 10}):
            await asyncio.Event().wait()

else:
    if KIND == "huey":
        from huey import RedisHuey

        huey = RedisHuey("notes", url=f"unix://{URL}")
        deliver = huey.task()(note_blocking)
        COMMAND = [str(BIN / "huey_consumer"), "notes.huey", "-w", "2", "-k", "process"]
    elif KIND == "dramatiq":
        import dramatiq
        from dramatiq.brokers.redis import RedisBroker

        dramatiq.set_broker(RedisBroker(url=f"unix://{URL}"))
        deliver = dramatiq.actor(note_blocking, time_limit=10 * STAY_S * 1000).send
        COMMAND = [str(BIN / "dramatiq"), "notes", "-p", "1"]
    else:
        from celery import Celery

        app = Celery("notes", broker=f"redis+socket://{URL}")
        deliver = app.task(name="note")(note_blocking).delay
        COMMAND = [str(BIN / "celery"), "-A", "notes", "worker", "-c", "2", "--loglevel", "ERROR"]

    async def open_sender():
        async def send(path: str, sent_at: float, seconds: float) -> None:
            deliver(path, sent_at, seconds)

        return send


def start_worker() -> subprocess.Popen:
    environment = {**os.environ, "BENCH_URL": URL, "BENCH_PEER": KIND}
    environment["PYTHONPATH"] = str(Path(__file__).parent)
    return subprocess.Popen(
        COMMAND, env=environment, cwd=Path(__file__).parent, start_new_session=True,
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip


def end(worker: subprocess.Popen) -> None:
    """At once, with all its processes."""
    os.killpg(worker.pid, signal.SIGKILL)
    worker.wait()


async def marks(path: Path, count: int, limit_s: float) -> list[float] | None:
    """The first so many lines of a file, or None when they do not come in time."""
    deadline = time.monotonic() + limit_s
    while time.monotonic() < deadline:
        if path.exists() and len(lines := path.read_text().splitlines()) >= count:
            return [float(line) for line in lines[:count]]
        await asyncio.sleep(0.002)
    return None


async def latency(path: Path, count: int) -> tuple[float, float]:
    send = await open_sender()
    path.write_text("0\n")  # so that none is the first, which would stay
    worker = start_worker()
    try:
        for number in range(count + 10):
            await send(str(path), time.time(), 0.0)
            assert await marks(path, number + 2, 60), "the worker does not begin the task"
            await asyncio.sleep(0.02)  # it comes to rest
    finally:
        end(worker)
    times = [float(line) * 1000 for line in path.read_text().splitlines()[11:]]
    return statistics.median(times), statistics.quantiles(times, n=100)[98]


async def recovery(path: Path, limit_s: float) -> float:
    send = await open_sender()
    first = start_worker()
    sent_at = time.time()
    await send(str(path), sent_at, STAY_S)
    assert await marks(path, 1, 60), "the worker does not begin the task"
    second = start_worker()
    await asyncio.sleep(5)  # it is up
    killed_at = time.time()
    end(first)
    try:
        found = await marks(path, 2, limit_s)
    finally:
        end(second)
    return sent_at + found[1] - killed_at if found else float("nan")


async def main(what: str, limit: str) -> None:
    with tempfile.TemporaryDirectory(prefix="horsies-notes-") as directory:
        path = Path(directory) / "marks"
        if what == "latency":
            print(*await latency(path, int(limit)))
        else:
            seconds = await recovery(path, float(limit))
            print(seconds, seconds)


if __name__ == "__main__":
    if len(sys.argv) > 1:
        import notes  # tasks are known by the module's name, here and in the worker

        asyncio.run(notes.main(sys.argv[3], sys.argv[4]))
    else:
        asyncio.run(work())
