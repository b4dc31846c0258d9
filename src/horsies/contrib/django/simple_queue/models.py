"""The `Task` model of django-simple-queue, over a view of the engine's tasks."""

import json
import uuid
from typing import Any

from django.core.exceptions import ValidationError
from django.db import models
from django.utils.module_loading import import_string
from django.utils.translation import gettext_lazy as _

from horsies.contrib.django.fields import TextUUIDField


class Task(models.Model):
    """A callable by its path, with keyword arguments.

    Writing `status = QUEUED` to an ended task queues it again, `CANCELLED` cancels it.
    """

    QUEUED = 0
    PROGRESS = 1
    COMPLETED = 2
    FAILED = 3
    CANCELLED = 4
    STATUS_CHOICES = (
        (QUEUED, _("Queued")),
        (PROGRESS, _("In progress")),
        (COMPLETED, _("Completed")),
        (FAILED, _("Failed")),
        (CANCELLED, _("Cancelled")),
    )

    id = TextUUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    created = models.DateTimeField(auto_now_add=True)
    modified = models.DateTimeField(auto_now=True)
    task = models.CharField(max_length=127, help_text=_("The path of a callable."))
    args = models.TextField(null=True, blank=True, help_text=_("Keyword arguments, as JSON."))
    status = models.IntegerField(default=QUEUED, choices=STATUS_CHOICES)
    output = models.TextField(null=True, blank=True)
    worker_pid = models.IntegerField(null=True, blank=True, editable=False)
    error = models.TextField(null=True, blank=True)
    log = models.TextField(null=True, blank=True)

    class Meta:
        managed = False
        db_table = "django_simple_queue_task"
        verbose_name = _("Task")
        verbose_name_plural = _("Tasks")

    def __str__(self) -> str:
        return str(self.id)

    @property
    def as_dict(self) -> dict[str, Any]:
        """The task as the status page's JSON has it."""
        return {
            "id": str(self.id),
            "created": str(self.created),
            "modified": str(self.modified),
            "task": self.task,
            "args": self.args,
            "status": str(self.get_status_display()),
            "output": self.output,
            "worker_pid": self.worker_pid,
            "error": self.error,
            "log": self.log,
        }

    def clean_task(self) -> None:
        """Refuse a path that leads to nothing callable."""
        try:
            self._callable_task(self.task)
        except (ImportError, AttributeError, TypeError, ValueError) as error:
            problem = ValidationError(f"Invalid callable: {error}", code="invalid")
            raise ValidationError({"task": problem}) from None

    def clean_args(self) -> None:
        """Refuse arguments that are not JSON."""
        if not self.args:
            return
        try:
            json.loads(self.args)
        except (TypeError, ValueError) as error:
            problem = ValidationError(f"Invalid JSON: {error}", code="invalid")
            raise ValidationError({"args": problem}) from None

    @staticmethod
    def _callable_task(path: str) -> Any:
        found = import_string(path)
        if not callable(found):
            raise TypeError(f"{path!r} is not callable")
        return found
