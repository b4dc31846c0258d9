"""The first hour of a newcomer, played in a clean project: what they type and what they see."""

import json
import re
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.command import run_horsies, start_horsies
from support.database import Database
from support.eventually import eventually
from support.programs import run_python

TASKS = """
import logging
import os

from horsies import Retry, RetryPolicy, TaskFailed

from app import app


@app.on_worker_start
async def opened() -> None:
    print("the worker opens", flush=True)


@app.on_worker_stop
def closed() -> None:
    print("the worker closes", flush=True)


@app.task("pay", retry_policy=RetryPolicy.fixed([0.05], auto_retry_for=["BUSY"], jitter=False))
def pay(cents: int) -> int:
    print(f"paying {cents}")
    logging.getLogger("bank").info("calling the bank")
    if cents == 0:
        raise TaskFailed("BUSY", "the bank does not answer")
    return cents


@app.task("wait", execution="blocking", interruptible=True)
def wait(file: str) -> int:
    while not os.path.exists(file):
        pass
    return 1
"""
SEND = """
import sys

from app import app
from horsies import TaskFailed
from tasks import pay

with app:
    print(pay.send_or_raise(5).result(timeout_ms=30_000))
    try:
        pay.send_or_raise(0).result(timeout_ms=30_000)
    except TaskFailed as failed:
        print(failed)
    print(pay.send("many").err())
"""


@pytest.fixture
def project(tmp_path: Path, database_url: str, monkeypatch: pytest.MonkeyPatch) -> Path:
    """What `horsies init` writes, with tasks of the newcomer's own."""
    monkeypatch.setenv("HORSIES_DATABASE_URL", database_url)
    assert run_horsies(tmp_path, "init").returncode == 0
    (tmp_path / "tasks.py").write_text(TASKS)
    (tmp_path / "send.py").write_text(SEND)
    return tmp_path


@pytest.fixture
def worker(project: Path) -> "Iterator[subprocess.Popen[str]]":
    process = start_horsies(project, "worker", "app.py", "--processes", "1")
    yield process
    process.kill()
    process.wait()


def test_the_first_hour(project: Path, worker: "subprocess.Popen[str]") -> None:
    sent = run_python(project, "send.py")
    log = project / "log.txt"
    eventually(lambda: "attempt 2" in log.read_text())
    worker.send_signal(signal.SIGTERM)
    assert worker.wait(30) == 0

    assert sent.stdout.splitlines()[:2] == ["5", "BUSY: the bank does not answer"], sent.stderr
    assert "VALIDATION_FAILED: parameter 'cents'" in sent.stdout
    text = log.read_text()
    for line in (
        "  app       app.py",
        "  slots     1 process, 1 blocking",
        "  tasks     pay, wait",
        "the worker opens",
        "paying 5",
        "INFO bank: calling the bank",
        "the worker closes",
    ):
        assert line in text
    assert re.search(r"INFO +horsies.tasks: pay \w{8} completed in .* \(attempt 1, queue def", text)
    failed = r"WARNING horsies.tasks: pay \S{36} failed in .* BUSY: the bank does not answer"
    own_line = r'Traceback .*\n  File "\S*/tasks.py", line \d+, in pay\n'
    assert re.search(failed + r"; it is tried again in 0.05 s\n" + own_line, text)
    assert "\nhorsies.TaskFailed: BUSY: the bank does not answer" in text
    assert "{" not in text.split("paying")[0], "the start shows no dictionary"


def test_a_stop_says_what_it_waits_for_and_a_second_signal_ends_it(
    project: Path, worker: "subprocess.Popen[str]", db: Database
) -> None:
    (project / "send.py").write_text(
        "from tasks import app, wait\nwith app:\n    wait.send_or_raise('never')\n"
    )
    run_python(project, "send.py")
    log = project / "log.txt"
    eventually(lambda: db.statuses() == {"RUNNING": 1}, within=30)
    worker.send_signal(signal.SIGTERM)
    eventually(lambda: "a second signal ends them" in log.read_text())
    worker.send_signal(signal.SIGTERM)

    assert worker.wait(30) == 0
    assert re.search(r"1 task to finish \(wait \S{36}\)", log.read_text())


def test_machines_read_json_and_children_log_as_their_worker(project: Path) -> None:
    (project / "app.py").write_text(
        "from horsies import Horsies\n"
        "app = Horsies(allow_plain_returns=True, capture_task_output=False)\n"
        "app.discover_tasks(['tasks'])\n"
    )
    (project / "send.py").write_text(
        "from tasks import app, pay\nwith app:\n    pay.send_or_raise(5)\n"
    )
    run_python(project, "send.py")
    done = run_horsies(
        project, "worker", "app:app", "--burst", "--processes", "1", "--log-format", "json"
    )

    lines = [json.loads(line) for line in done.stderr.splitlines() if line.startswith("{")]
    assert done.returncode == 0
    assert {"bank"} <= {line["logger"] for line in lines}, "a child's own record"
    assert [line["task_name"] for line in lines if line.get("outcome") == "completed"] == ["pay"]


def test_settings_are_shown_with_their_sources(project: Path) -> None:
    with (project / "pyproject.toml").open("a") as file:
        file.write("[tool.horsies]\ntask_timeout_ms = 60000\n")

    done = run_horsies(project, "check", "app:app", "--show-config", HORSIES_CLUSTER_WIDE_CAP="7")

    assert done.returncode == 0, done.stderr
    rows = [line.split() for line in done.stdout.splitlines()]
    assert ["cluster_wide_cap", "7", "HORSIES_CLUSTER_WIDE_CAP"] in rows
    assert ["allow_plain_returns", "True", "argument"] in rows
    assert ["task_timeout_ms", "60000", str(project / "pyproject.toml")] in rows
    assert ["prefetch_buffer", "None", "default"] in rows
