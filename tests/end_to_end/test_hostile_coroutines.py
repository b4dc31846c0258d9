"""Coroutines that try to end the event loop they share with the worker: the worker goes on."""

from pathlib import Path

import pytest

from support.command import write_project
from support.eventually import eventually
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

@app.task("shut_threads_down")
async def shut_threads_down() -> TaskResult[int, TaskError]:
    await asyncio.get_running_loop().shutdown_default_executor()
    return TaskResult(ok=await asyncio.to_thread(os.getpid))

async def ignore():
    while True:
        try:
            await asyncio.sleep(3600)
        except asyncio.CancelledError:
            pass

@app.task("leave_one_behind")
async def leave_one_behind() -> TaskResult[int, TaskError]:
    app.left = asyncio.create_task(ignore())
    return TaskResult(ok=os.getpid())

@app.task("ignore_cancellation")
async def ignore_cancellation() -> TaskResult[int, TaskError]:
    open("begun", "w").close()
    await ignore()
    return TaskResult(ok=0)

@app.task("plain")
async def plain() -> TaskResult[int, TaskError]:
    return TaskResult(ok=os.getpid())
"""
SEND = """
import shop

def result(name):
    return shop.app.tasks[name].send().unwrap().get(timeout_ms=20_000).ok_value

pid = result("plain")
names = "stop_loop exit_in_callback exit_in_subtask cancel_all shut_threads_down".split()
for name in names * 2:
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


@pytest.mark.parametrize(("name", "signals"), [("leave_one_behind", 1), ("ignore_cancellation", 2)])
def test_a_coroutine_that_ignores_its_cancellation_cannot_keep_a_worker(
    tmp_path: Path, database_url: str, name: str, signals: int
) -> None:
    send = f"import shop; shop.app.tasks[{name!r}].send().unwrap(); shop.app.tasks['plain']"
    wait = ".send().unwrap().get(timeout_ms=20_000)"
    project = write_project(tmp_path, {"shop.py": APP, "send.py": send + wait})

    with worker(project, "shop:app", HORSIES_DATABASE_URL=database_url) as process:
        run_python(project, "send.py", HORSIES_DATABASE_URL=database_url)
        if name == "ignore_cancellation":
            eventually((project / "begun").exists)
        process.terminate()
        if signals == 2:
            eventually(lambda: "stopping:" in (project / "log.txt").read_text())
            process.terminate()

        assert process.wait(60) == 0
