"""The compatibility app, under the label of django-simple-queue."""

from django.apps import AppConfig


class SimpleQueueConfig(AppConfig):
    name = "horsies.contrib.django.simple_queue"
    label = "django_simple_queue"
    verbose_name = "Django simple queue"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        from horsies.contrib.django.project import app
        from horsies.contrib.django.simple_queue.worker import prepare_child, tell_failure

        app.on_child_process_start(prepare_child)
        app.on_failure(tell_failure)
