"""The pages of the tests' Django project."""

from django.contrib import admin
from django.urls import include, path

from support.django_project.shop.views import enqueue_and_look

urlpatterns = [
    path("admin/", admin.site.urls),
    path("horsies/", include("horsies.contrib.django.urls")),
    path("django_simple_queue/", include("django_simple_queue.urls")),
    path("shop/add", enqueue_and_look),
]
