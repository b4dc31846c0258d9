"""The admin of django-simple-queue, with its extension points."""

from typing import Any, ClassVar

from django.contrib import admin, messages
from django.db import IntegrityError, transaction
from django.urls import NoReverseMatch, reverse
from django.utils.html import format_html
from django.utils.translation import ngettext

from horsies.contrib.django.admin import badge
from horsies.contrib.django.paginator import EstimatingPaginator
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

    def get_readonly_fields(self, request: Any, obj: Any = None) -> tuple[str, ...]:
        if obj is None:
            return ("status", "output", "error", "log")
        return tuple(field.name for field in self.model._meta.fields)

    def get_queryset(self, request: Any) -> Any:
        return super().get_queryset(request).defer("output", "error", "log")

    @admin.display(description="Status", ordering="status")
    def status_page_link(self, task: Task) -> Any:
        label = badge(_STATES[task.status], str(task.get_status_display()))
        try:
            url = reverse("django_simple_queue:task")
        except NoReverseMatch:  # the page is not in the project's urls
            return label
        return format_html('<a href="{}?task_id={}" target="_blank">{}</a>', url, task.pk, label)

    @admin.action(description="Enqueue")
    def enqueue_tasks(self, request: Any, queryset: Any) -> None:
        done = self._set_status(queryset, Task.QUEUED)
        one, many = "%d task was successfully enqueued.", "%d tasks were successfully enqueued."
        self._tell(request, done, queryset.count(), ngettext(one, many, done))

    @admin.action(description="Cancel")
    def cancel_tasks(self, request: Any, queryset: Any) -> None:
        waiting = queryset.filter(status__in=(Task.QUEUED, Task.PROGRESS))
        chosen, done = queryset.count(), self._set_status(waiting, Task.CANCELLED)
        one, many = "%d task was cancelled.", "%d tasks were cancelled or asked to end."
        self._tell(request, done, chosen, ngettext(one, many, done))

    def _set_status(self, queryset: Any, status: int) -> int:
        done = 0
        for pk in list(queryset.exclude(status=status).values_list("pk", flat=True)):
            try:
                with transaction.atomic():
                    done += Task.objects.filter(pk=pk).update(status=status)
            except IntegrityError:  # it runs, or cannot run again
                continue
        return done

    def _tell(self, request: Any, done: int, chosen: int, text: str) -> None:
        self.message_user(request, text % done, messages.SUCCESS)
        if left := chosen - done:
            skipped = ngettext("%d task was skipped.", "%d tasks were skipped.", left)
            self.message_user(request, skipped % left, messages.WARNING)
