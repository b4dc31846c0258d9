"""Tasks that fork: only the process that was given a call answers it, and no copy goes on."""

import os
from pathlib import Path

import pytest

from horsies.executors.base import Crashed
from horsies.executors.frames import pack
from support.executor_calls import Caller, StartProcesses, call, is_running, until, value_of

pytestmark = pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning")

LEAVING = pytest.mark.parametrize("how", ["value", "exception", "exit", "interrupted"])


async def _release_copy(copy: Path, gate: Path) -> None:
    """Let the copy leave user code, and see it end there."""
    pid = int(copy.read_text())
    gate.touch()
    await until(lambda: not is_running(pid))
    assert not copy.with_name("copy.exit_hook").exists()


@LEAVING
@pytest.mark.parametrize("name", ["fork_and_leave", "async_fork_and_leave"])
async def test_a_copy_of_a_child_answers_nobody(
    start_processes: StartProcesses, tmp_path: Path, name: str, how: str
) -> None:
    caller, executor = await start_processes(1)
    pids, copy, gate = executor.pids, tmp_path / "copy", tmp_path / "gate"

    assert await caller.value(name, how, str(copy), str(gate)) == "original"
    await until(lambda: copy.exists() and copy.read_text())
    await _release_copy(copy, gate)

    later = [caller.submit(call("echo", f"{number}")) for number in range(8)]
    assert [value_of(await future) for future in later] == [f"{number}" for number in range(8)]
    assert executor.pids == pids


@LEAVING
async def test_a_copy_of_a_worker_thread_ends_with_the_function(
    threads: Caller, tmp_path: Path, how: str
) -> None:
    copy, gate = tmp_path / "copy", tmp_path / "gate"

    assert await threads.value("fork_and_leave", how, str(copy), str(gate)) == "original"
    await until(lambda: copy.exists() and copy.read_text())

    await _release_copy(copy, gate)
    assert await threads.value("add", 1, 2) == 3


@LEAVING
async def test_a_copy_of_a_coroutine_ends_with_the_function(
    in_loop: Caller, tmp_path: Path, how: str
) -> None:
    copy, gate = tmp_path / "copy", tmp_path / "gate"

    assert await in_loop.value("async_fork_and_leave", how, str(copy), str(gate)) == "original"
    await until(lambda: copy.exists() and copy.read_text())

    await _release_copy(copy, gate)
    assert await in_loop.value("async_add", 1, 2) == 3


async def test_a_copy_of_the_worker_never_comes_back_to_its_event_loop(
    in_loop: Caller, tmp_path: Path
) -> None:
    copy, gate, pids = tmp_path / "copy", tmp_path / "gate", tmp_path / "pids"
    other = in_loop.submit(call("async_note_pids", str(pids), str(gate)))

    assert await in_loop.value("async_fork_and_wait", str(copy), str(gate)) == "original"
    await until(lambda: copy.exists() and copy.read_text())
    await _release_copy(copy, gate)

    assert value_of(await other) == "released"
    assert set(pids.read_text().split()) == {str(os.getpid())}
    assert not copy.with_name("copy.went_on").exists()


@pytest.mark.parametrize("kind", ["child", "thread", "coroutine"])
async def test_multiprocessing_and_subprocess_work_in_tasks(
    start_processes: StartProcesses, threads: Caller, in_loop: Caller, kind: str
) -> None:
    caller = {"thread": threads, "coroutine": in_loop}.get(kind) or (await start_processes(1))[0]
    name = "async_use_other_processes" if kind == "coroutine" else "use_other_processes"

    assert await caller.value(name) == ["32", "5", "neigh"]


async def test_sigterm_ends_a_process_that_a_task_has_started(
    start_processes: StartProcesses, tmp_path: Path
) -> None:
    caller, _ = await start_processes(1)

    assert await caller.value("terminate_another_process", str(tmp_path / "begun")) == -15


@pytest.mark.parametrize(
    "frame",
    [
        pack("answer", 1, 1, False, "forged", True, None, None, 0.0, None, False),
        pack("answer", "several", "fields", "missing"),
        pack("ready", 1),
        b"\x00\x00\x00\x02{]",
        b"no frame at all",
    ],
    ids=["forged answer", "broken answer", "second start", "broken JSON", "plain text"],
)
async def test_a_frame_that_is_not_the_childs_ends_that_attempt_alone(
    start_processes: StartProcesses, tmp_path: Path, frame: bytes
) -> None:
    caller, executor = await start_processes(2)
    begun, release = tmp_path / "begun", tmp_path / "release"
    sibling = caller.submit(call("hold", str(begun), str(release)))
    await until(begun.exists)
    (pid,) = executor.plan(1)
    scribbler = caller.submit(call("scribble", frame.decode("latin-1")), pid=pid)
    queued = [caller.submit(call("echo", f"{number}"), pid=pid) for number in range(4)]

    outcome = await scribbler

    assert isinstance(outcome, Crashed)
    assert "another process wrote to its connection" in outcome.message
    release.touch()
    assert value_of(await sibling) == "released"
    assert [value_of(await future) for future in queued] == ["0", "1", "2", "3"]
