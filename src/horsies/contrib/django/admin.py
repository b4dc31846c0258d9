"""The admin: see tasks, attempts, workers and schedules; enqueue, cancel and run now."""

import json
import uuid
from typing import Any

from django.contrib import admin, messages
from django.contrib.admin.helpers import ActionForm
from django.db.models import Q
from django.urls import NoReverseMatch, reverse
from django.utils import timezone
from django.utils.html import format_html
from django.utils.text import slugify
from django.utils.translation import gettext_lazy as _
from django.utils.translation import ngettext

from django import forms
from horsies.contrib.django import actions
from horsies.contrib.django.health import STALE_AFTER
from horsies.contrib.django.masking import shown_arguments, shown_result
from horsies.contrib.django.models import (
    TERMINAL,
    ScheduleState,
    Task,
    TaskAttempt,
    WorkerState,
    Workflow,
)
from horsies.contrib.django.paginator import EstimatingPaginator
from horsies.contrib.django.project import app
from horsies.operations.control import Note
from horsies.result import Err

_SHOWN = 2_000
_COLOURS = {
    "COMPLETED": "#1a7f45",
    "FAILED": "#b3261e",
    "EXPIRED": "#b3261e",
    "CANCELLED": "#8a5a00",
    "RUNNING": "#1c5fb8",
    "CLAIMED": "#1c5fb8",
}


def badge(status: str, label: str) -> Any:
    style = (
        f"background:{_COLOURS.get(status, '#5b6573')};color:#fff;padding:1px 9px;"
        "border-radius:999px;font-size:11px;font-weight:600;white-space:nowrap"
    )
    return format_html('<span class="status-{}" style="{}">{}</span>', slugify(label), style, label)


def long_text(text: str | None) -> Any:
    """Text as it is, escaped; what is long is folded."""
    if not text:
        return "–"
    style = "white-space:pre-wrap;overflow-wrap:anywhere;max-width:70em;margin:0"
    if len(text) <= _SHOWN:
        return format_html('<pre style="{}">{}</pre>', style, text)
    return format_html(
        '<pre style="{}">{}…</pre><details><summary>Show all {} characters</summary>'
        '<pre style="{}">{}</pre></details>',
        style,
        text[:_SHOWN],
        len(text),
        style,
        text,
    )


def pretty(text: str | None) -> str | None:
    """JSON with indentation; what is not JSON stays as it is."""
    try:
        return None if text is None else json.dumps(json.loads(text), indent=2, ensure_ascii=False)
    except (ValueError, RecursionError):
        return text


class SteeringForm(ActionForm):
    """An action and, for the audit, why."""

    reason = forms.CharField(label=_("Reason:"), required=False, max_length=500)


def note_of(request: Any) -> Note:
    """Who acts and why, for the audit."""
    reason = request.POST.get("reason", "").strip()[:500]
    return Note(by=request.user.get_username(), reason=reason or "in the admin of Django")


class ReadOnlyAdmin(admin.ModelAdmin):
    """The engine writes these rows; here they are seen."""

    show_full_result_count = False
    paginator = EstimatingPaginator
    list_per_page = 50
    action_form = SteeringForm

    def has_add_permission(self, request: Any, obj: Any = None) -> bool:
        return False

    def has_change_permission(self, request: Any, obj: Any = None) -> bool:
        return False

    def has_delete_permission(self, request: Any, obj: Any = None) -> bool:
        return False

    def tell(self, request: Any, done: int, chosen: int, one: str, many: str) -> None:
        """Say how many rows an action changed, and how many it had to leave alone."""
        self.message_user(request, ngettext(one, many, done) % done, messages.SUCCESS)
        if left := chosen - done:
            text = ngettext("%d task was skipped.", "%d tasks were skipped.", left) % left
            self.message_user(request, f"{text} The state does not allow it.", messages.WARNING)


class AttemptInline(admin.TabularInline):
    """The attempts of a task, with what went wrong."""

    model = TaskAttempt
    extra = 0
    can_delete = False
    fields = ("attempt", "outcome", "started_at", "finished_at", "worker_id", "message")
    readonly_fields = fields

    def has_add_permission(self, request: Any, obj: Any = None) -> bool:
        return False

    def has_change_permission(self, request: Any, obj: Any = None) -> bool:
        return False

    @admin.display(description="error")
    def message(self, attempt: TaskAttempt) -> Any:
        parts = (attempt.error_message, attempt.traceback)
        return long_text("\n".join(part for part in parts if part))


