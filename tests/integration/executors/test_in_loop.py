"""Coroutines on the worker's loop."""

import sys
from pathlib import Path

import pytest

from horsies.executors.base import Crashed, Delivered, NotBegun, Stopped, TimedOut
from support.executor_calls import Caller, call, error_of, until


@pytest.mark.seed("S59", "S60")
async def test_a_coroutine_runs_in_the_worker_and_its_value_comes_back(in_loop: Caller) -> None:
    assert await in_loop.value("async_add", 2, 3) == 5


@pytest.mark.seed("S62")
@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("async_fail", "LookupError: no horse here"),
        ("async_exit", "SystemExit: 3"),
        ("async_cancel_itself", "CancelledError"),
    ],
)
async def test_whatever_user_code_raises_is_the_error_of_that_task_alone(
    in_loop: Caller, name: str, message: str
) -> None:
    outcome = await in_loop.run(name)

    assert isinstance(outcome, Delivered)
    assert (outcome.is_ok, outcome.error_code) == (False, "UNHANDLED_EXCEPTION")
    assert message in (outcome.error_message or "")
    assert await in_loop.value("async_add", 1, 1) == 2


async def test_keyboard_interrupt_ends_its_call_as_a_crash_and_nothing_else(
    in_loop: Caller,
) -> None:
    outcome = await in_loop.run("async_interrupt")

    assert isinstance(outcome, Crashed)
    assert "KeyboardInterrupt" in outcome.message
    assert await in_loop.value("async_add", 1, 2) == 3


async def test_an_unknown_name_is_a_resolution_error(in_loop: Caller) -> None:
    outcome = await in_loop.run("nobody")

    assert isinstance(outcome, Delivered)
    assert outcome.error_code == "WORKER_RESOLUTION_ERROR"
    assert '"__builtin_task_code__":"WORKER_RESOLUTION_ERROR"' in outcome.result


async def test_calls_beyond_the_concurrency_wait_their_turn(
    in_loop: Caller, tmp_path: Path
) -> None:
    begun, release = tmp_path / "begun", tmp_path / "release"
    futures = [
        in_loop.submit(call("async_hold", str(begun), str(release), task_id=f"hold-{number}"))
        for number in range(4)
    ]
    await until(lambda: begun.exists() and begun.read_text().count("ran") == 3)

    assert in_loop.executor.free_slots == 0
    assert in_loop.executor.begun_at("hold-2") is not None
    assert in_loop.executor.begun_at("hold-3") is None

    release.touch()
    outcomes = [await future for future in futures]
    assert all(isinstance(outcome, Delivered) for outcome in outcomes)
    assert in_loop.executor.free_slots == 3


@pytest.mark.parametrize("name", ["async_forever", "async_swallow"])
async def test_at_its_limit_a_call_is_cancelled_and_timed_out_whatever_it_returns(
    in_loop: Caller, tmp_path: Path, name: str
) -> None:
    outcome = await in_loop.run(name, str(tmp_path / "begun"), timeout_ms=50)

    assert outcome == TimedOut(50)


async def test_a_call_that_ignores_cancellation_is_abandoned_after_the_grace(
    in_loop: Caller, tmp_path: Path
) -> None:
    release = tmp_path / "release"

    future = in_loop.submit(
        call("async_stubborn", str(tmp_path / "begun"), str(release), timeout_ms=50, task_id="s")
    )

    assert await future == TimedOut(50)
    assert in_loop.executor.free_slots == 3
    release.touch()
    assert await in_loop.value("async_add", 1, 1) == 2
    assert in_loop.outcomes["s"] == [TimedOut(50)]


async def test_stop_cancels_a_call_and_lets_it_tidy_up(in_loop: Caller, tmp_path: Path) -> None:
    begun, tidied = tmp_path / "begun", tmp_path / "tidied"
    future = in_loop.submit(call("async_forever", str(begun), str(tidied), task_id="s"))
    await until(begun.exists)

    assert in_loop.executor.is_alive("s")
    assert in_loop.executor.stop("s")

    assert await future == Stopped()
    assert tidied.exists()
    assert not in_loop.executor.stop("s")


