"""The admin of django-simple-queue, with its extension points."""

from typing import Any, ClassVar

from django.contrib import admin, messages
from django.db import IntegrityError, transaction
from django.urls import NoReverseMatch, reverse
from django.utils.html import format_html
from django.utils.http import urlencode
from django.utils.translation import ngettext

from horsies.codec.secrecy import masked, masked_arguments
from horsies.contrib.django import actions
from horsies.contrib.django.admin import SteeringForm, badge, note_of
from horsies.contrib.django.conf import setting
from horsies.contrib.django.masking import declared_of
from horsies.contrib.django.paginator import EstimatingPaginator
from horsies.contrib.django.project import app
from horsies.contrib.django.simple_queue.models import Task

_STATES = ("PENDING", "RUNNING", "COMPLETED", "FAILED", "CANCELLED")


@admin.register(Task)
class TaskAdmin(admin.ModelAdmin):
    """See tasks and put them back in the queue; extend `actions` (a list) and `list_filter`."""

    list_display: Any = ("id", "created", "modified", "task", "status_page_link")
    list_filter: Any = ("status", "created", "modified")
    search_fields: Any = ("id", "task", "output")
    ordering: Any = ("-modified",)
    actions: ClassVar[list[Any]] = ["enqueue_tasks", "cancel_tasks"]
    show_full_result_count = False
    paginator = EstimatingPaginator
    action_form = SteeringForm

    def get_readonly_fields(self, request: Any, obj: Any = None) -> tuple[str, ...]:
        if obj is None:
            return ("status", "output", "error", "log")
        masked_ones = {"args": "shown_args", "output": "shown_output"}
        names = (field.name for field in self.model._meta.fields)
        return tuple(masked_ones.get(name, name) for name in names)

    def get_fields(self, request: Any, obj: Any = None) -> Any:
        """Of a stored task, only what is shown: a field beside it would be one to edit."""
        readonly = self.get_readonly_fields(request, obj)
        return super().get_fields(request, obj) if obj is None else readonly

    def get_queryset(self, request: Any) -> Any:
        return super().get_queryset(request).defer("output", "error", "log")

    @admin.display(description="Args")
    def shown_args(self, task: Task) -> str:
        declared = declared_of(task.task)
        return masked_arguments(None, task.args, declared.parameters)[1] or "-"

    @admin.display(description="Output")
    def shown_output(self, task: Task) -> str:
        return masked(task.output, declared_of(task.task).returned) or "-"

    @admin.display(description="Status", ordering="status")
    def status_page_link(self, task: Task) -> Any:
        label = badge(_STATES[task.status], str(task.get_status_display()))
        try:
            url = f"{reverse('django_simple_queue:task')}?{urlencode({'task_id': task.pk})}"
        except NoReverseMatch:  # the page is not in the project's urls
            return label
        return format_html('<a href="{}" target="_blank">{}</a>', url, label)

    @admin.action(description="Enqueue", permissions=["requeue"])
    def enqueue_tasks(self, request: Any, queryset: Any) -> None:
        ids = [str(pk) for pk in queryset.values_list("pk", flat=True)]
        with transaction.atomic(using=setting("DATABASE_ALIAS")):
            # By the model: it also deletes what an imported task has yielded.
            done = sum(map(_requeue, ids))
            target = f"tasks {', '.join(ids[:20])}"
            details: dict[str, object] = {"changed": done, "asked": len(ids)}
            app.operations.record("requeue", target, note=note_of(request), details=details)
        one, many = "%d task was successfully enqueued.", "%d tasks were successfully enqueued."
        self._tell(request, done, len(ids), ngettext(one, many, done))

    @admin.action(description="Cancel", permissions=["cancel"])
    def cancel_tasks(self, request: Any, queryset: Any) -> None:
        ids = [str(pk) for pk in queryset.values_list("pk", flat=True)]
        done = actions.cancel(ids, note=note_of(request))
        one, many = "%d task was cancelled.", "%d tasks were cancelled or asked to end."
        self._tell(request, done, len(ids), ngettext(one, many, done))

    def has_requeue_permission(self, request: Any) -> bool:
        may_change = self.has_change_permission(request)
        return bool(may_change or request.user.has_perm("horsies.requeue_task"))

    def has_cancel_permission(self, request: Any) -> bool:
        may_change = self.has_change_permission(request)
        return bool(may_change or request.user.has_perm("horsies.cancel_task"))

    def _tell(self, request: Any, done: int, chosen: int, text: str) -> None:
        self.message_user(request, text % done, messages.SUCCESS)
        if left := chosen - done:
            skipped = ngettext("%d task was skipped.", "%d tasks were skipped.", left)
            self.message_user(request, skipped % left, messages.WARNING)


def _requeue(task_id: str) -> bool:
    not_queued = Task.objects.exclude(status=Task.QUEUED).filter(pk=task_id)
    try:
        with transaction.atomic(using=setting("DATABASE_ALIAS")):
            return bool(not_queued.update(status=Task.QUEUED))
    except IntegrityError:  # it runs, or cannot run again
        return False
