"""The first hour of a newcomer: the wheel in a clean environment, what they type and what they see.

What is wrong on purpose is here as well: nobody gets a traceback of ours.
"""

import json
import re
import signal
import subprocess
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

import horsies
from support.clean_environment import started, typed
from support.database import Database
from support.eventually import eventually

TASKS = """
import logging
import os

from horsies import Retry, RetryPolicy, TaskFailed, current_task

from app import app


@app.on_worker_start
async def opened() -> None:
    print("the worker opens", flush=True)


@app.on_worker_stop
def closed() -> None:
    print("the worker closes", flush=True)


@app.task("pay", retry_policy=RetryPolicy.fixed([0.05], auto_retry_for=["BUSY"], jitter=False))
def pay(cents: int) -> int:
    '''Pay an amount.'''
    print(f"paying {cents}")
    logging.getLogger("bank").info("calling the bank")
    if cents == 0:
        raise TaskFailed("BUSY", "the bank does not answer", data={"bank": 7})
    return cents


@app.task("read", retry_policy=RetryPolicy.fixed([60], retry_on=[OSError]))
async def read(source: dict[str, list[float]]) -> int:
    if current_task().attempt == 1:
        raise Retry("not yet", after=0.01)
    return len(source)


@app.task("wait", execution="blocking", interruptible=True)
def wait(file: str) -> int:
    while not os.path.exists(file):
        pass
    return 1


@app.task("remind", priority=3, tags=["mail"], delay=3600, unique_key=lambda order: f"o{order}")
def remind(order: int) -> int:
    return order
"""
SEND = """
import asyncio
import logging
import pydoc
import sys

from app import app
from horsies import TaskFailed
from tasks import pay, read, remind

logging.basicConfig(stream=sys.stdout, format="%(levelname)s %(message)s")


async def later() -> None:
    async with app:
        handle = await read.send_or_raise_async({"a": [1.0]})
        print("awaited", await handle.result_async(timeout_ms=30_000))


print("value", pay.send_or_raise(5).result(timeout_ms=30_000))
try:
    pay.send_or_raise(0).result(timeout_ms=30_000)
except TaskFailed as failed:
    print("failed", failed, failed.data)
print("error", pay.send("many").err())
try:
    pay.send("many").unwrap()
except ValueError as error:
    print("unwrapped", error)
print(pydoc.plain(pydoc.render_doc(pay.send)))
print("path", read.send({"a": [1.0, float("inf")]}).err())
pay.send_many([pay.bind(1), pay.bind(2)]).unwrap()
read.send({"wide": [1.0] * 500})
first, second = remind.send_or_raise(7), remind.send_or_raise(7)
print("same", first.task_id == second.task_id)
while "PENDING" not in str(told := first.get(timeout_ms=1).err):
    pass
print("waited", told)
print("cancelled", first.cancel().found, first.cancel().found, app.handle("none").cancel().found)
app.close()
asyncio.run(later())
"""


@pytest.fixture
def project(tmp_path: Path, database_url: str, monkeypatch: pytest.MonkeyPatch) -> Path:
    """What `horsies init` writes, with tasks of the newcomer's own."""
    monkeypatch.setenv("HORSIES_DATABASE_URL", database_url)
    assert typed(tmp_path, "horsies init").returncode == 0
    (tmp_path / "tasks.py").write_text(TASKS)
    (tmp_path / "send.py").write_text(SEND)
    with (tmp_path / "pyproject.toml").open("a") as file:
        file.write("[tool.horsies]\npayload_warn_bytes = 2000\n")
    return tmp_path


@pytest.fixture
def worker(project: Path) -> "Iterator[subprocess.Popen[str]]":
    process = started(project, "horsies worker app.py --processes 1")
    yield process
    process.kill()
    process.wait()


