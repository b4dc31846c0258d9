"""Exceptions for those who prefer to raise: inside a task, and when its result is read."""

from typing import Any

from horsies.codes import BuiltInTaskCode, RetrievalCode
from horsies.result.task import TaskError

RETRY_CODE = "RETRY"


class TaskFailed(Exception):  # noqa: N818  # reads as what happened, at `raise` and at `except`
    """Raised in a task, it ends the attempt with this code; raised by `handle.result()`, it tells.

    >>> TaskFailed("CARD_DECLINED", "no money left", data={"cents": 1}).error.error_code
    'CARD_DECLINED'
    """

    __module__ = "horsies"

    def __init__(
        self, code: BuiltInTaskCode | str | None, message: str | None = None, *, data: Any = None
    ) -> None:
        self.error = TaskError(error_code=code, message=message, data=data)
        super().__init__(str(self.error))

    def __reduce__(self) -> tuple[object, tuple[TaskError]]:
        return task_failed, (self.error,)

    @property
    def code(self) -> BuiltInTaskCode | str | None:
        return self.error.error_code

    @property
    def message(self) -> str | None:
        return self.error.message

    @property
    def data(self) -> Any:
        return self.error.data


class WaitTimedOut(TaskFailed, TimeoutError):  # noqa: N818  # as its base
    """`handle.result()` gave up waiting; the task itself is not affected."""

    __module__ = "horsies"


class Retry(Exception):  # noqa: N818  # an order, not an error
    """Raised in a task, it asks for another try, `after` so many seconds or by the policy's waits.

    The retry policy of the task says how many tries there are; without one the task fails.
    """

    __module__ = "horsies"

    def __init__(
        self, message: str = "the task asked for a retry", *, after: float | None = None
    ) -> None:
        super().__init__(message)
        if after is not None and not 0 <= after <= 86_400 * 365:
            raise ValueError(f"Retry(after=...) takes seconds from 0 to a year, not {after!r}")
        self.after = after


def task_failed(error: TaskError) -> TaskFailed:
    """The exception that carries an error; a wait that timed out is a TimeoutError too."""
    kind = WaitTimedOut if error.error_code is RetrievalCode.WAIT_TIMEOUT else TaskFailed
    failed = kind(None)
    failed.error = error
    failed.args = (str(error),)
    if isinstance(error.exception, BaseException):
        failed.__cause__ = error.exception
    return failed
