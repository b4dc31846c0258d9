"""A worker whose child processes take long to import the app, or cannot."""

from collections.abc import Callable
from pathlib import Path

import pytest

from support.database import Database
from support.eventually import eventually
from support.workers import WorkerProcess

Start = Callable[..., WorkerProcess]

_SHOP = """\
import json
import os
import time
from pathlib import Path

from horsies import AppConfig, Horsies, PostgresConfig, TaskError, TaskResult

broker = PostgresConfig(database_url=os.environ["HORSIES_TEST_APP_URL"])
app = Horsies(AppConfig(broker=broker, **json.loads(os.environ["HORSIES_TEST_APP_SETTINGS"])))
if os.environ.get("HORSIES_CHILD_PROCESS"):
    {in_children}


@app.task("here")
async def here() -> TaskResult[str, TaskError]:
    return TaskResult(ok="here")


@app.task("below")
def below() -> TaskResult[str, TaskError]:
    return TaskResult(ok="below")
"""


def send(db: Database, task_name: str) -> str:
    return db.insert(task_name=task_name, enqueued_at=db.value("select now()"))


def start(
    start_worker: Start, directory: Path, in_children: str, *options: str, **settings: int
) -> WorkerProcess:
    (directory / "shop.py").write_text(_SHOP.format(in_children=in_children))
    place = {"locator": "shop.py:app", "directory": directory}
    return start_worker("--processes", "1", *options, **place, **settings)


def wait_for(gate: Path) -> str:
    return f"while not Path({str(gate)!r}).exists(): time.sleep(0.01)"


@pytest.mark.parametrize("ahead", [{}, {"prefetch_buffer": 1, "claim_lease_ms": 60_000}])
def test_coroutines_run_while_the_children_still_import_the_app(
    start_worker: Start, db: Database, tmp_path: Path, gate: Path, ahead: dict[str, int]
) -> None:
    below, here = send(db, "below"), send(db, "here")
    worker = start(start_worker, tmp_path, wait_for(gate), **ahead)

    eventually(lambda: db.status(here) == "COMPLETED", within=15)
    before = db.status(below)
    gate.touch()
    eventually(lambda: db.status(below) == "COMPLETED", within=15)

    assert before == "PENDING"
    assert worker.stop() == 0


def test_a_burst_waits_for_the_children(
    start_worker: Start, db: Database, tmp_path: Path, gate: Path
) -> None:
    below, here = send(db, "below"), send(db, "here")
    worker = start(start_worker, tmp_path, wait_for(gate), "--burst")

    eventually(lambda: db.status(here) == "COMPLETED", within=15)
    gate.touch()

    assert worker.wait() == 0
    assert db.status(below) == "COMPLETED"


def test_a_worker_can_be_stopped_while_its_children_import_the_app(
    start_worker: Start, db: Database, tmp_path: Path, gate: Path
) -> None:
    worker = start(start_worker, tmp_path, wait_for(gate)).wait_ready()

    assert worker.stop() == 0


def test_a_worker_whose_children_cannot_import_the_app_says_so_and_ends(
    start_worker: Start, db: Database, tmp_path: Path
) -> None:
    below, here = send(db, "below"), send(db, "here")
    worker = start(start_worker, tmp_path, 'raise RuntimeError("not in a child")')

    assert worker.wait() == 1
    assert "the worker cannot go on: ExecutorStartError" in worker.log()
    assert "RuntimeError: not in a child" in worker.log()
    assert db.status(below) == "PENDING"
    assert db.status(here) in {"PENDING", "COMPLETED"}


def test_worker_refuses_a_schema_that_is_older_and_names_the_command(
    start_worker: Start, db: Database
) -> None:
    db.execute("update horsies_schema_version set name = '1:1:older' where version = 0")

    worker = start_worker()

    assert worker.wait(within=30) == 1
    assert "the database schema is older than this horsies: functions missing" in worker.log()
    assert "run `horsies migrate MODULE`" in worker.log()


_EARLY_END = """
import signal

def end_early(before):
    def ended(*arguments):
        os.kill(os.getpid(), signal.SIGTERM)
        return before(*arguments)
    return ended

{place} = end_early({place})
"""
_PLACES = {
    "before the loop runs": "import horsies.worker.startup as startup; startup._serve_with_pages",
    "while the database is prepared": "app.get_broker().database.ensure_schema",
    "between preparing and running": "app.get_broker().database.pool.close",
}


@pytest.mark.parametrize("when", _PLACES)
def test_a_signal_during_the_start_is_not_lost(
    start_worker: Start, tmp_path: Path, when: str
) -> None:
    *imports, place = _PLACES[when].split("; ")
    early = "\n".join(imports) + _EARLY_END.format(place=place)
    (tmp_path / "shop.py").write_text(_SHOP.format(in_children="pass") + early)

    worker = start_worker("--processes", "1", locator="shop.py:app", directory=tmp_path)

    assert worker.wait(within=30) == 0
