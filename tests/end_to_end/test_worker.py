"""`horsies worker` as a process: children, signals, options."""

import os
import signal
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil
import pytest

from support.apps import good
from support.database import Database
from support.eventually import eventually
from support.workers import APP_FILE, WorkerProcess, run_horsies

Start = Callable[..., WorkerProcess]
Load = Callable[..., Any]


def inside(gate: Path) -> bool:
    return Path(f"{gate}.inside").exists()


@pytest.mark.seed("S3", "S16", "S17", "S46", "S50", "S72", "S73", "S104")
def test_process_task_finds_itself_running_under_its_childs_pid(
    start_worker: Start, load: Load, db: Database
) -> None:
    worker = start_worker("--processes", "2").wait_ready()
    handle = good(load().look.send("me"))

    seen = handle.get(15_000).ok_value

    status, pid, process_name, hostname, has_started, is_not_finalizing = seen["row"]
    assert (status, pid, process_name) == ("RUNNING", seen["pid"], f"worker-{seen['pid']}")
    assert (hostname, has_started, is_not_finalizing) == (socket.gethostname(), True, True)
    assert seen["pid"] != worker.pid
    row = db.task(handle.task_id)
    (attempt,) = db.attempts(handle.task_id)
    assert (row["worker_pid"], attempt["worker_pid"]) == (seen["pid"], seen["pid"])
    assert "looked me" in good(handle.info(include_log=True)).log


def test_process_task_sends_another(start_worker: Start, load: Load, db: Database) -> None:
    handle = good(load().send_on.send(5))

    worker = start_worker("--processes", "1", "--burst")

    assert worker.wait(30) == 0
    sent_id = handle.get(0).ok_value
    assert (db.status(sent_id), db.value("select number from ledger")) == ("COMPLETED", 5)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT], ids=["SIGTERM", "SIGINT"])
def test_signal_drains_and_exits_zero(
    start_worker: Start, load: Load, db: Database, gate: Path, number: signal.Signals
) -> None:
    worker = start_worker("--processes", "1").wait_ready()
    app = load()
    held = good(app.hold.send(str(gate)))
    eventually(lambda: inside(gate))

    worker.signal(number)
    eventually(lambda: "stopping:" in worker.log())
    later = good(app.nothing.send())
    gate.touch()

    assert worker.wait() == 0
    assert held.get(0).is_ok()
    assert db.status(later.task_id) == "PENDING"
    assert "worker stopped" in worker.log()


def test_second_signal_ends_at_once(
    start_worker: Start, load: Load, db: Database, gate: Path
) -> None:
    worker = start_worker("--processes", "1").wait_ready()
    held = good(load().hold.send(str(gate)))
    eventually(lambda: inside(gate))

    worker.signal(signal.SIGTERM)
    eventually(lambda: "stopping:" in worker.log())
    worker.signal(signal.SIGTERM)
    worker.wait()

    assert db.task(held.task_id)["error_code"] == "WORKER_CRASHED"
    (attempt,) = db.attempts(held.task_id)
    assert attempt["outcome"] == "WORKER_FAILURE"


@pytest.mark.seed("S88", "S120")
def test_child_that_exits_fails_its_task_and_is_replaced(
    start_worker: Start, load: Load, db: Database
) -> None:
    worker = start_worker("--processes", "1").wait_ready()
    app = load()

    lost = good(app.leave.send(7))
    error = lost.get(15_000).err_value
    after = good(app.record.send(1)).get(15_000)

    assert (error.error_code.value, error.data["exit_code"]) == ("WORKER_CRASHED", 7)
    assert "Worker process crashed" in error.message
    assert after.is_ok()
    row = db.task(lost.task_id)
    (attempt,) = db.attempts(lost.task_id)
    assert "7" in row["failed_reason"]
    assert (attempt["outcome"], attempt["error_code"]) == ("WORKER_FAILURE", "WORKER_CRASHED")
    assert attempt["failed_reason"] == row["failed_reason"]
    assert worker.stop() == 0


def test_burst_runs_what_waits_and_exits(start_worker: Start, load: Load, db: Database) -> None:
    good(load().record.send_many((number,) for number in range(50)))

    worker = start_worker("--processes", "2", "--burst")

    assert worker.wait(30) == 0
    assert db.statuses() == {"COMPLETED": 50}
    assert db.value("select count(distinct number) from ledger") == 50


def test_only_chosen_queues_are_served(start_worker: Start, load: Load, db: Database) -> None:
    settings = {
        "queue_mode": "custom",
        "custom_queues": [{"name": "main", "priority": 1}, {"name": "low", "priority": 9}],
    }
    app = load(**settings)
    low, main = good(app.record_low.send(1)), good(app.record.send(2))

    worker = start_worker("--processes", "1", "--queues", "main", "--burst", **settings)

    assert worker.wait(30) == 0
    assert (db.status(main.task_id), db.status(low.task_id)) == ("COMPLETED", "PENDING")


def test_reload_restarts_with_the_new_code(
    start_worker: Start, db: Database, tmp_path: Path, database_url: str
) -> None:
    source = tmp_path / "shop.py"
    source.write_text(_SHOP.format(version=1))
    worker = start_worker(
        "--processes", "1", "--reload", locator="shop.py:app", directory=tmp_path
    )  # fmt: skip

    def answer(version: int) -> bool:
        task_id = db.insert(task_name="version", enqueued_at=db.value("select now()"))
        ok = '"ok":' + str(version)
        eventually(lambda: db.task(task_id)["completed_at"], within=15)
        return ok in db.task(task_id)["result"].replace(" ", "")

    assert answer(1)
    source.write_text(_SHOP.format(version=2))
    eventually(lambda: "restarting" in worker.log(), within=15)

    assert answer(2)
    assert worker.stop() == 0


