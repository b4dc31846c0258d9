"""Who may see the status of a task: `HORSIES["STATUS_VIEW_ACCESS"]`."""

from typing import Any

from django.contrib.auth.views import redirect_to_login
from django.http import HttpResponse, HttpResponseForbidden
from django.utils.module_loading import import_string

from horsies.contrib.django.conf import setting


def refusal(request: Any, task: Any) -> HttpResponse | None:
    """The answer to someone who may not see this task; `None` lets them see it."""
    rule = setting("STATUS_VIEW_ACCESS")
    if rule == "public":
        return None
    user = getattr(request, "user", None)
    if rule in ("staff", "authenticated"):
        if user is None or not user.is_authenticated:
            return redirect_to_login(request.get_full_path())
        is_allowed = rule == "authenticated" or (user.is_active and user.is_staff)
    else:
        is_allowed = bool(import_string(rule)(request, task))
    return None if is_allowed else HttpResponseForbidden("You may not see this task.")
