"""Processes that tasks start: they end with a child that is killed, and with nothing else."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from horsies.executors.base import Crashed, Outcome, Stopped, TimedOut
from horsies.executors.processes import ProcessExecutor
from support.executor_calls import StartProcesses, call, is_running, until

WORKER = """
import asyncio, sys
from horsies.executors.base import Call
from horsies.executors.processes import ProcessExecutor

async def main():
    executor = ProcessExecutor(2, bootstrap=sys.argv[2:])
    await executor.start()
    arguments = f'["{sys.argv[1]}", "stay"]'
    executor.submit(Call("t", "start_sleeper_and_stay", 1, arguments), lambda call, outcome: None)
    await asyncio.Event().wait()

asyncio.run(main())
"""


def _kill_child(executor: ProcessExecutor) -> None:
    os.kill(executor.pids[0], signal.SIGKILL)


def _kill_fork_server(executor: ProcessExecutor) -> None:
    os.kill(executor.fork_server_pid or 0, signal.SIGKILL)


def _do_nothing(_: ProcessExecutor) -> None:
    pass


def _stop(executor: ProcessExecutor) -> None:
    executor.stop("t")


@pytest.mark.parametrize(
    ("how", "timeout_ms", "act", "kind"),
    [
        ("stay", 500, _do_nothing, TimedOut),
        ("stubborn", 500, _do_nothing, TimedOut),
        ("stay", None, _stop, Stopped),
        ("leave", None, _do_nothing, Crashed),
        ("stay", None, _kill_child, Crashed),
        ("stay", None, _kill_fork_server, Crashed),
    ],
    ids=["limit", "limit, SIGTERM ignored", "stop", "os._exit", "kill -9", "kill -9, fork server"],
)
async def test_what_a_task_has_started_ends_with_its_killed_child(
    start_processes: StartProcesses,
    tmp_path: Path,
    how: str,
    timeout_ms: int | None,
    act: Callable[[ProcessExecutor], None],
    kind: type[Outcome],
) -> None:
    caller, executor = await start_processes(1, grace_seconds=0.3)
    sleeper = tmp_path / "sleeper"
    future = caller.submit(
        call("start_sleeper_and_stay", str(sleeper), how, timeout_ms=timeout_ms, task_id="t")
    )
    await until(sleeper.exists)

    act(executor)

    assert isinstance(await future, kind)
    await until(lambda: not is_running(int(sleeper.read_text())))


@pytest.mark.faults
async def test_what_a_task_has_started_ends_with_its_killed_worker(
    bootstrap: list[str], tmp_path: Path
) -> None:
    sleeper = tmp_path / "sleeper"
    with subprocess.Popen([sys.executable, "-c", WORKER, str(sleeper), *bootstrap]) as worker:
        await until(sleeper.exists)

        worker.kill()

        await until(lambda: not is_running(int(sleeper.read_text())))
        assert worker.wait() == -signal.SIGKILL


async def test_what_a_successful_task_has_left_running_is_left_alone(
    start_processes: StartProcesses, tmp_path: Path
) -> None:
    caller, executor = await start_processes(1, max_tasks_per_child=2)
    sleeper = tmp_path / "sleeper"

    child = await caller.value("start_sleeper", str(sleeper))
    assert await caller.value("pid") == child
    await until(lambda: child not in executor.pids)
    other = await caller.value("start_sleeper", str(tmp_path / "other"))
    await executor.close(kill=True)

    left = [int(path.read_text()) for path in (sleeper, tmp_path / "other")]
    assert [is_running(pid) for pid in (child, other, *left)] == [False, False, True, True]
    for pid in left:
        os.kill(pid, signal.SIGKILL)
