"""`manage.py horsies_cancel`: end tasks that wait or run."""

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand

from horsies.contrib.django.actions import cancel


class Command(BaseCommand):
    help = "Cancel waiting tasks; ask the workers of running ones to end them."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("task_id", nargs="+")

    def handle(self, **options: Any) -> None:
        ids: list[str] = options["task_id"]
        done = cancel(ids)
        self.stdout.write(f"{done} of {len(ids)} tasks cancelled or asked to end")
