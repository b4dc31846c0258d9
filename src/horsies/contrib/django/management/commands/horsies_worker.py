"""`manage.py horsies_worker`."""

from horsies.contrib.django.worker_command import WorkerCommand


class Command(WorkerCommand):
    """See `WorkerCommand`."""
