"""All three kinds of tasks in one app: none stands in another's way."""

from pathlib import Path

import pytest

from support.command import run_horsies, write_project
from support.programs import run_python, worker

pytestmark = pytest.mark.slow

APP = """
from horsies import Horsies, TaskError, TaskResult

app = Horsies()

@app.task("short")
async def short() -> TaskResult[int, TaskError]:
    return TaskResult(ok=1)

@app.task("blocking", execution="blocking")
def blocking() -> TaskResult[int, TaskError]:
    return TaskResult(ok=2)

@app.task("computing")
def computing() -> TaskResult[int, TaskError]:
    return TaskResult(ok=3)
"""
SEND = """
from shop import blocking, computing, short

handles = short.send_many([()] * 300).unwrap()
assert all(handle.get(timeout_ms=20_000).is_ok() for handle in handles)
for task in (blocking, computing):
    print(task.send().unwrap().get(timeout_ms=20_000).ok_value)
"""


def test_short_coroutines_do_not_starve_the_other_kinds(tmp_path: Path, database_url: str) -> None:
    project = write_project(tmp_path, {"shop.py": APP, "send.py": SEND})

    with worker(project, "shop:app", HORSIES_DATABASE_URL=database_url):
        sent = run_python(project, "send.py", HORSIES_DATABASE_URL=database_url)

    assert sent.stdout == "2\n3\n", sent.stderr


def test_burst_ends_with_all_kinds_done(tmp_path: Path, database_url: str) -> None:
    send = "import shop\nfor task in shop.app.tasks:\n    shop.app.tasks[task].send().unwrap()\n"
    project = write_project(tmp_path, {"shop.py": APP, "send.py": send})
    sent = run_python(project, "send.py", HORSIES_DATABASE_URL=database_url)
    assert sent.returncode == 0, sent.stderr

    finished = run_horsies(
        project, "worker", "shop:app", "--burst", HORSIES_DATABASE_URL=database_url, within=30
    )

    assert finished.returncode == 0, finished.stderr
