"""The Django app: finds task modules when the project is ready, and keeps the schema current."""

from typing import Any

from django.apps import AppConfig
from django.db.models.signals import post_migrate


class HorsiesConfig(AppConfig):
    name = "horsies.contrib.django"
    label = "horsies"
    verbose_name = "Background tasks"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        from horsies.contrib.django import checks  # noqa: F401 - registers them
        from horsies.contrib.django.project import app, import_task_modules
        from horsies.contrib.django.runtime import tell_finished

        app.on("failed")(tell_finished)
        app.on("cancelled")(tell_finished)
        post_migrate.connect(_keep_functions_current, sender=self)
        import_task_modules()


def _keep_functions_current(*, using: str, plan: Any = (), **_others: Any) -> None:
    """A release may change stored functions without a migration of its own."""
    from horsies.contrib.django.schema import is_installed, update

    if is_installed(using):
        update(using)
