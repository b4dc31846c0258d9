"""A user's pages."""

from typing import Any

from django.http import JsonResponse

from support.django_project.shop.tasks import add


async def enqueue_and_look(request: Any) -> JsonResponse:
    """An async view: nothing in it may block."""
    result = await add.aenqueue(2, 3)
    found = await add.aget_result(result.id)
    await result.arefresh()
    return JsonResponse({"args": found.args, "status": str(result.status), "id": result.id})
