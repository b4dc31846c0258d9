"""What a task in a child writes is kept with its attempt."""

import os
import signal
from pathlib import Path

import pytest

from horsies.executors.base import CaptureSettings, Crashed, Delivered, TimedOut
from support.executor_calls import StartProcesses, call, log_of, until


@pytest.mark.seed("S78")
async def test_stdout_stderr_and_log_records_are_kept_in_order_per_call(
    start_processes: StartProcesses,
) -> None:
    caller, _ = await start_processes(1)

    first = await caller.run("write", "to out", "to err", "to log")
    silent = await caller.run("no_op")
    second = await caller.run("write", "a", "b", "c\x00d")

    assert isinstance(first, Delivered)
    assert first.log == "to out\nto err\nINFO stable: to log\n"
    assert log_of(silent) is None
    assert log_of(second) == "a\nb\nINFO stable: c\\u0000d\n"


async def test_only_the_tail_is_kept(start_processes: StartProcesses) -> None:
    caller, _ = await start_processes(1, capture=CaptureSettings(max_bytes=28))

    outcome = await caller.run("write_much", 20_000)

    assert isinstance(outcome, Delivered)
    assert outcome.log == "line 00019998\nline 00019999\n"
    assert outcome.log_truncated


async def test_without_capture_nothing_is_kept(start_processes: StartProcesses) -> None:
    caller, _ = await start_processes(1, capture=CaptureSettings(enabled=False))

    outcome = await caller.run("write", "to the worker's own output", "", "")

    assert log_of(outcome) is None


async def test_the_output_of_a_killed_child_is_kept(
    start_processes: StartProcesses, tmp_path: Path
) -> None:
    caller, executor = await start_processes(1)
    begun = tmp_path / "begun"
    future = caller.submit(call("write_and_hold", "half a line, ", str(begun)))
    await until(begun.exists)

    os.kill(executor.pids[0], signal.SIGKILL)

    outcome = await future
    assert isinstance(outcome, Crashed)
    assert outcome.log == "half a line, straight to the descriptor\n"


async def test_the_output_of_a_timed_out_call_is_kept(
    start_processes: StartProcesses, tmp_path: Path
) -> None:
    caller, _ = await start_processes(1)

    outcome = await caller.run("write_and_hold", "", str(tmp_path / "begun"), timeout_ms=100)

    assert outcome == TimedOut(100, "straight to the descriptor\n", log_truncated=False)


@pytest.mark.parametrize("to", [None, os.devnull])
async def test_a_task_that_closes_or_redirects_its_output_takes_none_from_the_next(
    start_processes: StartProcesses, to: str | None
) -> None:
    caller, _ = await start_processes(1)
    await caller.run("lose_standard_output", to)

    after = await caller.run("write", "to out", "to err", "to log")

    assert log_of(after) == "to out\nto err\nINFO stable: to log\n"
