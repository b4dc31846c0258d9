"""Re-exports: queue mode and custom queues."""

from horsies.config import (
    CustomQueueConfig,
    QueueMode,
)

__all__ = [
    "CustomQueueConfig",
    "QueueMode",
]
