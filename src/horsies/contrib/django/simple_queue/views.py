"""The status page of django-simple-queue: HTML that refreshes itself, or JSON."""

import uuid
from typing import Any

from django.http import HttpResponse, HttpResponseBadRequest, JsonResponse
from django.shortcuts import render
from django.views.decorators.cache import never_cache

from horsies.contrib.django.access import refusal
from horsies.contrib.django.simple_queue.models import Task


@never_cache
def view_task_status(request: Any) -> HttpResponse:
    """`GET ...?task_id=<uuid>[&type=json]`."""
    task_id = request.GET.get("task_id")
    if not task_id:
        return HttpResponseBadRequest("Missing task_id parameter.")
    try:
        task = Task.objects.filter(pk=uuid.UUID(task_id)).first()
    except ValueError:
        return HttpResponseBadRequest("Invalid task_id format.")
    if task is None:
        return HttpResponseBadRequest("Task not found.")
    if (refused := refusal(request, task)) is not None:
        return refused
    if request.GET.get("type") == "json":
        return JsonResponse(task.as_dict)
    is_open = task.status in (Task.QUEUED, Task.PROGRESS)
    context = {"task": task, "refresh": True, "is_open": is_open}
    return render(request, "django_simple_queue/task_status.html", context)
