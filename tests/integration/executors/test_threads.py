"""Blocking functions in threads of the worker."""

import asyncio
import logging
import os
from pathlib import Path

import pytest

from horsies.executors.base import Crashed, Delivered, NotBegun, Stopped, TimedOut
from support.executor_calls import Caller, call, log_of, until, value_of


@pytest.mark.seed("S59", "S60")
async def test_a_blocking_function_runs_in_the_worker_process(threads: Caller) -> None:
    assert await threads.value("pid") == os.getpid()


@pytest.mark.seed("S62")
@pytest.mark.parametrize("name", ["fail", "exit_system"])
async def test_an_exception_is_the_error_of_that_task_alone(threads: Caller, name: str) -> None:
    outcome = await threads.run(name)

    assert isinstance(outcome, Delivered)
    assert outcome.error_code == "UNHANDLED_EXCEPTION"
    assert await threads.value("add", 1, 1) == 2


async def test_keyboard_interrupt_ends_its_call_as_a_crash_and_nothing_else(
    threads: Caller,
) -> None:
    outcomes = [await threads.run("interrupt") for _ in range(3)]

    assert all(isinstance(outcome, Crashed) for outcome in outcomes)
    assert await threads.value("add", 1, 2) == 3


async def test_many_calls_over_two_threads_are_each_answered_once(threads: Caller) -> None:
    futures = [threads.submit(call("add", number, 1)) for number in range(500)]

    results = [value_of(await future) for future in futures]

    assert results == [number + 1 for number in range(500)]
    assert all(len(outcomes) == 1 for outcomes in threads.outcomes.values())
    assert threads.executor.free_slots == 2


async def test_a_timeout_is_reported_at_the_limit_and_interrupts_the_thread(
    threads: Caller, tmp_path: Path
) -> None:
    tidied = tmp_path / "tidied"

    outcome = await threads.run("forever", str(tmp_path / "begun"), str(tidied), timeout_ms=50)

    assert outcome == TimedOut(50)
    await until(lambda: tidied.exists() and threads.executor.free_slots == 2)


async def test_a_slot_is_free_only_when_the_thread_returns_and_its_late_result_is_dropped(
    threads: Caller, tmp_path: Path
) -> None:
    future = threads.submit(call("swallow", str(tmp_path / "begun"), timeout_ms=50, task_id="s"))

    assert await future == TimedOut(50)
    await until(lambda: threads.executor.free_slots == 2)
    assert threads.outcomes["s"] == [TimedOut(50)]


async def test_an_interruption_never_strikes_the_next_call(threads: Caller, tmp_path: Path) -> None:
    for number in range(40):
        await threads.run("swallow", str(tmp_path / "begun"), timeout_ms=5)
        assert await threads.value("add", number, 1) == number + 1


async def test_stop_interrupts_a_call(threads: Caller, tmp_path: Path) -> None:
    begun, tidied = tmp_path / "begun", tmp_path / "tidied"
    future = threads.submit(call("forever", str(begun), str(tidied), task_id="s"))
    await until(begun.exists)

    assert threads.executor.stop("s")

    assert await future == Stopped()
    assert tidied.exists()


async def test_a_waiting_call_that_is_stopped_has_not_begun(
    threads: Caller, tmp_path: Path
) -> None:
    begun, release = tmp_path / "begun", tmp_path / "release"
    running = [threads.submit(call("hold", str(begun), str(release))) for _ in range(2)]
    waiting = threads.submit(call("note", str(tmp_path / "noted"), task_id="w"))

    assert threads.executor.stop("w")
    release.touch()

    assert await waiting == NotBegun()
    assert [type(await future) for future in running] == [Delivered, Delivered]
    assert not (tmp_path / "noted").exists()


async def test_a_waiting_call_can_be_taken_back_and_a_running_one_cannot(
    threads: Caller, tmp_path: Path
) -> None:
    begun, release = tmp_path / "begun", tmp_path / "release"
    running = [
        threads.submit(call("hold", str(begun), str(release), task_id=f"r{number}"))
        for number in range(2)
    ]
    await until(lambda: begun.exists() and threads.executor.begun_at("r1") is not None)
    waiting = threads.submit(call("note", str(tmp_path / "noted"), task_id="w"))

    assert [threads.executor.withdraw(one) for one in ("r0", "w", "w")] == [False, True, False]
    again = threads.submit(call("add", 1, 2, task_id="w"))
    release.touch()

    assert await waiting == NotBegun()
    assert [type(await future) for future in (*running, again)] == [Delivered] * 3
    assert not (tmp_path / "noted").exists()
    await until(lambda: threads.executor.free_slots == 2)


async def test_calls_taken_back_as_a_thread_takes_them_have_one_end(threads: Caller) -> None:
    ends: set[type] = set()
    for number in range(300):
        future = threads.submit(call("add", number, 1, task_id=f"s{number}"))
        for _ in range(number % 30):
            await asyncio.sleep(0)
        threads.executor.withdraw(f"s{number}")
        ends.add(type(await future))

    await until(lambda: threads.executor.free_slots == 2)
    assert all(len(outcomes) == 1 for outcomes in threads.outcomes.values())
    assert ends <= {Delivered, NotBegun}


async def test_stop_while_a_thread_takes_the_call_has_one_end(threads: Caller) -> None:
    ends: set[type] = set()
    for number in range(300):
        future = threads.submit(call("add", number, 1, task_id=f"s{number}"))
        for _ in range(number % 30):
            await asyncio.sleep(0)
        threads.executor.stop(f"s{number}")
        ends.add(type(await future))

    await until(lambda: threads.executor.free_slots == 2)
    assert all(len(outcomes) == 1 for outcomes in threads.outcomes.values())
    assert ends <= {Delivered, NotBegun, Stopped}
    assert await threads.value("add", 1, 2) == 3


async def test_close_gives_back_what_waits_and_awaits_what_runs(
    threads: Caller, tmp_path: Path
) -> None:
    begun, release = tmp_path / "begun", tmp_path / "release"
    futures = [threads.submit(call("hold", str(begun), str(release))) for _ in range(4)]
    await until(lambda: begun.exists() and len(begun.read_text().splitlines()) == 2)

    closing = asyncio.create_task(threads.executor.close(kill=False))
    await asyncio.gather(*futures[2:])  # given back before a thread is free to take them
    release.touch()
    await closing

    kinds = [type(future.result()) for future in futures]
    assert kinds == [Delivered, Delivered, NotBegun, NotBegun]


async def test_the_soft_limit_is_raised_in_the_thread(threads: Caller, tmp_path: Path) -> None:
    begun = str(tmp_path / "begun")

    assert await threads.value("soft", begun, soft_timeout_ms=50) == "tidied up"


async def test_the_soft_limit_counts_from_the_function_in_a_thread(
    threads: Caller, tmp_path: Path
) -> None:
    begun = str(tmp_path / "begun")

    assert await threads.value("read_slowly", begun, soft_timeout_ms=50) == "tidied up"


@pytest.mark.seed("S78")
async def test_log_records_are_kept_with_the_call_that_made_them(
    threads: Caller, monkeypatch: pytest.MonkeyPatch
) -> None:
    # pytest would keep the record for its report, which cannot carry a lone surrogate either.
    root = logging.getLogger()
    ours = [handler for handler in root.handlers if "horsies" in type(handler).__module__]
    monkeypatch.setattr(root, "handlers", ours)

    assert (
        log_of(await threads.run("log_what_cannot_be_stored"))
        == "WARNING stable: one\ufffd ? line\n"
    )
    assert log_of(await threads.run("no_op")) is None
