"""Coroutines that try to end the event loop they share with the worker: the worker goes on."""

from pathlib import Path

import pytest

from support.command import write_project
from support.programs import run_python, worker

pytestmark = pytest.mark.slow

APP = """
import asyncio, os
from horsies import Horsies, TaskError, TaskResult

app = Horsies()

def leave(*_):
    raise SystemExit(3)

@app.task("stop_loop")
async def stop_loop() -> TaskResult[int, TaskError]:
    asyncio.get_running_loop().stop()
    await asyncio.sleep(0)
    return TaskResult(ok=os.getpid())

@app.task("exit_in_callback")
async def exit_in_callback() -> TaskResult[int, TaskError]:
    asyncio.get_running_loop().call_soon(leave)
    await asyncio.sleep(0.01)
    return TaskResult(ok=os.getpid())

@app.task("exit_in_subtask")
async def exit_in_subtask() -> TaskResult[int, TaskError]:
    async def sub():
        leave()

    task = asyncio.create_task(sub())
    await asyncio.wait([task])
    task.exception()
    return TaskResult(ok=os.getpid())

@app.task("cancel_all")
async def cancel_all() -> TaskResult[int, TaskError]:
    for task in asyncio.all_tasks():
        task.cancel()
    return TaskResult(ok=os.getpid())

@app.task("plain")
async def plain() -> TaskResult[int, TaskError]:
    return TaskResult(ok=os.getpid())
"""
SEND = """
import shop

def result(name):
    return shop.app.tasks[name].send().unwrap().get(timeout_ms=20_000).ok_value

pid = result("plain")
for name in ("stop_loop", "exit_in_callback", "exit_in_subtask", "cancel_all") * 2:
    assert result(name) == pid, name
    assert result("plain") == pid, name
print("all in one worker")
"""


def test_a_coroutine_cannot_end_the_worker(tmp_path: Path, database_url: str) -> None:
    project = write_project(tmp_path, {"shop.py": APP, "send.py": SEND})

    with worker(project, "shop:app", HORSIES_DATABASE_URL=database_url):
        sent = run_python(project, "send.py", HORSIES_DATABASE_URL=database_url)

    assert sent.stdout == "all in one worker\n", sent.stderr
    assert "a task tried to end the worker's event loop" in (project / "log.txt").read_text()