@pytest.mark.skipif(sys.version_info >= (3, 12), reason="there every call begins at once")
async def test_a_call_stopped_before_the_loop_came_to_it_has_not_begun(
    in_loop: Caller, tmp_path: Path
) -> None:
    begun = tmp_path / "begun"
    future = in_loop.submit(call("async_forever", str(begun), task_id="s"))

    in_loop.executor.stop("s")

    assert await future == NotBegun()
    assert not begun.exists()


@pytest.mark.skipif(sys.version_info < (3, 12), reason="begins in the loop's next turn")
async def test_a_call_begins_at_once(in_loop: Caller) -> None:
    assert in_loop.submit(call("async_no_op", task_id="s")).done(), "without a turn of the loop"


async def test_a_long_row_of_waiting_calls_that_never_wait_themselves_ends(
    in_loop: Caller, tmp_path: Path
) -> None:
    """Each that ends lets the next begin: none of them on top of the other."""
    begun, release = tmp_path / "begun", tmp_path / "release"
    for number in range(4):
        in_loop.submit(call("async_hold", str(begun), str(release), task_id=f"hold-{number}"))
    waiting = [in_loop.submit(call("async_no_op", task_id=f"row-{n}")) for n in range(3_000)]

    release.touch()

    assert {(await one).is_ok for one in waiting} == {True}


async def test_the_soft_limit_is_raised_where_the_coroutine_waits(
    in_loop: Caller, tmp_path: Path
) -> None:
    begun = str(tmp_path / "begun")

    assert await in_loop.value("async_soft", begun, soft_timeout_ms=50) == "tidied up"
    outcome = await in_loop.run("async_forever", begun, soft_timeout_ms=50)
    assert "SoftTimeout: soft time limit reached" in error_of(outcome)
    assert isinstance(outcome, Delivered)
    assert "in async_forever" in outcome.result, "the traceback shows where it waited"


async def test_the_soft_limit_ends_what_a_task_group_has_started(
    in_loop: Caller, tmp_path: Path
) -> None:
    begun, tidied = tmp_path / "begun", tmp_path / "tidied"

    value = await in_loop.value("async_soft_group", str(begun), str(tidied), soft_timeout_ms=50)

    assert value == "tidied up"
    assert tidied.exists()


async def test_the_hard_limit_follows_an_ignored_soft_one(in_loop: Caller, tmp_path: Path) -> None:
    begun, release = str(tmp_path / "begun"), tmp_path / "release"

    outcome = await in_loop.run(
        "async_stubborn", begun, str(release), soft_timeout_ms=20, timeout_ms=60
    )

    assert outcome == TimedOut(60)
    release.touch()


@pytest.mark.seed("S78")
async def test_log_records_are_kept_with_the_call_that_made_them(in_loop: Caller) -> None:
    one = in_loop.submit(call("async_log", "first"))
    other = in_loop.submit(call("async_log", "second"))

    outcomes = [await one, await other]

    assert [outcome.log for outcome in outcomes if isinstance(outcome, Delivered)] == [
        "WARNING stable: first\n",
        "WARNING stable: second\n",
    ]


async def test_close_gives_back_what_waits_and_awaits_what_runs(
    in_loop: Caller, tmp_path: Path
) -> None:
    begun, release = tmp_path / "begun", tmp_path / "release"
    futures = [in_loop.submit(call("async_hold", str(begun), str(release))) for _ in range(4)]
    await until(begun.exists)
    release.touch()

    await in_loop.executor.close(kill=False)

    kinds = [type(future.result()) for future in futures]
    assert kinds == [Delivered, Delivered, Delivered, NotBegun]
