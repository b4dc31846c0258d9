"""Re-exports: the task function and its handle."""

from horsies.results.handle import (
    TaskHandle,
)
from horsies.sending.task_function import (
    TaskFunction,
    TaskSendOptions,
)

__all__ = [
    "TaskFunction",
    "TaskHandle",
    "TaskSendOptions",
]
