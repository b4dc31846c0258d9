"""`path("horsies/", include("horsies.contrib.django.urls"))`: a task's status, and health."""

from django.urls import path, register_converter

from horsies.contrib.django import views
from horsies.drawing.path_parts import quoted, unquoted


class NameConverter:
    """An id of any kind in an address, written as the dashboard writes it."""

    regex = ".+"

    def to_python(self, value: str) -> str:
        return unquoted(value)

    def to_url(self, value: object) -> str:
        return quoted(str(value))


register_converter(NameConverter, "horsies_name")
app_name = "horsies"
urlpatterns = [
    path("tasks/<horsies_name:task_id>", views.task, name="task"),
    path("healthz", views.healthz, name="healthz"),
]
