"""A page that enqueues, the admin, and the status of tasks."""

from django.contrib import admin
from django.urls import include, path
from shop.views import order

urlpatterns = [
    path("", order, name="order"),
    path("admin/", admin.site.urls),
    path("horsies/", include("horsies.contrib.django.urls")),
]
