"""Results of a megabyte each: the worker holds few of them, however many there are."""

from pathlib import Path

import pytest

from support.command import write_project
from support.programs import run_python, worker

pytestmark = pytest.mark.slow

APP = """
from pathlib import Path

from horsies import Horsies, TaskError, TaskResult

app = Horsies()

@app.task("large")
async def large() -> TaskResult[str, TaskError]:
    return TaskResult(ok="x" * 1_000_000)

@app.task("peak_mb")
async def peak_mb() -> TaskResult[int, TaskError]:
    (line,) = (x for x in Path("/proc/self/status").read_text().splitlines() if "VmHWM" in x)
    return TaskResult(ok=int(line.split()[1]) // 1_000)
"""
SEND = """
from shop import large, peak_mb

before = peak_mb.send().unwrap().get(timeout_ms=30_000).ok_value
*_, last = large.send_many([()] * 300).unwrap()
assert len(last.get(timeout_ms=60_000).ok_value) == 1_000_000
print(peak_mb.send().unwrap().get(timeout_ms=30_000).ok_value - before)
"""


@pytest.mark.timeout(120)
def test_memory_of_large_results_is_bounded(tmp_path: Path, database_url: str) -> None:
    project = write_project(tmp_path, {"shop.py": APP, "send.py": SEND})

    # Those of the 100 slots, and 64 MB that wait for their write; then none begins.
    with worker(project, "shop:app", HORSIES_DATABASE_URL=database_url):
        sent = run_python(project, "send.py", HORSIES_DATABASE_URL=database_url)

    assert int(sent.stdout) < 230, sent.stderr
