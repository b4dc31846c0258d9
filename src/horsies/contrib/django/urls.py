"""`path("horsies/", include("horsies.contrib.django.urls"))`: a task's status, and health."""

from django.urls import path

from horsies.contrib.django import views

app_name = "horsies"
urlpatterns = [
    path("tasks/<str:task_id>", views.task, name="task"),
    path("healthz", views.healthz, name="healthz"),
]
