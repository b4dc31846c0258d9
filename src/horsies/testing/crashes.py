"""Let the process of an attempt die: what follows is what follows a crash in production."""

import functools
import inspect
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any


@contextmanager
def crash(task: Any, *, attempt: int = 1) -> Generator[None, None, None]:
    """Inside the block the given attempt of the task ends as if its process had been killed.

    Attempts are counted from the beginning of the block. The outcome is `WORKER_CRASHED`, and the
    task's retry policy decides what follows.
    """
    definition = task.definition
    function = definition.function
    count = 0

    def is_dying() -> bool:
        nonlocal count
        count += 1
        return count == attempt

    @functools.wraps(function)
    def dying(*args: Any, **kwargs: Any) -> Any:
        if is_dying():
            raise KeyboardInterrupt("the process dies in this test")
        return function(*args, **kwargs)

    @functools.wraps(function)
    async def dying_async(*args: Any, **kwargs: Any) -> Any:
        if is_dying():
            raise KeyboardInterrupt("the process dies in this test")
        return await function(*args, **kwargs)

    wrapped = dying_async if inspect.iscoroutinefunction(function) else dying
    object.__setattr__(definition, "function", wrapped)  # a definition is frozen
    try:
        yield
    finally:
        object.__setattr__(definition, "function", function)