def test_ctrl_c_in_a_terminal_lets_a_reloading_worker_finish(
    start_worker: Start, load: Load, db: Database, gate: Path, tmp_path: Path
) -> None:
    keyboard, terminal = os.openpty()
    held = good(load().hold.send(str(gate)))
    worker = start_worker("--processes", "1", "--reload", directory=tmp_path, terminal=terminal)
    eventually(lambda: inside(gate), within=20)

    os.write(keyboard, b"\x03")
    eventually(lambda: "1 task to finish" in worker.log())
    # Once it waits for its child, it has sent all the signals it ever will.
    eventually(lambda: Path(f"/proc/{worker.pid}/wchan").read_text() in ("do_wait", "0"))
    gate.touch()

    assert worker.wait() == 0, worker.log()
    assert db.status(held.task_id) == "COMPLETED"
    os.close(keyboard)
    os.close(terminal)


_SHOP = """
import os
from horsies import Horsies
from horsies.config import AppConfig, PostgresConfig
from horsies.result import TaskError, TaskResult

app = Horsies(AppConfig(broker=PostgresConfig(database_url=os.environ["HORSIES_TEST_APP_URL"])))


@app.task("version")
async def version() -> TaskResult[int, TaskError]:
    return TaskResult(ok={version})
"""


def test_signals_that_come_again_and_again_end_a_worker_cleanly(start_worker: Start) -> None:
    worker = start_worker("--processes", "1").wait_ready()

    def has_ended() -> bool:
        for _ in range(1000):
            worker.signal(signal.SIGTERM)
        return worker.process.poll() is not None

    eventually(has_ended)

    assert worker.wait() == 0, worker.log()


def test_connections_do_not_grow_with_processes(
    start_worker: Start, load: Load, db: Database
) -> None:
    worker = start_worker("--processes", "6").wait_ready()
    app = load()
    handles = good(app.nothing.send_many(() for _ in range(200)))
    assert handles[-1].get(20_000).is_ok()
    app.app.get_broker().close()

    def connection_count() -> int:
        return len(
            db.execute(
                "select 1 from pg_stat_activity where datname = current_database() "
                "and application_name like 'horsies%%' and pid <> pg_backend_pid()"
            )
        )

    # The server lags behind in taking leave of the sender that has just closed.
    eventually(lambda: 1 <= connection_count() <= 4)
    assert connection_count() <= 4
    assert worker.stop() == 0


def test_children_are_as_many_as_told_and_end_with_the_worker(
    start_worker: Start, load: Load
) -> None:
    worker = start_worker("--processes", "3").wait_ready()
    good(load().nothing.send()).get(15_000)
    family = psutil.Process(worker.pid).children(recursive=True)
    leaves = [process for process in family if not process.children()]

    assert len(leaves) == 3
    assert worker.stop() == 0
    eventually(lambda: not any(process.is_running() for process in family))


def test_child_is_replaced_after_its_share_of_tasks(
    start_worker: Start, load: Load, db: Database
) -> None:
    good(load().record.send_many((number,) for number in range(9)))

    worker = start_worker("--processes", "1", "--max-tasks-per-child", "3", "--burst")

    assert worker.wait(30) == 0
    pids = db.execute("select pid, count(*) as n from ledger group by pid")
    assert db.statuses() == {"COMPLETED": 9}
    assert {row["n"] for row in pids} == {3}


@pytest.mark.parametrize(
    ("options", "code", "said"),
    [
        pytest.param(["no_such_module:app"], 1, "HRS-206", id="no such module"),
        pytest.param(["no/such/file.py:app"], 1, "HRS-206", id="no such file"),
        pytest.param([], 1, "HRS-206", id="no module"),
        pytest.param(["shop.queue.py"], 1, "shop/queue.py", id="dotted name with suffix"),
        pytest.param(["{app}:missing"], 1, "HRS-206", id="no such attribute"),
        pytest.param(["{app}:URL"], 1, "HRS-206", id="not an app"),
        pytest.param(["broken.py:app"], 1, "HRS-210", id="module raises"),
        pytest.param(["{app}:app", "--processes", "0"], 2, "--processes", id="out of range"),
        pytest.param(["{app}:app", "--queues", "nope"], 2, "nope", id="unknown queue"),
        pytest.param(["{app}:app", "--no-such-option"], 2, "--no-such-option", id="unknown option"),
        pytest.param(["{app}:app", "--loglevel", "LOUD"], 2, "LOUD", id="unknown level"),
    ],
)
def test_wrong_command_lines_say_what_is_wrong(
    database_url: str, tmp_path: Path, options: list[str], code: int, said: str
) -> None:
    (tmp_path / "broken.py").write_text("raise RuntimeError('boom')\n")
    arguments = [option.format(app=APP_FILE) for option in options]

    done = run_horsies("worker", *arguments, url=database_url, directory=tmp_path)

    assert done.returncode == code
    assert said in done.stderr
    assert "Traceback" not in done.stderr or said == "HRS-210"
