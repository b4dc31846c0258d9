"""`current_task()`: what a task sees of itself and reports, in every executor."""

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from horsies import CurrentTask, NoCurrentTaskError, current_task
from horsies.executors.base import Delivered, Stopped, TimedOut
from horsies.executors.current import Running
from support.eventually import eventually_async
from support.executor_calls import Caller, StartProcesses, call, until


def test_outside_of_a_task_there_is_none() -> None:
    with pytest.raises(NoCurrentTaskError, match="there is no current task here"):
        current_task()


async def test_a_task_in_the_worker_sees_itself(in_loop: Caller, threads: Caller) -> None:
    seen = [
        await in_loop.value("see_async", task_id="t-1", timeout_ms=60_000),
        await threads.value("see", task_id="t-1", timeout_ms=60_000),
    ]

    for one in seen:
        assert_seen(one)


async def test_a_child_sees_its_task_and_reports(start_processes: StartProcesses) -> None:
    caller, _ = await start_processes(1)
    report = call("report", 3, 10, "third \x00 file")

    seen = await caller.value("see", task_id="t-1", timeout_ms=60_000)
    reported = await caller.submit(report)
    silent = call("see")
    await caller.submit(silent)

    assert_seen(seen)
    assert isinstance(reported, Delivered)
    assert report.progress == (3.0, 10.0, "third \N{REPLACEMENT CHARACTER} file")
    assert silent.progress is None


def assert_seen(seen: dict[str, Any]) -> None:
    deadline = datetime.fromisoformat(seen.pop("deadline"))
    assert timedelta(0) < deadline - datetime.now(UTC) <= timedelta(seconds=60)
    assert seen == {
        "id": "t-1",
        "name": seen["name"],
        "attempt": 1,
        "queue": "default",
        "worker_id": "worker-1",
        "is_cancel_requested": False,
    }


async def test_progress_of_a_killed_child_is_known(start_processes: StartProcesses) -> None:
    caller, _ = await start_processes(1, grace_seconds=0.2)
    endless = call("report_and_hang", timeout_ms=300)

    outcome = await caller.submit(endless)

    assert isinstance(outcome, TimedOut)
    assert endless.progress == (1.0, 2.0, None)


@pytest.mark.parametrize("where", ["loop", "thread", "child"])
async def test_a_stopped_task_learns_of_it(
    where: str,
    tmp_path: Path,
    in_loop: Caller,
    threads: Caller,
    start_processes: StartProcesses,
) -> None:
    caller = in_loop if where == "loop" else threads
    if where == "child":
        caller, _ = await start_processes(1, grace_seconds=5.0)
    told = tmp_path / "told"
    name = "tell_of_cancel_async" if where == "loop" else "tell_of_cancel"

    future = caller.submit(call(name, str(told), task_id="t"))
    await until(told.exists)
    caller.executor.stop("t")

    assert isinstance(await future, Stopped)
    assert told.read_text() == "True"


async def test_progress_of_a_running_child_is_collected(start_processes: StartProcesses) -> None:
    caller, executor = await start_processes(1, grace_seconds=0.2)
    running = call("report_and_hang")
    caller.submit(running)

    async def is_collected() -> bool:
        executor.collect_progress()
        return running.progress is not None

    await eventually_async(is_collected)
    executor.stop(running.task_id)

    assert running.progress == (1.0, 2.0, None)


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        ((-1,), "done must be a number of 0 or more, not -1"),
        (("3",), "done must be a number of 0 or more, not '3'"),
        ((float("nan"),), "done must be a number of 0 or more, not nan"),
        ((10**400,), "done must be a number of 0 or more"),
        ((1, float("inf")), "total must be None or a number of 0 or more, not inf"),
        ((1, 2, 3), "note must be None or a text, not 3"),
    ],
)
def test_a_bad_report_is_refused(arguments: Any, problem: str) -> None:
    task = CurrentTask(Running(call("see")))

    with pytest.raises((ValueError, TypeError), match=problem):
        task.progress(*arguments)
