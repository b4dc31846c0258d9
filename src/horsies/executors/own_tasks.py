"""Keep the worker's own asyncio tasks out of `asyncio.all_tasks()`.

User coroutines share the worker's event loop. One that cancels all tasks of its loop, as some
libraries do at their end, must not meet the worker's services or the calls of other tasks.
"""

import asyncio
from typing import Any

from horsies.executors.current import running_here


def hide_own_tasks(loop: asyncio.AbstractEventLoop) -> None:
    """Hide all tasks of the running `loop`, and from now on those that user code did not start."""
    for task in asyncio.all_tasks(loop):
        asyncio._unregister_task(task)
    if loop.get_task_factory() is None:
        loop.set_task_factory(_make_task)


def hidden_task(
    loop: asyncio.AbstractEventLoop, coroutine: Any, **options: Any
) -> "asyncio.Task[Any]":
    """Start a task that user code does not see."""
    task = asyncio.Task(coroutine, loop=loop, **options)
    asyncio._unregister_task(task)
    return task


def _make_task(
    loop: asyncio.AbstractEventLoop, coroutine: Any, **options: Any
) -> "asyncio.Task[Any]":
    if running_here() is not None:  # what user code starts inherits its context
        return asyncio.Task(coroutine, loop=loop, **options)
    return hidden_task(loop, coroutine, **options)