def test_the_first_hour(project: Path, worker: "subprocess.Popen[str]") -> None:
    sent = typed(project, "python -W error send.py")
    log = project / "log.txt"
    eventually(lambda: log.read_text().count("read ") > 3)
    worker.send_signal(signal.SIGTERM)
    assert worker.wait(30) == 0

    for line in (
        "value 5",
        "failed BUSY: the bank does not answer {'bank': 7}",
        "error VALIDATION_FAILED: parameter 'cents': Input should be a valid integer",
        "unwrapped unwrap() on Err: VALIDATION_FAILED: parameter 'cents'",
        "WARNING task pay was not sent: VALIDATION_FAILED: parameter 'cents'",
        "send(cents: int) -> ",
        "Pay an amount.",
        "path VALIDATION_FAILED: parameter 'source': source.a[1]: ",
        "WARNING arguments of task read take 2012 bytes, most of them 'source'",
        "same True",
        "waited WAIT_TIMEOUT: The task had not finished after 1 ms: it is still PENDING, its time",
        "cancelled waiting ended unknown",
        "awaited 1",
    ):
        assert line in sent.stdout, sent.stdout + sent.stderr
    assert "Traceback" not in sent.stdout + sent.stderr
    text = log.read_text()
    for line in (
        f"horsies {horsies.__version__} · worker · pid {worker.pid}",
        "  app       app.py",
        "  database  postgresql://",
        "  queues    default",
        "  slots     1 process, 100 async, 1 blocking",
        "  tasks     pay, read, wait, remind",
        "the worker opens",
        "paying 5",
        "INFO bank: calling the bank",
        "the worker closes",
    ):
        assert line in text
    assert re.search(r"INFO +horsies.tasks: pay \w{8} completed in .* \(attempt 1, queue def", text)
    failed = r"WARNING horsies.tasks: pay \S{36} failed in .* BUSY: the bank does not answer"
    own_line = r' +Traceback .*\n +File "\S*/tasks.py", line \d+, in pay\n'
    assert re.search(failed + r"; it is tried again in 0.05 s\n" + own_line, text)
    assert "\n    horsies.TaskFailed: BUSY: the bank does not answer" in text
    assert "RETRY: not yet; it is tried again in 0.01 s" in text
    assert "{" not in text.split("paying")[0], "the start shows no dictionary"


def test_a_stop_says_what_it_waits_for_and_a_second_signal_ends_it(
    project: Path, worker: "subprocess.Popen[str]", db: Database
) -> None:
    (project / "send.py").write_text(
        "import logging\n"
        "from tasks import app, wait\n"
        "logging.basicConfig()\n"
        "with app:\n"
        "    handle = wait.send_or_raise('never')\n"
        "    while 'RUNNING' not in str(told := handle.get(timeout_ms=1).err):\n"
        "        pass\n"
        "    print(told)\n"
        "    wait.send(5)\n"
    )
    sent = typed(project, "python send.py")
    log = project / "log.txt"
    worker.send_signal(signal.SIGTERM)
    eventually(lambda: "a second signal ends them" in log.read_text())
    worker.send_signal(signal.SIGTERM)

    assert worker.wait(30) == 0
    assert re.search(r"1 task to finish \(wait \S{36}\)", log.read_text())
    assert "had not finished after 1 ms: it is RUNNING since 20" in sent.stdout, sent.stderr
    assert "task wait was not sent: VALIDATION_FAILED: " in sent.stderr


QUIET_APP = """
import logging
import sys

from horsies import Horsies

logging.basicConfig(level="INFO", stream=sys.stdout, format="own %(name)s %(message)s")
app = Horsies(allow_plain_returns=True, unknown_tasks="leave", capture_task_output=OUTPUT)


@app.task("pay")
def pay(cents: int) -> int:
    print(f"paying {cents}")
    logging.getLogger("bank").info("calling the bank")
    return cents


@app.task("changed")
async def changed(total: int) -> int:
    return total
"""


