"""`manage.py horsies_prune`: delete ended tasks by their age."""

from argparse import ArgumentParser
from datetime import timedelta
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from django.db.models.functions import Coalesce
from django.utils import timezone

from horsies.contrib.django.actions import perform
from horsies.contrib.django.conf import setting
from horsies.contrib.django.models import TERMINAL, Task
from horsies.operations.prune import BATCH, prune_some


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
        step = _count if options["dry_run"] else _prune
        total = sum(step(status, timedelta(days=age)) for status, age in ages.items())
        verb = "would be deleted" if options["dry_run"] else "deleted"
        self.stdout.write(f"{total} tasks {verb}")


def _count(status: str, age: timedelta) -> int:
    ended = Coalesce("completed_at", "failed_at", "updated_at", "created_at")
    rows = Task.objects.using(setting("DATABASE_ALIAS")).filter(status=status)
    return int(rows.annotate(ended=ended).filter(ended__lt=timezone.now() - age).count())


def _prune(status: str, age: timedelta) -> int:
    total = 0
    while pruned := perform(prune_some(status, age)):
        total += pruned
        if pruned < BATCH:
            break
    return total
