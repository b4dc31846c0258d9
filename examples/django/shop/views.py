"""One page: order something, and follow the receipt."""

from typing import Any

from django.db import transaction
from django.http import HttpResponse
from django.shortcuts import redirect, render

from shop.tasks import send_receipt


@transaction.atomic
def order(request: Any) -> HttpResponse:
    """The task is stored with the order's own transaction, or not at all."""
    if request.method != "POST":
        return render(request, "shop/order.html")
    result = send_receipt.enqueue(int(request.POST["number"]), request.POST["address"])
    return redirect("horsies:task", result.id)
