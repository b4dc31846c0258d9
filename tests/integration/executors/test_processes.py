"""Plain functions in children: calls, limits on children, start and end of the pool."""

import os
from pathlib import Path

import pytest

from horsies.executors import processes
from horsies.executors.base import Delivered, ExecutorStartError, NotBegun, Stopped
from horsies.executors.processes import ProcessExecutor
from support.executor_calls import StartProcesses, call, error_of, until, value_of


@pytest.mark.seed("S16", "S73")
async def test_a_function_runs_in_a_child_process(start_processes: StartProcesses) -> None:
    caller, executor = await start_processes()

    pid = await caller.value("pid")

    assert pid != os.getpid()
    assert pid in executor.pids
    assert await caller.value("environment", "HORSIES_CHILD_PROCESS") == "1"


@pytest.mark.seed("S17", "S72")
async def test_the_child_of_a_call_is_known_before_it_begins(
    start_processes: StartProcesses, tmp_path: Path
) -> None:
    caller, executor = await start_processes()
    first, second = executor.plan(2)
    assert first != second

    future = caller.submit(call("pid", task_id="p"), pid=second)

    assert executor.pid_of("p") == second
    assert (executor.name_of(second) or "").startswith("horsies-child-")
    assert value_of(await future) == second


@pytest.mark.seed("S80")
async def test_an_exception_keeps_its_traceback_and_the_child(
    start_processes: StartProcesses,
) -> None:
    caller, executor = await start_processes(1)
    pids = executor.pids

    outcomes = [await caller.run("fail"), await caller.run("exit_system")]

    assert isinstance(outcomes[0], Delivered)
    assert "Traceback" in outcomes[0].result
    assert "SystemExit: 3" in error_of(outcomes[1])
    assert await caller.value("pid") == pids[0]


async def test_a_coroutine_function_runs_on_a_loop_in_the_child(
    start_processes: StartProcesses, tmp_path: Path
) -> None:
    caller, executor = await start_processes(1, grace_seconds=5.0)
    tidied = tmp_path / "tidied"

    assert [await caller.value("async_add", 1, n) for n in (1, 2)] == [2, 3]
    assert await caller.value("async_soft", str(tmp_path / "a"), soft_timeout_ms=50) == "tidied up"
    future = caller.submit(call("async_forever", str(tmp_path / "b"), str(tidied), task_id="s"))
    await until((tmp_path / "b").exists)
    executor.stop("s")

    assert await future == Stopped()
    assert tidied.exists()


async def test_unknown_names_and_broken_arguments_are_errors_of_the_task(
    start_processes: StartProcesses,
) -> None:
    caller, _ = await start_processes(1)
    broken = call("add")
    broken.args = "{not json"

    unknown, unreadable = await caller.run("nobody"), await caller.submit(broken)

    assert isinstance(unknown, Delivered)
    assert unknown.error_code == "WORKER_RESOLUTION_ERROR"
    assert isinstance(unreadable, Delivered)
    assert unreadable.error_code == "WORKER_SERIALIZATION_ERROR"


async def test_two_thousand_calls_over_two_children_are_each_answered_once(
    start_processes: StartProcesses,
) -> None:
    caller, executor = await start_processes()
    executor.depth = 8

    futures = [caller.submit(call("add", number, 1)) for number in range(2000)]
    results = [value_of(await future) for future in futures]

    assert results == [number + 1 for number in range(2000)]
    assert all(len(outcomes) == 1 for outcomes in caller.outcomes.values())
    assert executor.free_slots == 2


async def test_calls_behind_a_long_one_are_taken_back_and_run_elsewhere(
    start_processes: StartProcesses, tmp_path: Path
) -> None:
    caller, executor = await start_processes(2)
    busy, other = executor.plan(2)
    begun, release = tmp_path / "begun", tmp_path / "release"
    long = caller.submit(call("hold", str(begun), str(release)), pid=busy)

    queued = [caller.submit(call("pid"), pid=busy) for _ in range(5)]

    assert [value_of(await future) for future in queued] == [other] * 5
    assert not long.done()
    release.touch()
    assert value_of(await long) == "released"
    assert await caller.value("add", 1, 1) == 2


