"""Queues: the queue mode of an app and its custom queues."""

from enum import Enum

from pydantic import Field

from horsies.config.settings import Settings

DEFAULT_QUEUE_NAME = "default"
DEFAULT_QUEUE_PRIORITY = 100


class QueueMode(Enum):
    """Whether an app has one queue named `default` or its own list of queues."""

    DEFAULT = "default"
    CUSTOM = "custom"


class CustomQueueConfig(Settings):
    """One queue: priority 1 is served first; `max_concurrency` applies to the whole cluster."""

    name: str = Field(min_length=1, max_length=100)
    priority: int = Field(default=1, ge=1, le=100)
    max_concurrency: int | None = 5
