"""What sending gives: payloads, errors and their codes."""

import re
from dataclasses import dataclass
from datetime import datetime
from typing import TypeAlias, TypeVar

from horsies.codes import TaskSendErrorCode
from horsies.result import Result

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class TaskSendPayload:
    """Everything a send would have stored, so that it can be sent again as itself."""

    task_name: str
    queue_name: str
    priority: int
    args_json: str | None
    kwargs_json: str | None
    sent_at: datetime
    good_until: datetime | None
    enqueue_delay_seconds: float | None
    task_options: str | None
    enqueue_sha: str
    run_at: datetime | None = None


@dataclass(frozen=True, slots=True, repr=False)
class TaskSendError:
    """Why a task was not sent: `str` gives the message, `repr` what identifies the send.

    Neither shows arguments. `each` has one error per task of a `send_many`, in their order, where
    some may be stored: the answer was lost.
    """

    code: TaskSendErrorCode
    message: str
    retryable: bool
    task_id: str | None = None
    payload: TaskSendPayload | None = None
    exception: BaseException | None = None
    each: "tuple[TaskSendError, ...]" = ()

    def __repr__(self) -> str:
        return (
            f"TaskSendError(code={self.code.value}, retryable={self.retryable}, "
            f"task_id={self.task_id!r})"
        )

    def __str__(self) -> str:
        # The server's further lines (DETAIL, CONTEXT) may repeat the row with its arguments.
        first = re.split(r"\n(?:DETAIL|CONTEXT)", self.message)[0]
        return f"{self.code}: {first}"


class SendFailed(Exception):  # noqa: N818  # reads as what happened
    """Raised by `send_or_raise`; `error` is the value that `send` would have returned."""

    __module__ = "horsies"

    def __init__(self, error: TaskSendError) -> None:
        super().__init__(str(error))
        self.error = error
        self.__cause__ = error.exception

    @property
    def code(self) -> TaskSendErrorCode:
        return self.error.code

    def __reduce__(self) -> tuple[type["SendFailed"], tuple[TaskSendError]]:
        return SendFailed, (self.error,)


TaskSendResult: TypeAlias = Result[T, TaskSendError]
