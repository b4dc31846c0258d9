"""Waiting for something to become true, with a limit; the only way tests let time pass."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import TypeVar

T = TypeVar("T")

_PAUSE_SECONDS = 0.02


def eventually(predicate: Callable[[], T], *, within: float = 20.0) -> T:
    """Call until the answer is truthy and return it; exceptions count as "not yet"."""
    deadline = time.monotonic() + within
    while True:
        last: object
        try:
            if answer := predicate():
                return answer
            last = answer
        except Exception as error:  # the predicate is the test's own code
            last = error
        if time.monotonic() > deadline:
            raise _never(within, last)
        time.sleep(_PAUSE_SECONDS)


async def eventually_async(predicate: Callable[[], Awaitable[T]], *, within: float = 20.0) -> T:
    """As `eventually`, for a coroutine function; a call that hangs is cut off at the limit."""
    last: object = "no answer"
    try:
        async with asyncio.timeout(within):
            while True:
                try:
                    if answer := await predicate():
                        return answer
                    last = answer
                except Exception as error:  # the predicate is the test's own code
                    last = error
                await asyncio.sleep(_PAUSE_SECONDS)
    except TimeoutError:
        raise _never(within, last) from None


def _never(within: float, last: object) -> AssertionError:
    failure = AssertionError(f"did not happen within {within:g} s; last: {last!r}")
    failure.__cause__ = last if isinstance(last, Exception) else None
    return failure
