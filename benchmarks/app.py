"""The app under measurement: no-op and sleeping tasks of all three kinds."""

import asyncio
import os

from horsies import AppConfig, Horsies, PostgresConfig, TaskError, TaskResult

config = {"broker": PostgresConfig(database_url=os.environ["HORSIES_BENCH_URL"])}
if os.environ.get("HORSIES_BENCH_CAP"):
    config["cluster_wide_cap"] = int(os.environ["HORSIES_BENCH_CAP"])
app = Horsies(AppConfig(**config))


@app.task("noop")
async def noop(number: int) -> TaskResult[int, TaskError]:
    return TaskResult(ok=number)


@app.task("nap")
async def nap(number: int) -> TaskResult[int, TaskError]:
    await asyncio.sleep(0.01)
    return TaskResult(ok=number)


@app.task("child")
def child(number: int) -> TaskResult[int, TaskError]:
    return TaskResult(ok=number)


@app.task("thread", execution="blocking")
def thread(number: int) -> TaskResult[int, TaskError]:
    return TaskResult(ok=number)
