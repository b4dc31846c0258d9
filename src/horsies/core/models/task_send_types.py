"""Re-exports: what a send returns."""

from horsies.client.types import (
    TaskSendError,
    TaskSendErrorCode,
    TaskSendPayload,
    TaskSendResult,
)

__all__ = [
    "TaskSendError",
    "TaskSendErrorCode",
    "TaskSendPayload",
    "TaskSendResult",
]
