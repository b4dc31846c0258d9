"""The status of a task and of the workers, as JSON and as a page."""

from typing import Any

from django.http import HttpResponse, JsonResponse
from django.shortcuts import render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from horsies.contrib.django.access import refusal
from horsies.contrib.django.health import check_health
from horsies.contrib.django.masking import shown_arguments, shown_result
from horsies.contrib.django.models import Task
from horsies.contrib.django.operations import DjangoConnection
from horsies.results.status import status


@never_cache
@require_safe
def task(request: Any, task_id: str) -> HttpResponse:
    """One task: JSON with `Accept: application/json` or `?type=json`, else a page."""
    wants_json = request.GET.get("type") == "json" or not request.accepts("text/html")
    try:
        row = Task.objects.get(pk=task_id)
    except Task.DoesNotExist:
        return JsonResponse({"error": "there is no such task", "id": task_id}, status=404)
    if (refused := refusal(request, row)) is not None:
        return refused
    read = status(str(row.pk))
    shown = read.read(DjangoConnection().run(read.statement)) or {}
    shown["log"] = shown.get("log") if row.log else None
    shown["output"] = shown_result(row, shown.get("output"))
    if wants_json:
        return JsonResponse(shown)
    args, kwargs = shown_arguments(row)
    context = {"task": row, "shown": shown, "args": args, "kwargs": kwargs}
    return render(request, "horsies/task_status.html", context)


@never_cache
@require_safe
def healthz(_request: Any) -> HttpResponse:
    """200 when all is well, 503 otherwise."""
    health = check_health()
    return JsonResponse(health.as_dict(), status=200 if health.is_healthy else 503)
