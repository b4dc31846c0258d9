"""`manage.py horsies_prune`: delete ended tasks by their age."""

from argparse import ArgumentParser
from datetime import timedelta
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from horsies.contrib.django.models import TERMINAL
from horsies.contrib.django.project import app
from horsies.operations.listing import TaskCount


class Command(BaseCommand):
    help = "Delete ended tasks that are older than the given ages, with their attempts and logs."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--min-age-days", type=float, default=14, metavar="DAYS")
        parser.add_argument(
            "--failed-min-age-days", type=float, metavar="DAYS", help="the same for FAILED tasks"
        )
        parser.add_argument("--dry-run", action="store_true", help="only count")

    def handle(self, **options: Any) -> None:
        days: float = options["min_age_days"]
        failed_days = options["failed_min_age_days"]
        ages = dict.fromkeys(TERMINAL, days)
        ages["FAILED"] = days if failed_days is None else failed_days
        if min(ages.values()) < 0:
            raise CommandError("an age must not be negative")
        counts = [
            app.operations.prune(
                timedelta(days=age), statuses=[status], dry_run=options["dry_run"]
            ).unwrap()
            for status, age in ages.items()
        ]
        is_least = any(count.is_least for count in counts)
        total = TaskCount(sum(count.number for count in counts), is_least=is_least)
        verb = "would be deleted" if options["dry_run"] else "deleted"
        self.stdout.write(f"{total} tasks {verb}")
