"""The engine's tables as Django models: to read, filter and show; the engine writes them."""

import json
from datetime import timedelta
from typing import Any

from django.db import models
from django.utils.translation import gettext_lazy as _

from horsies.contrib.django.conf import setting
from horsies.contrib.django.fields import InstantField, TextArrayField, TextUUIDField
from horsies.states import TASK_TERMINAL_STATES, TaskStatus

TERMINAL = tuple(sorted(state.value for state in TASK_TERMINAL_STATES))


class ReadOnlyModel(RuntimeError):  # noqa: N818 - Django names such errors after what is wrong
    """The engine owns this table; use `requeue()` and `cancel()`."""

    def __init__(self, model: type[models.Model]) -> None:
        super().__init__(
            f"{model.__name__} rows belong to the engine and are not written through the ORM; "
            'use the functions of horsies, or set HORSIES["READONLY_MODELS"] = False in tests'
        )


class ReadOnlyQuerySet(models.QuerySet):
    """Refuses what would write, unless `READONLY_MODELS` is switched off."""

    def _refuse(self) -> None:
        if setting("READONLY_MODELS"):
            raise ReadOnlyModel(self.model)

    def create(self, **kwargs: Any) -> Any:
        self._refuse()
        return super().create(**kwargs)

    def bulk_create(self, *args: Any, **kwargs: Any) -> Any:
        self._refuse()
        return super().bulk_create(*args, **kwargs)

    def update(self, **kwargs: Any) -> int:
        self._refuse()
        return int(super().update(**kwargs))

    def delete(self) -> Any:
        self._refuse()
        return super().delete()


class TaskQuerySet(ReadOnlyQuerySet):
    """Tasks by what they are doing."""

    def pending(self) -> "TaskQuerySet":
        return self.filter(status=TaskStatus.PENDING.value)

    def running(self) -> "TaskQuerySet":
        return self.filter(status__in=(TaskStatus.CLAIMED.value, TaskStatus.RUNNING.value))

    def finished(self) -> "TaskQuerySet":
        return self.filter(status__in=TERMINAL)


class EngineModel(models.Model):
    """A row that only the engine writes."""

    objects = ReadOnlyQuerySet.as_manager()

    class Meta:
        abstract = True
        managed = False

    def save(self, *args: Any, **kwargs: Any) -> None:
        if setting("READONLY_MODELS"):
            raise ReadOnlyModel(type(self))
        super().save(*args, **kwargs)

    def delete(self, *args: Any, **kwargs: Any) -> Any:
        if setting("READONLY_MODELS"):
            raise ReadOnlyModel(type(self))
        return super().delete(*args, **kwargs)


