"""Re-exports: what a send returns."""

from horsies.codes import (
    TaskSendErrorCode,
)
from horsies.sending.errors import (
    TaskSendError,
    TaskSendPayload,
    TaskSendResult,
)

__all__ = [
    "TaskSendError",
    "TaskSendErrorCode",
    "TaskSendPayload",
    "TaskSendResult",
]
