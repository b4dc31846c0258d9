"""Choose the queue of a task, by the queue mode of the app."""

from dataclasses import dataclass

from horsies.codes import ErrorCode
from horsies.config import AppConfig, QueueMode
from horsies.config.queues import DEFAULT_QUEUE_NAME, DEFAULT_QUEUE_PRIORITY
from horsies.errors import ConfigurationError, SourceLocation


@dataclass(frozen=True, slots=True)
class ResolvedQueue:
    """A queue and the priority of its tasks."""

    name: str
    priority: int


def valid_queue_names(config: AppConfig) -> list[str]:
    """Return the queue names of the app in the configured order."""
    if config.queue_mode is QueueMode.DEFAULT:
        return [DEFAULT_QUEUE_NAME]
    return [queue.name for queue in config.custom_queues or ()]


def resolve_queue(
    config: AppConfig, queue_name: str | None, location: SourceLocation | None = None
) -> ResolvedQueue:
    """Return the queue for a task, or raise ConfigurationError."""
    if config.queue_mode is QueueMode.DEFAULT:
        if queue_name is None:
            return ResolvedQueue(DEFAULT_QUEUE_NAME, DEFAULT_QUEUE_PRIORITY)
        raise ConfigurationError(
            "cannot specify queue_name in DEFAULT mode",
            ErrorCode.CONFIG_INVALID_QUEUE_MODE,
            location,
            [f"queue_name={queue_name!r}", "queue_mode=DEFAULT"],
            "remove queue_name, or use CUSTOM mode: AppConfig(queue_mode=QueueMode.CUSTOM, ...)",
        )
    names = valid_queue_names(config)
    notes = [f"valid queue names: {', '.join(names)}"]
    if queue_name is None:
        raise ConfigurationError(
            "queue_name is required in CUSTOM mode",
            ErrorCode.CONFIG_INVALID_QUEUE_MODE,
            location,
            notes,
            "name one of the queues in custom_queues",
        )
    for queue in config.custom_queues or ():
        if queue.name == queue_name:
            return ResolvedQueue(queue.name, queue.priority)
    raise ConfigurationError(
        f"unknown queue {queue_name!r}",
        ErrorCode.TASK_INVALID_QUEUE,
        location,
        notes,
        "use one of these names, or add the queue to custom_queues",
    )
