"""User code that breaks what it shares with us: it costs its own attempt, nothing more."""

import asyncio
import os
import signal
import threading
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from horsies.executors.base import Crashed, Delivered, Outcome, Stopped, TimedOut
from horsies.executors.threads import ThreadExecutor
from support.executor_calls import Caller, StartProcesses, call, error_of, until, value_of
from support.executor_tasks import TestDefinitions

ROOT = Path.cwd()


@pytest.fixture
async def thread() -> AsyncIterator[Caller]:
    executor = ThreadExecutor(TestDefinitions(), 1, grace_seconds=0.2)
    await executor.start()
    yield Caller(executor)
    await executor.close(kill=True)


HOSTILE = pytest.mark.parametrize(
    ("method", "error"),
    [
        (method, error)
        for method in ("__str__", "__repr__", "__class__")
        for error in ("SystemExit", "KeyboardInterrupt", "LookupError")
    ],
)


@HOSTILE
@pytest.mark.parametrize("name", ["raise_hostile", "return_hostile"])
async def test_a_hostile_object_is_an_error_in_a_thread(
    thread: Caller, name: str, method: str, error: str
) -> None:
    outcome = await thread.run(name, method, error)

    assert not getattr(outcome, "is_ok", True)
    assert await thread.value("add", 1, 2) == 3


@HOSTILE
async def test_a_hostile_exception_is_an_error_of_a_coroutine(
    in_loop: Caller, method: str, error: str
) -> None:
    outcomes = [await in_loop.run("async_raise_hostile", method, error) for _ in range(4)]

    assert all("_HostileError" in error_of(outcome) for outcome in outcomes)
    assert await in_loop.value("async_add", 1, 2) == 3


@HOSTILE
async def test_a_hostile_exception_is_an_error_in_a_child(
    start_processes: StartProcesses, method: str, error: str
) -> None:
    caller, executor = await start_processes(1)
    pids = executor.pids

    assert "_HostileError" in error_of(await caller.run("raise_hostile", method, error))
    assert await caller.value("add", 1, 2) == 3
    assert executor.pids == pids


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("async_generator_exit", Delivered),
        ("async_cancel_current_and_return", Delivered),
        ("async_cancel_current_and_wait", Delivered),
        ("async_cancel_all", Delivered),
        ("async_set_tracing", Delivered),
    ],
)
async def test_a_coroutine_that_harms_its_loop_harms_itself_alone(
    in_loop: Caller, tmp_path: Path, name: str, kind: type[Outcome]
) -> None:
    begun, release = tmp_path / "begun", tmp_path / "release"
    sibling = in_loop.submit(call("async_hold", str(begun), str(release)))
    bystander = asyncio.create_task(asyncio.Event().wait())
    await until(begun.exists)

    outcomes = [await in_loop.run(name) for _ in range(4)]

    assert [type(outcome) for outcome in outcomes] == [kind] * 4
    assert await in_loop.value("async_get_tracing") == [False, False]
    release.touch()
    assert value_of(await sibling) == "released"
    assert not bystander.done()
    bystander.cancel()


async def test_no_coroutine_inherits_the_context_of_the_one_before(in_loop: Caller) -> None:
    setting = [in_loop.submit(call("async_set_context", "mine")) for _ in range(3)]
    reading = [in_loop.submit(call("async_get_context")) for _ in range(6)]

    assert all([isinstance(await future, Delivered) for future in setting])
    assert [value_of(await future) for future in reading] == [None] * 6


@pytest.mark.parametrize("name", ["set_tracing", "set_deadly_tracing", "raise_in_a_thread"])
async def test_what_a_task_sets_in_its_thread_is_gone_after_it(
    thread: Caller, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setattr(threading, "excepthook", threading.excepthook)  # back at the test's end

    outcome = await thread.run(name)

    assert isinstance(outcome, Delivered | Crashed)
    assert await thread.value("get_tracing") == [False, False]


async def test_a_trace_function_does_not_keep_a_thread_from_being_interrupted(
    thread: Caller, tmp_path: Path
) -> None:
    begun, tidied = tmp_path / "begun", tmp_path / "tidied"
    future = thread.submit(call("set_tracing_and_hold", str(begun), str(tidied), task_id="t"))
    await until(lambda: begun.exists() and begun.read_text())

    thread.executor.stop("t")

    assert await future == Stopped()
    assert await thread.value("get_tracing") == [False, False]
    assert tidied.exists()


@pytest.mark.parametrize(
    ("name", "args"),
    [
        ("set_tracing", ()),
        ("set_deadly_tracing", ()),
        ("change_signals", ()),
        ("set_alarm", ()),
        ("change_process", ()),
        ("raise_in_a_thread", ()),
        ("replace_streams", ("none",)),
        ("replace_streams", ("closed",)),
        ("close_files", (3,)),
        ("close_files", (0,)),
        ("async_generator_exit", ()),
        ("async_stop_loop", ()),
        ("async_cancel_current_and_return", ()),
        ("async_cancel_current_and_wait", ()),
        ("async_cancel_all", ()),
    ],
)
async def test_the_task_after_it_in_the_same_child_runs_normally(
    start_processes: StartProcesses, tmp_path: Path, name: str, args: tuple[Any, ...]
) -> None:
    caller, executor = await start_processes(1)
    tidied = tmp_path / "tidied"

    outcome = await caller.run(name, *args)

    assert isinstance(outcome, Delivered | Crashed)
    assert await caller.value("outlast_alarm") == "alive"
    assert await caller.value("get_tracing") == [False, False]
    assert await caller.value("async_add", 1, 2) == 3
    written = await caller.run("write", "out", "err", "log")
    assert isinstance(written, Delivered)
    assert (written.is_ok, (written.log or "")[:8]) == (True, "out\nerr\n")
    limited = await caller.run("forever", str(tmp_path / "begun"), str(tidied), timeout_ms=50)
    assert isinstance(limited, TimedOut)
    assert tidied.exists()
    await until(lambda: executor.started_slots == 1)


async def test_a_fork_server_restarts_where_the_worker_was_started(
    start_processes: StartProcesses, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("HORSIES_TEST_MARK", "kept")
    caller, executor = await start_processes(1)
    monkeypatch.delenv("HORSIES_TEST_MARK")
    monkeypatch.chdir(tmp_path)
    assert executor.fork_server_pid is not None

    os.kill(executor.fork_server_pid, signal.SIGKILL)
    await until(lambda: executor.started_slots == 0)

    assert await caller.value("environment", "HORSIES_TEST_MARK") == "kept"
    assert await caller.value("directory") == str(ROOT)
