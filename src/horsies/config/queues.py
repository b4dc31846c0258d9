"""Queues: the mode of an app and the custom queues it may have."""

from enum import Enum

from pydantic import Field

from horsies.config.settings import Settings

DEFAULT_QUEUE_NAME = "default"
DEFAULT_QUEUE_PRIORITY = 100


class QueueMode(Enum):
    """One queue named `default`, or the app's own list."""

    DEFAULT = "default"
    CUSTOM = "custom"


class CustomQueueConfig(Settings):
    """One queue: priority 1 is served first; `max_concurrency` counts over the whole cluster."""

    name: str = Field(min_length=1, max_length=100)
    priority: int = Field(default=1, ge=1, le=100)
    max_concurrency: int | None = 5
