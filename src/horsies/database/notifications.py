"""The channels that code notifies on; the triggers' are named in their SQL functions."""

from collections.abc import Sequence

from horsies.database.sql_files import query
from horsies.database.statement import Scalar, Statement

PING_CHANNEL = "horsies_worker_ping"
PONG_CHANNEL = "horsies_worker_pong"
CANCEL_CHANNEL = "horsies_cancel"
DONE_CHANNEL = "task_done"
STATUS_CHANNEL = "horsies_task_status"
WORKFLOW_CHANNEL = "horsies_workflow_wake"
RETURNED_CHANNEL = "horsies_tasks_returned"
STOP_CHANNEL = "horsies_workflow_stop"
SCHEDULE_CHANNEL = "horsies_schedules"
# What viewers listen to.
CHANGE_CHANNELS = (STATUS_CHANNEL, "horsies_worker_state", "horsies_workflow_status")
_ANY_QUEUE_CHANNEL = "task_new"
_MAX_CHANNEL_BYTES = 63  # PostgreSQL's limit for a name


def queue_channel(queue_name: str) -> str:
    """Where new work of a queue is told; for a name too long for a channel, that of all queues."""
    channel = f"task_queue_{queue_name}"
    return channel if len(channel.encode()) <= _MAX_CHANNEL_BYTES else _ANY_QUEUE_CHANNEL


def notify(notifications: Sequence[tuple[str, str]]) -> Statement[Scalar]:
    """Send (channel, payload) pairs."""
    parameters = {
        "channels": [channel for channel, _ in notifications],
        "payloads": [payload for _, payload in notifications],
    }
    return Statement(query("database", "notify"), parameters, Scalar)
