"""Run the worker's event loop to the end of the worker, whatever user coroutines do to it."""

import asyncio
import logging
import signal
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")

_logger = logging.getLogger("horsies.worker")


def run_to_end(main: Coroutine[Any, Any, T]) -> T:
    """Run `main` and return its result.

    User code can leave the loop by `loop.stop()`, or by a SystemExit in a task or callback of its
    own, which asyncio does not hold back. Everything of ours goes on where it was.
    """
    with asyncio.Runner() as runner:
        loop = runner.get_loop()
        # Threads are shared with all other tasks, and with the worker itself.
        loop.shutdown_default_executor = _leave_threads  # type: ignore[method-assign]
        task = loop.create_task(main, name="worker")
        while not task.done():
            try:
                loop.run_until_complete(task)
            except (RuntimeError, SystemExit, KeyboardInterrupt) as error:
                if task.done() or _is_ctrl_c(error):
                    raise
                _logger.exception("a task tried to end the worker's event loop, which goes on")
        del loop.shutdown_default_executor
        return task.result()


async def _leave_threads(timeout: float | None = None) -> None:
    """What a task gets that shuts the loop's threads down for all."""
    _logger.warning("a task asked to shut down the threads that it shares with others: they stay")


def _is_ctrl_c(error: BaseException) -> bool:
    """Whether it comes from a terminal, before the worker handles its signals itself."""
    is_default = signal.getsignal(signal.SIGINT) is signal.default_int_handler
    return isinstance(error, KeyboardInterrupt) and is_default
