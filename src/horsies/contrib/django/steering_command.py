"""What `manage.py horsies_cancel` and `horsies_requeue` share: who steers, and why."""

from argparse import ArgumentParser
from collections.abc import Callable
from typing import Any, ClassVar

from django.core.management.base import BaseCommand

from horsies.operations.control import Note


class SteeringCommand(BaseCommand):
    """Changes the tasks of the given ids and says how many it changed."""

    change: ClassVar[Callable[..., int]]
    done: ClassVar[str]

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("task_id", nargs="+")
        parser.add_argument("--reason", help="why, for the audit")
        parser.add_argument("--by", help="who, for the audit (default: you on this machine)")

    def handle(self, **options: Any) -> None:
        ids: list[str] = options["task_id"]
        changed = self.change(ids, note=Note(options["by"], options["reason"]))
        self.stdout.write(f"{changed} of {len(ids)} tasks {self.done}")
