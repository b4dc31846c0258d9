"""The soft time limit of a coroutine: raise SoftTimeout once, at its current await."""

import asyncio
from collections.abc import Coroutine, Generator
from typing import Any, Generic, TypeVar, cast

from horsies.executors.base import SoftTimeout

T = TypeVar("T")


class _SoftCancelled(SoftTimeout, asyncio.CancelledError):
    """Also a CancelledError, so that TaskGroup, wait_for and the like cancel their own work."""


async def with_soft_limit(coroutine: Coroutine[Any, Any, T], seconds: float) -> T:
    """Await `coroutine`; after `seconds`, raise SoftTimeout inside it where it waits."""
    driver = _Driver(coroutine)
    timer = asyncio.get_running_loop().call_later(seconds, driver.interrupt)
    try:
        return await driver
    except _SoftCancelled as error:
        # The traceback shows where the coroutine was waiting.
        raise SoftTimeout(str(error)).with_traceback(error.__traceback__) from None
    finally:
        timer.cancel()


class _Driver(Generic[T]):
    """Drives the coroutine and turns our own cancellation into SoftTimeout."""

    def __init__(self, coroutine: Coroutine[Any, Any, T]) -> None:
        self._coroutine = coroutine
        self._task = asyncio.current_task()
        self._is_due = False

    def interrupt(self) -> None:
        if self._task is not None:
            self._is_due = True
            self._task.cancel()

    def __await__(self) -> Generator[Any, Any, T]:
        steps = self._coroutine.__await__()
        try:
            waiting_for = next(steps)
            while True:
                try:
                    sent = yield waiting_for
                except BaseException as error:  # noqa: BLE001 - user code: passed on into the coroutine
                    waiting_for = steps.throw(self._translate(error))
                else:
                    waiting_for = steps.send(sent)
        except StopIteration as stop:
            return cast("T", stop.value)

    def _translate(self, error: BaseException) -> BaseException:
        if not self._is_due or not isinstance(error, asyncio.CancelledError):
            return error
        self._is_due = False
        if self._task is not None:
            self._task.uncancel()
        return _SoftCancelled("soft time limit reached")
