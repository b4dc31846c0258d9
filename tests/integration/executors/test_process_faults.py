"""Children and their fork server, broken on purpose: only the call that ran is touched."""

import asyncio
import os
import resource
import signal
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from horsies.executors.base import Crashed, Delivered, NotBegun, Stopped, TimedOut
from support.executor_calls import StartProcesses, call, error_of, until, value_of


@pytest.mark.seed("S88")
@pytest.mark.parametrize(
    ("name", "args", "exit_code", "signal_number", "reason"),
    [
        ("leave", (3,), 3, None, "exit code 3"),
        ("leave", (0,), 0, None, "exit code 0"),
        ("segfault", (), None, signal.SIGSEGV, "signal 11 (SIGSEGV)"),
        ("kill_self", (), None, signal.SIGKILL, "signal 9 (SIGKILL)"),
        ("interrupt", (), 1, None, "exit code 1"),
    ],
    ids=["exit 3", "exit 0", "segfault", "kill -9", "KeyboardInterrupt"],
)
async def test_a_child_that_ends_without_a_result_is_a_crash_naming_how(
    start_processes: StartProcesses,
    name: str,
    args: tuple[int, ...],
    exit_code: int | None,
    signal_number: int | None,
    reason: str,
) -> None:
    caller, executor = await start_processes()

    outcome = await caller.run(name, *args)

    assert isinstance(outcome, Crashed)
    assert (outcome.exit_code, outcome.signal) == (exit_code, signal_number)
    assert outcome.reason == reason
    assert "Worker process crashed" in outcome.message
    assert reason in outcome.message
    await until(lambda: executor.started_slots == 2)


async def test_a_task_beyond_the_memory_limit_is_killed_alone_and_told_so(
    start_processes: StartProcesses, tmp_path: Path
) -> None:
    caller, executor = await start_processes(2, max_memory_per_child_mb=200)
    begun, release = tmp_path / "begun", tmp_path / "release"
    sibling = caller.submit(call("hold", str(begun), str(release)))
    await until(begun.exists)

    outcome = await caller.run("grow_and_stay", str(tmp_path / "grown"), 300)

    assert isinstance(outcome, Crashed)
    assert outcome.signal == signal.SIGKILL
    assert "MiB, max_memory_per_child_mb=200" in outcome.reason
    assert "Worker process crashed" in outcome.message
    release.touch()
    assert value_of(await sibling) == "released"
    await until(lambda: executor.started_slots == 2)


async def test_sigterm_from_outside_ends_a_child_after_its_finally_blocks(
    start_processes: StartProcesses, tmp_path: Path
) -> None:
    caller, executor = await start_processes(1)
    begun, tidied = tmp_path / "begun", tmp_path / "tidied"
    future = caller.submit(call("forever", str(begun), str(tidied)))
    await until(begun.exists)

    os.kill(executor.pids[0], signal.SIGTERM)

    outcome = await future
    assert isinstance(outcome, Crashed)
    assert outcome.signal == signal.SIGTERM
    assert tidied.exists()


async def test_the_pool_survives_a_row_of_crashes(start_processes: StartProcesses) -> None:
    caller, executor = await start_processes()

    crashes = [caller.submit(call("leave", 1)) for _ in range(20)]

    assert [type(await future) for future in crashes] == [Crashed] * 20
    assert await caller.value("add", 1, 1) == 2
    await until(lambda: executor.started_slots == 2)


async def test_calls_queued_behind_a_crash_run_elsewhere_exactly_once(
    start_processes: StartProcesses, tmp_path: Path
) -> None:
    caller, executor = await start_processes()
    begun, release, noted = tmp_path / "begun", tmp_path / "release", tmp_path / "noted"
    (pid,) = executor.plan(1)
    crash = caller.submit(call("hold_then_leave", str(begun), str(release)), pid=pid)
    queued = [caller.submit(call("note", str(noted)), pid=pid) for _ in range(10)]
    await until(begun.exists)
    assert not noted.exists()

    release.touch()

    assert isinstance(await crash, Crashed)
    assert [type(await future) for future in queued] == [Delivered] * 10
    assert noted.read_text().count("ran") == 10
    assert all(len(outcomes) == 1 for outcomes in caller.outcomes.values())