class Task(EngineModel):
    """One task: its input, its state, its result."""

    STATUS_CHOICES = tuple((state.value, state.display) for state in TaskStatus)

    id = TextUUIDField(primary_key=True, editable=False)
    task_name = models.CharField(_("task"), max_length=255)
    queue_name = models.CharField(_("queue"), max_length=100, default="default")
    priority = models.IntegerField(default=100)
    args = models.TextField(null=True)
    kwargs = models.TextField(null=True)
    status = models.CharField(max_length=20, choices=STATUS_CHOICES, default="PENDING")
    sent_at = InstantField(null=True)
    enqueued_at = InstantField(null=True)
    is_workflow_task = models.BooleanField(default=False)
    started_at = InstantField(null=True)
    completed_at = InstantField(null=True)
    failed_at = InstantField(null=True)
    result_text = models.TextField(null=True, db_column="result")
    failed_reason = models.TextField(null=True)
    error_code = models.TextField(null=True)
    claimed = models.BooleanField(default=False)
    claimed_by_worker_id = models.CharField(_("worker"), max_length=255, null=True)
    good_until = InstantField(null=True)
    retry_count = models.IntegerField(default=0)
    max_retries = models.IntegerField(default=0)
    next_retry_at = InstantField(null=True)
    task_options = models.TextField(null=True)
    worker_pid = models.IntegerField(null=True)
    worker_hostname = models.CharField(max_length=255, null=True)
    enqueue_sha = models.CharField(max_length=64, default="")
    unique_key = models.CharField(max_length=255, null=True)
    rerun_of = models.CharField(max_length=36, null=True)
    cancel_requested_at = InstantField(null=True)
    tags = TextArrayField(null=True)
    created_at = InstantField(auto_now_add=True)
    updated_at = InstantField(auto_now=True)

    objects = TaskQuerySet.as_manager()

    class Meta(EngineModel.Meta):
        db_table = "horsies_tasks"
        verbose_name = _("task")
        verbose_name_plural = _("tasks")
        default_permissions = ("view",)
        permissions = (
            ("requeue_task", "Can put tasks back in their queues"),
            ("cancel_task", "Can cancel tasks"),
        )

    def __str__(self) -> str:
        return f"{self.task_name} {str(self.pk)[:8]}"

    @property
    def options(self) -> dict[str, Any]:
        """The stored options; what cannot be read counts as none."""
        try:
            found = json.loads(self.task_options or "{}")
        except (ValueError, RecursionError):
            return {}
        return found if isinstance(found, dict) else {}

    @property
    def kind(self) -> str:
        """Who explains the name: "native", "django_task" or "callable"."""
        kind = self.options.get("kind")
        return kind if kind in ("django_task", "callable") else "native"

    @property
    def result(self) -> Any:
        """The value that the task returned, as plain JSON values."""
        return self._envelope().get("ok")

    @property
    def output(self) -> str | None:
        """The same as text: a text as it is, anything else as JSON."""
        value = self.result
        return value if value is None or isinstance(value, str) else json.dumps(value)

    @property
    def error(self) -> dict[str, Any] | None:
        """The error that ended the task: `error_code`, `message`, `data`."""
        error = self._envelope().get("err")
        return error if isinstance(error, dict) else None

    @property
    def log(self) -> str | None:
        """What the current or last attempt printed and logged, if that is captured."""
        found = TaskLog.objects.filter(task_id=self.pk, attempt=self.retry_count + 1).first()
        return None if found is None else found.log

    @property
    def ended_at(self) -> Any:
        if self.status not in TERMINAL:
            return None
        return self.completed_at or self.failed_at or self.updated_at

    @property
    def duration(self) -> timedelta | None:
        if self.started_at is None or self.ended_at is None:
            return None
        return self.ended_at - self.started_at

    def requeue(self) -> bool:
        """Run an ended task again as the same row; False if it has not ended."""
        from horsies.contrib.django.actions import requeue

        return requeue([str(self.pk)]) == 1

    def cancel(self) -> bool:
        """Withdraw a waiting task, or ask the worker of a running one to end it."""
        from horsies.contrib.django.actions import cancel

        return cancel([str(self.pk)]) == 1

    def _envelope(self) -> dict[str, Any]:
        try:
            found = json.loads(self.result_text or "{}")
        except (ValueError, RecursionError):
            return {}
        return found if isinstance(found, dict) else {}


class TaskAttempt(EngineModel):
    """One try at a task that has ended."""

    id = models.BigIntegerField(primary_key=True)
    task = models.ForeignKey(
        Task, models.DO_NOTHING, related_name="attempts", db_constraint=False, db_index=False
    )
    attempt = models.IntegerField()
    outcome = models.CharField(max_length=32)
    will_retry = models.BooleanField()
    started_at = InstantField()
    finished_at = InstantField()
    error_code = models.TextField(null=True)
    error_message = models.TextField(null=True)
    failed_reason = models.TextField(null=True)
    traceback = models.TextField(null=True)
    worker_id = models.CharField(max_length=255, null=True)
    worker_hostname = models.CharField(max_length=255, null=True)
    worker_pid = models.IntegerField(null=True)

    class Meta(EngineModel.Meta):
        db_table = "horsies_task_attempts"
        default_permissions = ("view",)
        ordering = ("attempt",)

    def __str__(self) -> str:
        return f"attempt {self.attempt}: {self.outcome}"


