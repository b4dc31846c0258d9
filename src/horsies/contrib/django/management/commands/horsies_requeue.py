"""`manage.py horsies_requeue`: run ended tasks again."""

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand

from horsies.contrib.django.actions import requeue


class Command(BaseCommand):
    help = "Put ended tasks back in their queues."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("task_id", nargs="+")

    def handle(self, **options: Any) -> None:
        ids: list[str] = options["task_id"]
        done = requeue(ids)
        self.stdout.write(f"{done} of {len(ids)} tasks went back to their queues")
