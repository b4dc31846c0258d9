"""What a large argument costs in memory, in the worker and in the process that runs the task."""

from pathlib import Path

import pytest

from support.command import write_project
from support.programs import run_python, worker

pytestmark = pytest.mark.slow

APP = """
import os
from pathlib import Path
from horsies import Horsies, TaskError, TaskResult

app = Horsies()

def peak() -> int:
    status = Path(f"/proc/{os.getpid()}/status").read_text()
    return int(status.split("VmHWM:")[1].split()[0]) * 1024

@app.task("in_child")
def in_child(text: str) -> TaskResult[list[int], TaskError]:
    return TaskResult(ok=[len(text), peak()])

@app.task("in_loop")
async def in_loop(text: str) -> TaskResult[list[int], TaskError]:
    return TaskResult(ok=[len(text), peak()])

@app.task("worker_peak")
async def worker_peak() -> TaskResult[int, TaskError]:
    return TaskResult(ok=peak())
"""
SEND = """
import sys
import shop

def result(name, *args):
    return shop.app.tasks[name].send(*args).unwrap().get(timeout_ms=60_000).ok_value

base = result("worker_peak")
child_base = result("in_child", "")[1]
length, peak = result(sys.argv[1], "x" * 100_000_000)
assert length == 100_000_000
print(base, result("worker_peak"), child_base, peak)
"""


@pytest.mark.parametrize("name", ["in_child", "in_loop"])
def test_a_large_argument_is_held_a_few_times_only(
    tmp_path: Path, database_url: str, name: str
) -> None:
    script = SEND.replace("sys.argv[1]", repr(name))
    project = write_project(tmp_path, {"shop.py": APP, "send.py": script})

    with worker(project, "shop:app", HORSIES_DATABASE_URL=database_url):
        sent = run_python(project, "send.py", HORSIES_DATABASE_URL=database_url)

    assert sent.returncode == 0, sent.stderr
    base, worker_peak, child_base, peak = (int(n) // 1_000_000 for n in sent.stdout.split())
    # The argument has 100 MB; the worker's part is what the driver and the row itself need.
    assert worker_peak - base < 340
    assert peak - (child_base if name == "in_child" else base) < 340