def test_a_worker_says_what_it_is_told_to(
    tmp_path: Path, database_url: str, db: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Logging of one's own, nothing of children, and what a release has renamed or changed."""
    monkeypatch.setenv("HORSIES_DATABASE_URL", database_url)
    (tmp_path / "shop.py").write_text(QUIET_APP.replace("OUTPUT", "True"))
    paid, unreadable, renamed = (
        db.insert(task_name=name, args=args, kwargs="{}", enqueued_at=datetime.now(UTC))
        for name, args in (("pay", "[5]"), ("changed", '["many"]'), ("renamed", "[]"))
    )
    line = "horsies worker shop.py --burst --processes 1 --log-tasks failures --no-logging-setup"
    done = typed(tmp_path, f"{line} --no-task-output")

    assert done.returncode == 0, done.stderr
    assert [db.status(one) for one in (paid, unreadable, renamed)] == [
        "COMPLETED", "FAILED", "PENDING",
    ]  # fmt: skip
    assert f"own horsies.tasks changed {unreadable} failed" in done.stdout
    assert "renamed (1)" in done.stdout
    assert "INFO " not in done.stderr, "no handler of ours"
    for absent in ("paying 5", "calling the bank", "pay "):
        assert absent not in done.stdout + done.stderr.partition("tasks ")[2]
    assert "paying 5" in db.value("select log from horsies_task_logs")


def test_machines_read_json_and_children_log_as_their_worker(
    tmp_path: Path, database_url: str, db: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HORSIES_DATABASE_URL", database_url)
    source = QUIET_APP.replace("OUTPUT", "False").replace("logging.basicConfig", "dict")
    (tmp_path / "shop.py").write_text(source)
    db.insert(task_name="pay", args="[5]", kwargs="{}", enqueued_at=datetime.now(UTC))

    done = typed(tmp_path, "horsies worker shop.py --burst --processes 1 --log-format json")

    lines = [json.loads(line) for line in done.stderr.splitlines() if line.startswith("{")]
    assert done.returncode == 0
    assert {"bank"} <= {line["logger"] for line in lines}, "a child's own record"
    assert [line["task_name"] for line in lines if line.get("outcome") == "completed"] == ["pay"]


def test_settings_are_shown_with_their_sources(project: Path) -> None:
    done = typed(
        project, "python -m horsies check app:app --show-config", HORSIES_CLUSTER_WIDE_CAP="7"
    )

    assert done.returncode == 0, done.stderr
    rows = [line.split() for line in done.stdout.splitlines()]
    assert ["cluster_wide_cap", "7", "HORSIES_CLUSTER_WIDE_CAP"] in rows
    assert ["allow_plain_returns", "True", "argument"] in rows
    assert ["payload_warn_bytes", "2000", str(project / "pyproject.toml")] in rows
    assert ["prefetch_buffer", "None", "default"] in rows


WRONG = """
from __future__ import annotations

from typing import TYPE_CHECKING

from .queue import app
from horsies import Horsies, RetryPolicy

if TYPE_CHECKING:
    from decimal import Decimal


class Plain: ...


URL = "postgresql://me:secret@127.0.0.1:1/shop"
for wrong in (
    lambda: Horsies("mysql://shop"),
    lambda: Horsies(URL, claim_lease_ms=0),
    lambda: Horsies(URL, speed=3),
    lambda: app.discover_tasks("tasks"),
):
    try:
        wrong()
    except ValueError as error:
        print(error)


@app.task
def bare(n: int) -> int: ...


@app.task("yields")
def yields(n: int) -> int:
    yield n


class Shop:
    @app.task("method")
    def method(self, n: int) -> int: ...


@app.task("classes", retry_policy=RetryPolicy.fixed([1], auto_retry_for=[ValueError]))
def classes(n: int) -> int: ...


@app.task("useless", retry_policy=RetryPolicy.fixed([1], auto_retry_for=["TASK_CANCELLED"]))
def useless(n: int) -> int: ...


@app.task("no_schema")
def no_schema(order: Plain) -> int: ...


@app.task("hidden")
def hidden(price: Decimal) -> int: ...


@app.task("undefined")
def undefined(order: Order) -> int: ...
"""


def test_every_wrong_use_says_what_and_where_and_what_to_do(tmp_path: Path) -> None:
    package = tmp_path / "shop"
    package.mkdir()
    (package / "__init__.py").touch()
    (package / "queue.py").write_text(
        "from horsies import Horsies\n\n"
        'app = Horsies("postgresql://me:secret@127.0.0.1:1/shop", allow_plain_returns=True)\n'
        "app.discover_tasks(['shop.tasks'])\n"
    )
    (package / "tasks.py").write_text(WRONG)
    (tmp_path / "none.py").write_text("from shop.queue import app\napp.discover_tasks([])\n")

    done = typed(tmp_path, "horsies check shop/queue.py")
    nothing = typed(tmp_path, "horsies worker none.py")
    missing = typed(tmp_path, "horsies worker nowhere:app")

    assert (done.returncode, nothing.returncode, missing.returncode) == (1, 1, 1)
    assert re.findall(r"error\[(HRS-\d+)\]: (.+)", done.stdout) == [
        ("HRS-203", "database_url is not a PostgreSQL URL"),
        ("HRS-202", "claim_lease_ms must be positive"),
        ("HRS-206", "a setting has a value or a name that it cannot have"),
        ("HRS-206", "discover_tasks takes a list of modules, not a text"),
    ]
    expected = "error codes, not the class ValueError: write retry_on=[ValueError]"
    assert re.findall(r"error\[(HRS-\d+)\]: (.+)", done.stderr) == [
        ("HRS-102", "@app.task needs the name of the task"),
        ("HRS-105", "a task cannot be a generator function"),
        ("HRS-105", "a task cannot be a method"),
        ("HRS-102", f"RetryPolicy: auto_retry_for takes {expected}"),
        (
            "HRS-102",
            "task 'useless': auto_retry_for names codes that are never retried: TASK_CANCELLED",
        ),
        ("HRS-105", "task 'no_schema': parameter 'order' has a type that cannot be stored"),
        ("HRS-105", "task 'hidden': parameter 'price' has an annotation that cannot be evaluated"),
        (
            "HRS-105",
            "task 'undefined': parameter 'order' has an annotation that cannot be evaluated",
        ),
    ]
    assert done.stderr.count("= help:") == done.stderr.count("shop/tasks.py:") == 8
    assert "Decimal is imported under TYPE_CHECKING" in done.stderr
    assert "error[HRS-300]: this app has no tasks" in nothing.stderr
    assert "the module must be importable from the working directory" in missing.stderr
    said = done.stdout + done.stderr + nothing.stderr + missing.stderr
    assert "Traceback" not in said
    assert "pydantic.dev" not in said
    assert "secret" not in said


OWN_TESTS = """
from app import app
from horsies.testing import crash
from tasks import pay, remind


def test_a_payment(horsies_inline):
    sends = horsies_inline(app)

    assert pay.send_or_raise(5).result() == 5
    assert str(pay.send_or_raise(0).get().err) == "BUSY: the bank does not answer"
    with crash(pay):
        assert pay.send_or_raise(5).get().err.error_code.value == "WORKER_CRASHED"
    sends.assert_sent(pay, times=2, cents=5)


def test_a_reminder(horsies_sends):
    sends = horsies_sends(app)

    remind.send(7)

    assert sends.assert_sent(remind, order=7).delay_s == 3600
"""
STEER = """
import asyncio

from horsies.core.models.task_pg import TaskModel
from horsies.states import TaskStatus
from sqlalchemy import select
from tasks import app, remind


async def main() -> None:
    async with app:
        handle = await remind.send_or_raise_async(7)
        async with app.get_broker().session_factory() as session:
            task = await session.scalar(
                select(TaskModel).where(TaskModel.status == TaskStatus.PENDING)
            )
        print(task.id == handle.task_id, task.status is TaskStatus.PENDING)


asyncio.run(main())
"""


def test_own_tests_models_and_commands(project: Path, db: Database) -> None:
    (project / "test_shop.py").write_text(OWN_TESTS)
    (project / "steer.py").write_text(STEER)

    tested = typed(project, "python -m pytest -q -p no:cacheprovider .")
    steered = typed(project, "python -W error steer.py")
    foreign = db.insert(task_name="foreign")
    cancelled = typed(project, "horsies cancel app.py --yes")

    assert "2 passed" in tested.stdout, tested.stdout + tested.stderr
    assert steered.stdout == "True True\n", steered.stderr
    assert "1 task(s) cancelled" in cancelled.stdout, cancelled.stderr
    assert db.status(foreign) == "PENDING"
