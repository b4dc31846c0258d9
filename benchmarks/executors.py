"""What a call costs in each executor alone: no worker, and the database is never asked."""

import asyncio
import os
import sys
import time
from itertools import count

from benchmarks.ours import load_app
from benchmarks.stage import ROOT
from horsies.executors.base import Call, Executor, Outcome
from horsies.executors.in_loop import InLoopExecutor
from horsies.executors.processes import ProcessExecutor
from horsies.executors.threads import ThreadExecutor
from horsies.worker.child_main import AppDefinitions

_NOWHERE = "postgresql://nobody@localhost/nothing"


def costs_us(calls: int) -> dict[str, float]:
    """Wall-clock microseconds per no-op call, with many under way and one by one."""
    definitions = AppDefinitions(load_app(_NOWHERE).app, None)
    os.environ["PYTHONPATH"] = f"{ROOT / 'src'}{os.pathsep}{ROOT}"
    bootstrap = [sys.executable, "-m", "horsies.worker.child_main", "benchmarks.app:app", ""]

    async def main() -> dict[str, float]:
        children = ProcessExecutor(2, bootstrap=bootstrap)
        children.depth = 64
        kinds: dict[str, tuple[str, Executor]] = {
            "coroutine": ("noop", InLoopExecutor(definitions, 1000)),
            "thread": ("thread", ThreadExecutor(definitions, 4)),
            "child": ("child", children),
        }
        found: dict[str, float] = {}
        for kind, (name, executor) in kinds.items():
            await executor.start()
            await _cost_us(executor, name, calls // 10, at_once=100)  # warm-up
            found[f"{kind}, 100 at once"] = await _cost_us(executor, name, calls, at_once=100)
            found[f"{kind}, one by one"] = await _cost_us(executor, name, calls // 5, at_once=1)
            await executor.close(kill=True)
        return found

    return asyncio.run(main())


async def _cost_us(executor: Executor, name: str, calls: int, *, at_once: int) -> float:
    finished = asyncio.get_running_loop().create_future()
    numbers = count(1)
    left = calls

    def submit() -> None:
        number = next(numbers)
        if number <= calls:
            executor.submit(Call(f"task-{number}", name, 1, "[1]"), done)

    def done(_call: Call, _outcome: Outcome) -> None:
        nonlocal left
        left -= 1
        if left == 0:
            finished.set_result(None)
        else:
            submit()

    started = time.perf_counter()
    for _ in range(at_once):
        submit()
    await finished
    return (time.perf_counter() - started) / calls * 1e6
