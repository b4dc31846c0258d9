"""Ends that meet: signals, answers and deaths at the same moment, many times over."""

import os
import random
import signal
from pathlib import Path

import pytest

from horsies.executors.base import Call, Crashed, Delivered, NotBegun, Outcome, Stopped, TimedOut
from support.executor_calls import StartProcesses, call, until


def _runs(path: Path) -> int:
    return path.read_text().count("ran") if path.exists() else 0


@pytest.mark.faults
async def test_no_call_is_lost_or_run_twice_while_children_are_killed(
    start_processes: StartProcesses, tmp_path: Path
) -> None:
    _, executor = await start_processes(2)
    executor.depth = 5
    dice = random.Random(7)
    answered = 0

    def done(_call: Call, outcome: Outcome) -> None:
        nonlocal answered
        answered += 1
        outcomes[_call.task_id].append(outcome)
        if answered % 25 == 0 and executor.pids:
            os.kill(dice.choice(executor.pids), signal.SIGKILL)

    calls = [call("note_slowly", str(tmp_path / f"note-{n}"), 2) for n in range(400)]
    outcomes: dict[str, list[Outcome]] = {call.task_id: [] for call in calls}
    for one in calls:
        executor.submit(one, done)
    await until(lambda: answered >= len(calls), within=60)

    assert all(len(answers) == 1 for answers in outcomes.values())
    assert {type(answers[0]) for answers in outcomes.values()} == {Delivered, Crashed}
    for number, one in enumerate(calls):
        runs = _runs(tmp_path / f"note-{number}")
        assert runs == 1 if isinstance(outcomes[one.task_id][0], Delivered) else runs <= 1


@pytest.mark.faults
async def test_the_end_of_one_call_never_strikes_its_neighbour(
    start_processes: StartProcesses, tmp_path: Path
) -> None:
    """Half the calls are stopped or time out just as they end by themselves."""
    caller, executor = await start_processes(2)
    executor.depth = 4
    dice = random.Random(11)
    limited = [
        call("note_slowly", str(tmp_path / f"limited-{n}"), 8, timeout_ms=dice.choice([8, 9, 10]))
        for n in range(60)
    ]
    stopped = [call("note_slowly", str(tmp_path / f"stopped-{n}"), 4) for n in range(60)]
    plain = [call("note_slowly", str(tmp_path / f"plain-{n}"), 2) for n in range(120)]
    everything = limited + stopped + plain
    dice.shuffle(everything)

    futures = {one.task_id: caller.submit(one) for one in everything}
    for one in stopped:
        await until(lambda one=one: executor.begun_at(one.task_id) or futures[one.task_id].done())
        executor.stop(one.task_id)
    ends = {task_id: await future for task_id, future in futures.items()}

    assert all(len(answers) == 1 for answers in caller.outcomes.values())
    assert {type(ends[one.task_id]) for one in plain} == {Delivered}
    assert {type(ends[one.task_id]) for one in limited} <= {Delivered, TimedOut}
    assert {type(ends[one.task_id]) for one in stopped} <= {Delivered, Stopped, NotBegun}
    assert all(_runs(tmp_path / f"plain-{number}") == 1 for number in range(120))


@pytest.mark.faults
async def test_calls_taken_back_as_they_begin_run_exactly_once(
    start_processes: StartProcesses, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With every child taken for slow after a millisecond, queued calls are moved all the time."""
    monkeypatch.setattr("horsies.executors.processes._SLOW_SECONDS", 0.001)
    caller, executor = await start_processes(2)
    executor.depth = 8
    dice = random.Random(13)
    calls = [
        call("note_slowly", str(tmp_path / f"n-{n}"), dice.choice([0, 1, 2])) for n in range(600)
    ]

    futures = [caller.submit(one) for one in calls]
    ends = [await future for future in futures]

    assert {type(end) for end in ends} == {Delivered}
    assert [_runs(tmp_path / f"n-{number}") for number in range(600)] == [1] * 600


@pytest.mark.faults
async def test_a_call_stopped_as_it_begins_has_either_run_or_not_begun(
    start_processes: StartProcesses, tmp_path: Path
) -> None:
    caller, executor = await start_processes(2)
    executor.depth = 8
    calls = [call("note", str(tmp_path / f"n-{number}")) for number in range(300)]

    futures = []
    for number, one in enumerate(calls):
        futures.append(caller.submit(one))
        if number % 3 == 0:
            await futures[max(0, number - 4)]
        executor.stop(calls[max(0, number - 2)].task_id)
    ends = [await future for future in futures]

    assert {type(end) for end in ends} <= {Delivered, NotBegun, Stopped}
    for number, end in enumerate(ends):
        runs = _runs(tmp_path / f"n-{number}")
        assert {Delivered: runs == 1, NotBegun: runs == 0, Stopped: runs <= 1}[type(end)]
