"""`manage.py task_worker`: the worker of django-simple-queue; takes the options of ours, too."""

from typing import Any

from horsies.contrib.django.simple_queue.conf import get_task_timeout
from horsies.contrib.django.worker_command import WorkerCommand


class Command(WorkerCommand):
    """See `WorkerCommand`."""

    def handle(self, **options: Any) -> None:
        limit = get_task_timeout()
        text = "Task timeout: disabled (tasks can run indefinitely)"
        if limit is not None:
            text = f"Task timeout configured: {limit} seconds"
        self.stdout.write(text)
        self.stdout.flush()
        super().handle(**options)
