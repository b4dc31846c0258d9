"""The app that worker processes under test serve, set up by the environment."""

import json
import os
import time
from pathlib import Path
from typing import Any

import psycopg

from horsies import Horsies, NodeKey, WorkflowContext, WorkflowMeta
from horsies.config import AppConfig, PostgresConfig
from horsies.result import TaskError, TaskResult

URL = os.environ["HORSIES_TEST_APP_URL"]
SETTINGS: dict[str, Any] = json.loads(os.environ.get("HORSIES_TEST_APP_SETTINGS", "{}"))

app = Horsies(AppConfig(broker=PostgresConfig(database_url=URL, pool_size=5), **SETTINGS))
_queue = {"queue_name": "main"} if SETTINGS.get("custom_queues") else {}
_ledgers: dict[int, psycopg.Connection[Any]] = {}


def _ledger() -> psycopg.Connection[Any]:
    """This process's own connection: what user code did is not told by the engine under test."""
    if os.getpid() not in _ledgers:
        _ledgers[os.getpid()] = psycopg.connect(URL, autocommit=True)
    return _ledgers[os.getpid()]


@app.task("record", **_queue)
def record(number: int, seconds: float = 0.0) -> TaskResult[int, TaskError]:
    """Leave a line in the ledger for each run."""
    _ledger().execute("insert into ledger (number, pid) values (%s, %s)", [number, os.getpid()])
    if seconds:
        time.sleep(seconds)
    return TaskResult(ok=os.getpid())


@app.task("record_low", **({"queue_name": "low"} if _queue else {}))
def record_low(number: int) -> TaskResult[int, TaskError]:
    _ledger().execute("insert into ledger (number, pid) values (%s, %s)", [number, os.getpid()])
    return TaskResult(ok=number)


@app.task("tell", **_queue)
def tell(
    value: TaskResult[int, TaskError],
    workflow_ctx: WorkflowContext | None = None,
    workflow_meta: WorkflowMeta | None = None,
) -> TaskResult[list[int], TaskError]:
    """What a workflow hands to its node: an argument, the context, the metadata."""
    assert workflow_ctx is not None
    assert workflow_meta is not None
    found = workflow_ctx.result_for(NodeKey[int]("one")).unwrap()
    return TaskResult(ok=[value.unwrap(), found, workflow_meta.task_index])


@app.task("look", **_queue)
def look(key: str) -> TaskResult[dict[str, Any], TaskError]:
    """The task's own row as it stands while user code runs."""
    row = (
        _ledger()
        .execute(
            "select status, worker_pid, worker_process_name, worker_hostname, "
            "started_at is not null, finalizing_at is null from horsies_tasks where args = %s",
            [json.dumps([key])],
        )
        .fetchone()
    )
    print("looked", key)
    return TaskResult(ok={"row": list(row or ()), "pid": os.getpid(), "parent": os.getppid()})


@app.task("hold", **_queue)
def hold(gate: str) -> TaskResult[int, TaskError]:
    """Announce the start beside the gate, then wait until the gate exists."""
    Path(f"{gate}.inside").touch()
    while not Path(gate).exists():
        time.sleep(0.02)
    return TaskResult(ok=os.getpid())


@app.task("leave", **_queue)
def leave(code: int) -> TaskResult[int, TaskError]:
    os._exit(code)


@app.task("nothing", **_queue)
def nothing() -> TaskResult[None, TaskError]:
    return TaskResult(ok=None)


@app.task("begin_in_child", **_queue)
def begin_in_child(number: int) -> TaskResult[float, TaskError]:
    """When user code began, by the clock that all processes of this machine share."""
    return TaskResult(ok=_begun_at())


@app.task("begin_in_thread", execution="blocking", **_queue)
def begin_in_thread(number: int) -> TaskResult[float, TaskError]:
    return TaskResult(ok=_begun_at())


@app.task("begin_in_loop", **_queue)
async def begin_in_loop(number: int) -> TaskResult[float, TaskError]:
    return TaskResult(ok=_begun_at())


def _begun_at() -> float:
    begun_at = time.monotonic()
    while time.monotonic() < begun_at + 0.001:
        pass
    return begun_at


@app.task("send_on", **_queue)
def send_on(number: int) -> TaskResult[str, TaskError]:
    """A task that sends a task."""
    return TaskResult(ok=record.send(number).unwrap().task_id)
