"""Re-exports: the task function and its handle."""

from horsies.client.handle import (
    TaskHandle,
)
from horsies.client.task_function import (
    TaskFunction,
    TaskSendOptions,
)

__all__ = [
    "TaskFunction",
    "TaskHandle",
    "TaskSendOptions",
]
