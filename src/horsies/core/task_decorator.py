"""Re-exports: the task function and its handle."""

from horsies.results.handle import (
    TaskHandle,
)
from horsies.sending.task_function import (
    TaskFunction,
    TaskSendOptions,
)
from horsies.workflows.factory import (
    NodeFactory,
    from_node,
)

__all__ = [
    "NodeFactory",
    "TaskFunction",
    "TaskHandle",
    "TaskSendOptions",
    "from_node",
]
