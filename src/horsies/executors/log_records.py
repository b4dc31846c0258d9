"""Log records that a task emits carry its id, name and attempt and its worker's id.

The attributes have a prefix: user code may pass `extra={"task_id": ...}`, which logging refuses
when a record already has such an attribute.
"""

import logging
from typing import Any

from horsies.executors.current import running_here


class TaskRecords:
    """Makes log records as the factory before it does, and adds the task that runs here."""

    def __init__(self) -> None:
        self._make = logging.getLogRecordFactory()

    def __call__(self, *args: Any, **kwargs: Any) -> logging.LogRecord:
        record = self._make(*args, **kwargs)
        running = running_here()
        if running is None:
            task_id = task_name = attempt = worker_id = None
        else:
            call, worker_id = running.call, running.worker_id
            task_id, task_name, attempt = call.task_id, call.task_name, call.attempt
        record.horsies_task_id = task_id
        record.horsies_task_name = task_name
        record.horsies_attempt = attempt
        record.horsies_worker_id = worker_id
        return record


def add_tasks_to_records() -> None:
    """From now on, in this process; a second call changes nothing."""
    if not isinstance(logging.getLogRecordFactory(), TaskRecords):
        logging.setLogRecordFactory(TaskRecords())