async def test_a_crash_leaves_the_call_of_a_sibling_alone(
    start_processes: StartProcesses, tmp_path: Path
) -> None:
    caller, _ = await start_processes()
    begun, release = tmp_path / "begun", tmp_path / "release"
    sibling = caller.submit(call("hold", str(begun), str(release)))
    await until(begun.exists)

    assert isinstance(await caller.run("kill_self"), Crashed)

    release.touch()
    assert isinstance(await sibling, Delivered)


@pytest.mark.seed("S81", "S83")
async def test_at_its_limit_a_call_is_ended_by_sigterm_and_may_tidy_up(
    start_processes: StartProcesses, tmp_path: Path
) -> None:
    caller, executor = await start_processes()
    before, tidied = executor.pids, tmp_path / "tidied"

    outcome = await caller.run("forever", str(tmp_path / "begun"), str(tidied), timeout_ms=100)

    assert outcome == TimedOut(100)
    assert tidied.exists()
    await until(lambda: executor.started_slots == 2 and len(executor.pids) == 2)
    assert len(set(before) & set(executor.pids)) == 1


async def test_a_call_that_swallows_its_end_and_returns_is_still_timed_out(
    start_processes: StartProcesses, tmp_path: Path
) -> None:
    caller, _ = await start_processes()

    assert await caller.run("swallow", str(tmp_path / "begun"), timeout_ms=100) == TimedOut(100)


@pytest.mark.seed("S82")
async def test_a_child_that_ignores_sigterm_is_killed_after_the_grace(
    start_processes: StartProcesses, tmp_path: Path
) -> None:
    caller, _ = await start_processes(1, grace_seconds=0.3)

    outcome = await caller.run("stubborn", str(tmp_path / "begun"), timeout_ms=100)

    assert outcome == TimedOut(100)
    assert await caller.value("add", 1, 1) == 2


async def test_the_limit_counts_from_the_beginning_and_queued_calls_go_elsewhere(
    start_processes: StartProcesses, tmp_path: Path
) -> None:
    caller, executor = await start_processes()
    (pid,) = executor.plan(1)
    begun, release = tmp_path / "begun", tmp_path / "release"
    first = caller.submit(call("hold", str(begun), str(release)), pid=pid)
    limited = caller.submit(call("forever", str(tmp_path / "x"), timeout_ms=200), pid=pid)
    queued = caller.submit(call("add", 1, 2, timeout_ms=60_000), pid=pid)
    await until(begun.exists)
    assert not (tmp_path / "x").exists()

    release.touch()

    assert isinstance(await first, Delivered)
    assert await limited == TimedOut(200)
    assert value_of(await queued) == 3


async def test_the_soft_limit_is_raised_in_the_function(
    start_processes: StartProcesses, tmp_path: Path
) -> None:
    caller, executor = await start_processes(1)
    pids = executor.pids

    assert await caller.value("soft", str(tmp_path / "a"), soft_timeout_ms=50) == "tidied up"
    unhandled = await caller.run("forever", str(tmp_path / "b"), soft_timeout_ms=50)

    assert "SoftTimeout: soft time limit reached" in error_of(unhandled)
    assert executor.pids == pids


async def test_the_soft_limit_counts_from_the_function_in_a_child(
    start_processes: StartProcesses, tmp_path: Path
) -> None:
    caller, _ = await start_processes(1)
    begun = str(tmp_path / "begun")

    assert await caller.value("read_slowly", begun, soft_timeout_ms=50) == "tidied up"


async def test_stop_ends_the_running_call_only(
    start_processes: StartProcesses, tmp_path: Path
) -> None:
    caller, executor = await start_processes(1)
    (pid,) = executor.plan(1)
    begun, tidied, noted = tmp_path / "begun", tmp_path / "tidied", tmp_path / "noted"
    running = caller.submit(call("forever", str(begun), str(tidied), task_id="r"), pid=pid)
    queued = caller.submit(call("note", str(noted)), pid=pid)
    await until(begun.exists)

    assert executor.stop("r")

    assert await running == Stopped()
    assert isinstance(await queued, Delivered)
    assert (tidied.read_text(), noted.read_text()) == ("ran\n", "ran\n")


async def test_a_queued_call_that_is_stopped_never_begins(
    start_processes: StartProcesses, tmp_path: Path
) -> None:
    caller, executor = await start_processes(1)
    (pid,) = executor.plan(1)
    begun, release, noted = tmp_path / "begun", tmp_path / "release", tmp_path / "noted"
    running = caller.submit(call("hold", str(begun), str(release)), pid=pid)
    queued = caller.submit(call("note", str(noted), task_id="q"), pid=pid)
    await until(begun.exists)

    assert executor.stop("q")
    release.touch()

    assert isinstance(await running, Delivered)
    assert await queued == NotBegun()
    assert not noted.exists()