class KnownNamesFilter(admin.SimpleListFilter):
    """The task names of this project, without asking a large table for them."""

    title = "task"
    parameter_name = "task_name"

    def lookups(self, request: Any, model_admin: Any) -> list[tuple[str, str]]:
        # Of the newest rows: enough to choose from, whatever the size of the table.
        newest = Task.objects.order_by("-pk").values_list("task_name", flat=True)[:1000]
        return [(name, name) for name in sorted(set(newest))]

    def queryset(self, request: Any, queryset: Any) -> Any:
        return queryset.filter(task_name=self.value()) if self.value() else queryset


@admin.register(Task)
class TaskAdmin(ReadOnlyAdmin):
    """Tasks: ids are time-ordered, so their order is that of the index."""

    ordering = ("-pk",)
    list_display = (
        "short_id",
        "task_name",
        "queue_name",
        "state",
        "enqueued_at",
        "started_at",
        "took",
        "attempt_number",
        "worker",
    )
    list_filter = ("status", "queue_name", KnownNamesFilter, "enqueued_at")
    search_fields = ("id__startswith", "task_name__startswith")
    search_help_text = "An id or its beginning, or the beginning of a task's name"
    actions = ("enqueue_tasks", "copy_tasks", "cancel_tasks")
    inlines = (AttemptInline,)
    fields = (
        "id",
        "task_name",
        "state",
        "queue_name",
        "priority",
        "sent_at",
        "enqueued_at",
        "started_at",
        "took",
        "worker",
        "shown_arguments",
        "shown_result",
        "shown_error",
        "shown_log",
    )
    readonly_fields = fields

    def get_queryset(self, request: Any) -> Any:
        return super().get_queryset(request).defer("result_text", "args", "kwargs", "task_options")

    def get_search_results(self, request: Any, queryset: Any, search_term: str) -> Any:
        term = search_term.strip()
        if not term:
            return queryset, False
        return queryset.filter(Q(task_name__startswith=term) | _id_range(term)), False

    @admin.display(description="id", ordering="id")
    def short_id(self, task: Task) -> Any:
        return format_html('<span style="white-space:nowrap">{}</span>', str(task.pk)[:13])

    @admin.display(description="status", ordering="status")
    def state(self, task: Task) -> Any:
        shown = badge(task.status, task.get_status_display())
        try:
            url = reverse("horsies:task", args=[task.pk])
        except NoReverseMatch:  # the pages are not in the project's urls
            return shown
        return format_html('<a href="{}" target="_blank">{}</a>', url, shown)

    @admin.display(description="duration")
    def took(self, task: Task) -> str:
        return "–" if task.duration is None else f"{task.duration.total_seconds():.2f} s"

    @admin.display(description="attempt")
    def attempt_number(self, task: Task) -> str:
        number = task.retry_count + 1
        return f"{number} of {task.max_retries + 1}" if task.max_retries else str(number)

    @admin.display(description="worker")
    def worker(self, task: Task) -> str:
        pid = f" pid {task.worker_pid}" if task.worker_pid else ""
        return f"{task.worker_hostname}{pid}" if task.worker_hostname else "–"

    @admin.display(description="arguments")
    def shown_arguments(self, task: Task) -> Any:
        return long_text("\n".join(filter(None, map(pretty, shown_arguments(task)))))

    @admin.display(description="result")
    def shown_result(self, task: Task) -> Any:
        if task.status != "COMPLETED":
            return "–"
        shown = shown_result(task, task.result)
        return long_text(json.dumps(shown, indent=2, ensure_ascii=False))

    @admin.display(description="error")
    def shown_error(self, task: Task) -> Any:
        return long_text((task.error or {}).get("message"))

    @admin.display(description="log")
    def shown_log(self, task: Task) -> Any:
        return long_text(task.log)

    @admin.action(description="Enqueue", permissions=["requeue"])
    def enqueue_tasks(self, request: Any, queryset: Any) -> None:
        ids = [str(pk) for pk in queryset.values_list("pk", flat=True)]
        done = actions.requeue(ids, note=note_of(request))
        one, many = "%d task was successfully enqueued.", "%d tasks were successfully enqueued."
        self.tell(request, done, len(ids), one, many)

    @admin.action(description="Enqueue a copy", permissions=["requeue"])
    def copy_tasks(self, request: Any, queryset: Any) -> None:
        ids = [str(pk) for pk in queryset.filter(status__in=TERMINAL).values_list("pk", flat=True)]
        done = len(actions.rerun(ids, note=note_of(request)))
        one, many = "%d copy was enqueued.", "%d copies were enqueued."
        self.tell(request, done, queryset.count(), one, many)

    @admin.action(description="Cancel", permissions=["cancel"])
    def cancel_tasks(self, request: Any, queryset: Any) -> None:
        ids = [str(pk) for pk in queryset.values_list("pk", flat=True)]
        done = actions.cancel(ids, note=note_of(request))
        one, many = (
            "%d task was cancelled or asked to end.",
            "%d tasks were cancelled or asked to end.",
        )
        self.tell(request, done, len(ids), one, many)

    def has_requeue_permission(self, request: Any) -> bool:
        return bool(request.user.has_perm("horsies.requeue_task"))

    def has_cancel_permission(self, request: Any) -> bool:
        return bool(request.user.has_perm("horsies.cancel_task"))