class TaskLog(EngineModel):
    """What one attempt printed and logged."""

    id = models.BigIntegerField(primary_key=True)
    task = models.ForeignKey(
        Task, models.DO_NOTHING, related_name="logs", db_constraint=False, db_index=False
    )
    attempt = models.IntegerField()
    log = models.TextField()
    truncated = models.BooleanField()
    created_at = InstantField()

    class Meta(EngineModel.Meta):
        db_table = "horsies_task_logs"
        default_permissions = ("view",)

    def __str__(self) -> str:
        return f"log of attempt {self.attempt}"


class Heartbeat(EngineModel):
    """A sign of life of a claim or a run."""

    id = models.BigIntegerField(primary_key=True)
    task_id = TextUUIDField()
    sender_id = models.CharField(max_length=255)
    role = models.CharField(max_length=20)
    sent_at = InstantField()
    hostname = models.CharField(max_length=255, null=True)
    pid = models.IntegerField(null=True)

    class Meta(EngineModel.Meta):
        db_table = "horsies_heartbeats"
        default_permissions = ("view",)

    def __str__(self) -> str:
        return f"{self.role} {self.sent_at}"


class WorkerState(EngineModel):
    """A snapshot of one worker; the newest of each says how it is."""

    id = models.BigIntegerField(primary_key=True)
    worker_id = models.CharField(max_length=255)
    snapshot_at = InstantField()
    hostname = models.CharField(max_length=255)
    pid = models.IntegerField()
    processes = models.IntegerField()
    queues = TextArrayField()
    tasks_running = models.IntegerField()
    tasks_claimed = models.IntegerField()
    memory_usage_mb = models.FloatField(null=True)
    cpu_percent = models.FloatField(null=True)
    worker_started_at = InstantField()

    class Meta(EngineModel.Meta):
        db_table = "horsies_worker_states"
        verbose_name = _("worker")
        verbose_name_plural = _("workers")
        default_permissions = ("view",)

    def __str__(self) -> str:
        return f"{self.hostname} pid {self.pid}"


class ScheduleState(EngineModel):
    """What the scheduler remembers of one schedule."""

    schedule_name = models.CharField(_("schedule"), max_length=255, primary_key=True)
    last_run_at = InstantField(null=True)
    next_run_at = InstantField(null=True)
    last_task_id = models.CharField(max_length=36, null=True)
    run_count = models.IntegerField()
    paused_at = InstantField(null=True)
    pause_reason = models.TextField(null=True)
    updated_at = InstantField()

    class Meta(EngineModel.Meta):
        db_table = "horsies_schedule_state"
        verbose_name = _("schedule")
        verbose_name_plural = _("schedules")
        default_permissions = ("view",)
        permissions = (("run_schedule", "Can run schedules now"),)

    def __str__(self) -> str:
        return str(self.schedule_name)


class Workflow(EngineModel):
    """One workflow."""

    id = TextUUIDField(primary_key=True, editable=False)
    name = models.CharField(max_length=255)
    status = models.CharField(max_length=50)
    on_error = models.CharField(max_length=50)
    result = models.TextField(null=True)
    error = models.TextField(null=True)
    sent_at = InstantField()
    created_at = InstantField()
    started_at = InstantField(null=True)
    completed_at = InstantField(null=True)

    class Meta(EngineModel.Meta):
        db_table = "horsies_workflows"
        default_permissions = ("view",)

    def __str__(self) -> str:
        return f"{self.name} {str(self.pk)[:8]}"


class WorkflowTask(EngineModel):
    """One node of a workflow."""

    id = TextUUIDField(primary_key=True, editable=False)
    workflow = models.ForeignKey(
        Workflow, models.DO_NOTHING, related_name="nodes", db_constraint=False, db_index=False
    )
    task_index = models.IntegerField()
    node_id = models.CharField(max_length=128, null=True)
    task_name = models.CharField(max_length=255)
    status = models.CharField(max_length=50)
    task_id = models.CharField(max_length=36, null=True)
    created_at = InstantField()
    started_at = InstantField(null=True)
    completed_at = InstantField(null=True)

    class Meta(EngineModel.Meta):
        db_table = "horsies_workflow_tasks"
        default_permissions = ("view",)
        ordering = ("task_index",)

    def __str__(self) -> str:
        return f"{self.task_name} #{self.task_index}"
