"""`path("django_simple_queue/", include("django_simple_queue.urls"))`."""

from django.urls import path

from horsies.contrib.django.simple_queue import views

app_name = "django_simple_queue"
urlpatterns = [path("task", views.view_task_status, name="task")]