def _id_range(term: str) -> Q:
    """Ids that begin like that, by the index; one that was given by hand is found as a whole."""
    digits = term.replace("-", "").lower()
    try:
        low, high = (uuid.UUID(digits.ljust(32, fill)) for fill in "0f")
    except ValueError:
        return Q(pk=term)
    return Q(pk__gte=low, pk__lte=high)


@admin.register(WorkerState)
class WorkerAdmin(ReadOnlyAdmin):
    """The newest snapshot of each worker."""

    list_display = ("hostname", "pid", "life", "served", "tasks_running", "memory", "snapshot_at")
    list_display_links = ("hostname",)
    ordering = ("-snapshot_at",)

    def get_queryset(self, request: Any) -> Any:
        rows = super().get_queryset(request)
        newest = rows.order_by("worker_id", "-snapshot_at").distinct("worker_id").values("pk")
        return rows.filter(pk__in=newest)

    @admin.display(description="state")
    def life(self, worker: WorkerState) -> Any:
        seen_at = worker.snapshot_at
        is_live = seen_at is not None and timezone.now() - seen_at < STALE_AFTER
        return badge("COMPLETED", "Live") if is_live else badge("PENDING", "Stale")

    @admin.display(description="queues")
    def served(self, worker: WorkerState) -> str:
        return ", ".join(worker.queues or ())

    @admin.display(description="memory")
    def memory(self, worker: WorkerState) -> str:
        used = worker.memory_usage_mb
        return "–" if used is None else f"{used:.0f} MB"


@admin.register(ScheduleState)
class ScheduleAdmin(ReadOnlyAdmin):
    """Schedules: when they ran and will run; Run now sends one at once."""

    list_display = ("schedule_name", "next_run_at", "last_run_at", "run_count", "is_paused")
    ordering = ("schedule_name",)
    actions = ("run_now",)

    @admin.display(description="paused", boolean=True)
    def is_paused(self, schedule: ScheduleState) -> bool:
        return schedule.paused_at is not None

    @admin.action(description="Run now", permissions=["run"])
    def run_now(self, request: Any, queryset: Any) -> None:
        for schedule in queryset:
            sent = app.schedules.run_now(schedule.schedule_name, note=note_of(request))
            if isinstance(sent, Err):
                text = f"{schedule}: {sent.err_value.message}"
                self.message_user(request, text, messages.ERROR)
            else:
                text = f"{schedule} runs now, as {sent.ok_value}."
                self.message_user(request, text, messages.SUCCESS)

    def has_run_permission(self, request: Any) -> bool:
        return bool(request.user.has_perm("horsies.run_schedule"))


@admin.register(Workflow)
class WorkflowAdmin(ReadOnlyAdmin):
    """Workflows and how far they have come."""

    list_display = ("name", "status", "sent_at", "started_at", "completed_at")
    list_filter = ("status",)
    ordering = ("-pk",)