@pytest.mark.seed("S18", "S50", "S143")
@pytest.mark.parametrize("name", ["frozen", "hogging"])
async def test_a_child_that_shows_no_life_is_not_alive(
    start_processes: StartProcesses, tmp_path: Path, name: str
) -> None:
    caller, executor = await start_processes(1)
    begun = tmp_path / "begun"
    task = "hold" if name == "frozen" else "hog"
    caller.submit(call(task, str(begun), str(tmp_path / "release"), task_id="t"))
    await until(begun.exists)
    assert executor.is_alive("t")
    assert executor.begun_at("t") is not None

    if name == "frozen":
        os.kill(executor.pids[0], signal.SIGSTOP)

    await until(lambda: not executor.is_alive("t"))
    if name == "frozen":
        os.kill(executor.pids[0], signal.SIGCONT)
        await until(lambda: executor.is_alive("t"))


async def test_a_fork_server_that_dies_is_replaced_and_no_call_is_lost(
    start_processes: StartProcesses, tmp_path: Path
) -> None:
    caller, executor = await start_processes(1)
    (pid,) = executor.plan(1)
    begun, noted = tmp_path / "begun", tmp_path / "noted"
    running = caller.submit(call("forever", str(begun)), pid=pid)
    queued = caller.submit(call("note", str(noted)), pid=pid)
    await until(begun.exists)

    os.kill(executor.fork_server_pid or 0, signal.SIGKILL)

    assert isinstance(await running, Crashed)
    assert isinstance(await queued, Delivered)
    assert noted.read_text() == "ran\n"
    await until(lambda: not psutil.pid_exists(pid))


async def test_a_fork_server_that_cannot_be_started_for_now_is_started_later(
    start_processes: StartProcesses,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    directory = tmp_path / "deployed"
    directory.mkdir()
    with monkeypatch.context() as moved:
        moved.chdir(directory)
        caller, executor = await start_processes(1)
    directory.rmdir()  # as good as no memory: the program cannot be run

    os.kill(executor.fork_server_pid or 0, signal.SIGKILL)
    await until(lambda: "the fork server did not start" in caplog.text)
    directory.mkdir()

    async with asyncio.timeout(20):
        assert await caller.value("add", 1, 2) == 3


async def test_a_child_that_cannot_be_replaced_for_now_is_replaced_later(
    start_processes: StartProcesses, tmp_path: Path
) -> None:
    caller, executor = await start_processes(1)
    (pid,) = executor.plan(1)
    begun = tmp_path / "begun"
    running = caller.submit(call("forever", str(begun)), pid=pid)
    await until(begun.exists)
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    lowest_free = os.dup(0)
    os.close(lowest_free)

    resource.setrlimit(resource.RLIMIT_NOFILE, (lowest_free, limits[1]))
    try:
        os.kill(pid, signal.SIGKILL)
        async with asyncio.timeout(20):
            outcome = await running
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, limits)

    assert isinstance(outcome, Crashed)
    async with asyncio.timeout(20):
        assert await caller.value("add", 1, 2) == 3


@pytest.mark.faults
async def test_no_child_survives_a_killed_worker(bootstrap: list[str], tmp_path: Path) -> None:
    program = (
        "import asyncio, sys\n"
        "from horsies.executors.base import Call\n"
        "from horsies.executors.processes import ProcessExecutor\n"
        "async def main():\n"
        "    executor = ProcessExecutor(2, bootstrap=sys.argv[2:])\n"
        "    await executor.start()\n"
        "    call = Call('t', 'stubborn', 1, '[\"' + sys.argv[1] + '\"]')\n"
        "    executor.submit(call, lambda call, outcome: None)\n"
        "    await asyncio.Event().wait()\n"
        "asyncio.run(main())\n"
    )
    begun = tmp_path / "begun"
    with subprocess.Popen([sys.executable, "-c", program, str(begun), *bootstrap]) as worker:
        await until(begun.exists)
        family = psutil.Process(worker.pid).children(recursive=True)
        assert len(family) == 3

        worker.kill()

        await until(lambda: not any(_is_running(process) for process in family))


def _is_running(process: psutil.Process) -> bool:
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False
