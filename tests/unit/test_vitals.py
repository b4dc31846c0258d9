"""Live and ready are told apart: who is blocked for long needs a restart, others just wait."""

import asyncio
from typing import Any, cast

import pytest

from horsies.config import AppConfig, PostgresConfig
from horsies.worker.identity import WorkerIdentity
from horsies.worker.loop_watch import LoopWatch
from horsies.worker.settings import WorkerConfig, WorkerContext
from horsies.worker.vitals import Signs, Vitals

CONFIG = AppConfig(broker=PostgresConfig(database_url="postgresql://nowhere/none"))
BLOCKED = "the event loop has been blocked for {} s"


class BlockedLoop(LoopWatch):
    """A loop that has been blocked for so long, as the fake clock has it."""

    def __init__(self, seconds: float) -> None:
        super().__init__(lambda _: None)
        self.seconds = seconds

    def blocked_for(self) -> float:
        return self.seconds


def vitals(seconds: float, *, has_begun: bool = True, is_stopping: bool = False) -> Vitals:
    begun, stopping = asyncio.Event(), asyncio.Event()
    if has_begun:
        begun.set()
    if is_stopping:
        stopping.set()
    context = WorkerContext(CONFIG, WorkerConfig(), WorkerIdentity("w", "host-a", 1))
    nothing = cast("Any", None)  # metrics alone look at what it holds
    return Vitals(
        context, BlockedLoop(seconds), nothing, [], Signs((), (begun,), stopping), metrics=None
    )


@pytest.mark.parametrize(
    ("seconds", "is_live", "problems"),
    [(0.0, True, []), (4.9, True, []), (5.0, True, [BLOCKED.format(5)]),
     (299.0, True, [BLOCKED.format(299)]), (300.0, False, [BLOCKED.format(300)])],
)  # fmt: skip
def test_a_blocked_loop_is_first_not_ready_and_then_not_live(
    seconds: float, is_live: bool, problems: list[str]
) -> None:
    found = vitals(seconds)

    assert (not found.deadly_problems(), found.problems()) == (is_live, problems)


def test_a_worker_that_starts_or_stops_lives_but_is_not_ready() -> None:
    starting, stopping = vitals(0.0, has_begun=False), vitals(0.0, is_stopping=True)

    assert starting.problems() == ["it is starting"]
    assert stopping.problems() == ["it is stopping"]
    assert starting.deadly_problems() == stopping.deadly_problems() == []