async def test_fifty_megabytes_pass_both_ways_at_once_in_all_children(
    start_processes: StartProcesses,
) -> None:
    caller, _ = await start_processes()
    text = "horse & ünïcode " * 3_200_000

    futures = [caller.submit(call("echo", text)) for _ in range(2)]

    for future in futures:
        outcome = await future
        assert value_of(outcome) == text


async def test_a_child_is_replaced_after_its_number_of_tasks(
    start_processes: StartProcesses,
) -> None:
    caller, executor = await start_processes(2, max_tasks_per_child=3)
    executor.depth = 4

    futures = [caller.submit(call("pid")) for _ in range(30)]
    pids = [value_of(await future) for future in futures]

    assert max(pids.count(pid) for pid in pids) == 3
    assert len(set(pids)) == 10
    await until(lambda: executor.started_slots == 2)


async def test_a_child_is_replaced_when_it_has_grown_too_large(
    start_processes: StartProcesses, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(processes, "_MEMORY_CHECK_SECONDS", 3600)  # after the task, not during it
    caller, executor = await start_processes(1, max_memory_per_child_mb=200)

    small, same = await caller.value("grow", 1), await caller.value("pid")
    large, fresh = await caller.value("grow", 250), await caller.value("pid")

    assert small == same == large
    assert fresh != large
    await until(lambda: len(executor.pids) == 1)


async def test_the_start_hooks_run_once_in_every_child(
    start_processes: StartProcesses, tmp_path: Path
) -> None:
    caller, executor = await start_processes(2)
    assert (tmp_path / "hook_runs").read_text().count("ran") == 2

    await caller.run("leave", 1)
    await until(lambda: executor.started_slots == 2)

    assert (tmp_path / "hook_runs").read_text().count("ran") == 3


@pytest.mark.parametrize(
    ("flag", "message"),
    [("hook_fails", "the stable door is locked"), ("load_fails", "no such stable")],
)
async def test_what_fails_at_the_start_is_raised_with_its_traceback(
    bootstrap: list[str], tmp_path: Path, flag: str, message: str
) -> None:
    (tmp_path / flag).touch()

    with pytest.raises(ExecutorStartError, match=message) as raised:
        await ProcessExecutor(2, bootstrap=bootstrap).start()

    assert "Traceback" in str(raised.value)


async def test_a_program_that_ends_early_is_a_start_error() -> None:
    with pytest.raises(ExecutorStartError, match="exit code 3"):
        await ProcessExecutor(1, bootstrap=["/bin/sh", "-c", "exit 3"]).start()


async def test_a_hook_that_fails_later_is_tried_again(
    start_processes: StartProcesses, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caller, executor = await start_processes(1)
    (tmp_path / "hook_fails").touch()

    await caller.run("leave", 1)
    future = caller.submit(call("add", 1, 2))
    await until(lambda: "the stable door is locked" in caplog.text)
    (tmp_path / "hook_fails").unlink()

    assert value_of(await future) == 3
    assert executor.started_slots == 1


async def test_close_awaits_what_runs_and_gives_back_what_has_not_begun(
    start_processes: StartProcesses, tmp_path: Path
) -> None:
    caller, executor = await start_processes(1)
    begun, release = tmp_path / "begun", tmp_path / "release"
    running = caller.submit(call("hold", str(begun), str(release)))
    waiting = caller.submit(call("note", str(tmp_path / "noted")))
    await until(begun.exists)
    release.touch()

    await executor.close(kill=False)

    assert isinstance(running.result(), Delivered)
    assert waiting.result() == NotBegun()
    assert executor.pids == ()


async def test_close_with_kill_stops_what_runs(
    start_processes: StartProcesses, tmp_path: Path
) -> None:
    caller, executor = await start_processes(2)
    begun = tmp_path / "begun"
    running = caller.submit(call("stubborn", str(begun)))
    await until(begun.exists)

    await executor.close(kill=True)

    assert running.result() == Stopped()
